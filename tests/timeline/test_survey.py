"""The timeline of a small SGLang: every transition, none that is not one, few probes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from poolbisect.history.ranges import CommitRange, commit_range
from poolbisect.history.repository import open_repository
from poolbisect.probes.facets import Condition, PoolKind, PoolPlan
from poolbisect.probes.sandbox import Sandbox
from poolbisect.timeline import Kind, Timeline, timeline
from poolbisect.timeline.probers import Probers

PLANS = (PoolPlan(PoolKind.NORMAL, 8, ("token_table",)),)


@pytest.fixture(scope="module")
def history(story: Any) -> Iterator[CommitRange]:
    with open_repository(story.folder) as repository:
        yield commit_range(repository, story.commits["pools"], "main")


@pytest.fixture(scope="module")
def found(history: CommitRange) -> Timeline:
    return timeline(history, PLANS, workers=2)


def rows(found: Timeline) -> list[tuple[str, str, str]]:
    return [
        (found.entry(one.position).title, one.kind.value, one.aspect) for one in found.transitions
    ]


def test_every_transition_and_no_other(found: Timeline) -> None:
    assert rows(found) == [
        ("table arrives", "behaviour changed", "rows"),
        ("requests", "behaviour changed", "API"),
        ("padding row", "introduced", "rows"),
        ("padding row", "behaviour changed", "slots"),
        ("mended", "fixed", "rows"),
        ("broken again", "re-introduced", "rows"),
        ("newest first", "behaviour changed", "slot order"),
        ("pool raises", "introduced", "pool"),
        ("oldest first", "fixed", "pool"),
        ("oldest first", "behaviour changed", "slot order"),
        ("mended again", "fixed", "rows"),
    ]


def test_rows_and_slots_before_and_after(found: Timeline) -> None:
    (introduced,) = [
        one for one in found.transitions if (one.kind, one.aspect) == (Kind.INTRODUCED, "rows")
    ]
    before, after = introduced.before, introduced.after
    assert not isinstance(before, str)
    assert not isinstance(after, str)
    assert (before.rows, before.last, after.rows, after.last) == (8, 7, 8, 8)  # type: ignore[union-attr]
    assert introduced.pools == (PoolKind.NORMAL,)


def test_what_could_not_be_judged_is_counted_and_not_blamed(
    found: Timeline, history: CommitRange
) -> None:
    titles = {history.entries[position].title: why for position, why in found.untestable.items()}
    assert set(titles) == {"unparsable"}
    assert "cannot parse" in titles["unparsable"]


def test_a_file_that_moved_is_followed(found: Timeline, history: CommitRange) -> None:
    titles = [entry.title for entry in history.entries]
    buffer = found.states[titles.index("moved")].pools[PoolKind.NORMAL].buffers["token_table"]
    assert buffer.file == "sglang/srt/model_executor/tables.py"
    assert buffer.condition is Condition.SHORT


def test_only_commits_that_matter_are_probed(found: Timeline, history: CommitRange) -> None:
    titles = [entry.title for entry in history.entries]
    untouched = {titles[p] for p in range(1, len(titles)) if p not in found.touched}
    assert untouched == {"docs", "elsewhere"}
    # "parsable again" and "oldest first" hold what was probed before.
    assert found.probed <= len(titles) - 3
    assert len(found.states) == len(titles)


def test_states_are_those_that_probing_each_commit_gives(
    found: Timeline, history: CommitRange
) -> None:
    with Sandbox() as sandbox:
        for position, state in enumerate(found.states):
            alone = sandbox.probe(history.tree(position), PLANS)
            assert _without_names(alone) == _without_names(state)


def _without_names(state: Any) -> Any:
    """A state without the messages, which name the commit that was probed."""
    return {
        kind: (
            pool.condition,
            pool.behaviour,
            {
                name: (b.condition, b.rows, b.last, b.expression, b.file, b.line)
                for name, b in pool.buffers.items()
            },
        )
        for kind, pool in state.pools.items()
    }


def test_any_number_of_workers_finds_the_same(found: Timeline, history: CommitRange) -> None:
    alone = timeline(history, PLANS, workers=1)
    assert (rows(alone), alone.probed, alone.touched) == (
        rows(found),
        found.probed,
        found.touched,
    )


def test_progress_counts_up_to_what_is_needed(history: CommitRange) -> None:
    seen: list[tuple[int, int]] = []
    result = timeline(history, PLANS, workers=1, watch=lambda *counts: seen.append(counts))
    assert [done for done, _ in seen] == list(range(1, result.probed + 1))
    assert all(done <= needed for done, needed in seen)
    assert seen[-1] == (result.probed, result.probed)


def test_an_interrupt_ends_it_at_once_and_leaves_no_process(history: CommitRange) -> None:
    def interrupt(done: int, needed: int) -> None:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        timeline(history, PLANS, workers=1, watch=interrupt)
    assert threading.active_count() == before


def test_workers_are_only_started_when_there_is_work_for_them(
    history: CommitRange, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    start: Callable[[Sandbox], None] = Sandbox.start
    monkeypatch.setattr(Sandbox, "start", lambda self: (started.append(self), start(self)))
    with Probers(PLANS, 8) as probers:
        probers.probe([0, 1], lambda position, _: history.tree(position))
    assert len(set(map(id, started))) == 1


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory, story: Any) -> Any:
    """A branch that brings the fault, merged into main."""
    builder = type(story.builder)(tmp_path_factory.mktemp("merged") / "sglang")
    show = story.builder.git
    pools, padded = (
        show("show", f"{story.commits[title]}:{story.POOL}") + "\n"
        for title in ("requests", "padding row")
    )
    worker = show("show", f"{story.commits['table arrives']}:{story.WORKER}") + "\n"
    builder.commit("base", {story.POOL: pools, story.WORKER: worker})
    builder.git("checkout", "-q", "-b", "topic")
    builder.commit("inside", {story.POOL: padded})
    builder.commit("later inside", {"x.txt": "1"})
    builder.git("checkout", "-q", "main")
    builder.commit("beside", {"y.txt": "1"})
    builder.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
    return builder


@pytest.mark.parametrize(("all_parents", "culprit"), [(False, "merge"), (True, "inside")])
def test_the_merge_or_the_commit_inside_it(merged: Any, all_parents: bool, culprit: str) -> None:
    with open_repository(merged.folder) as repository:
        history = commit_range(repository, "main~2", "main", all_parents=all_parents)
        found = timeline(history, PLANS, workers=1)
    introduced = [one for one in found.transitions if one.kind is Kind.INTRODUCED]
    assert [found.entry(one.position).title for one in introduced] == [culprit]
    assert {found.entry(one.position).title for one in found.transitions} == {culprit}
