"""Blame names the buffer, its line, the first missing row, and who wrote the line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from poolbisect.history.ranges import CommitRange, commit_range
from poolbisect.history.release_ranges import ReleaseRange
from poolbisect.history.repository import open_repository
from poolbisect.probes.facets import (
    REQ_TO_TOKEN,
    BufferState,
    Condition,
    ContractState,
    PoolKind,
    PoolPlan,
    PoolState,
)
from poolbisect.timeline import Timeline, attribution_at, prior_from_timeline, timeline

PLANS = (PoolPlan(PoolKind.NORMAL, 8, ("token_table",)),)


@pytest.fixture(scope="module")
def history(story: Any) -> Iterator[CommitRange]:
    with open_repository(story.folder) as repository:
        yield commit_range(repository, story.commits["requests"], "main")


@pytest.fixture(scope="module")
def found(history: CommitRange) -> Timeline:
    return timeline(history, PLANS, workers=1)


def position(found: Timeline, title: str) -> int:
    return [entry.title for entry in found.history.entries].index(title)


def test_the_commit_that_exposes_a_fault_is_not_the_one_that_wrote_it(found: Timeline) -> None:
    at = position(found, "padding row")
    (blame,) = attribution_at(found.history, at, found.states[at])
    assert (blame.buffer, blame.pool, blame.space) == ("token_table", "normal", "request slot")
    assert (blame.file, blame.line) == ("sglang/srt/model_executor/model_runner.py", 6)
    assert (blame.rows, blame.index, blame.last) == (8, 8, 8)
    assert blame.since is not None
    assert blame.since.title == "table arrives"  # older than the range


def test_a_line_that_moved_keeps_its_author(found: Timeline) -> None:
    at = position(found, "moved")
    (blame,) = attribution_at(found.history, at, found.states[at])
    assert blame.file == "sglang/srt/model_executor/tables.py"
    assert blame.since is not None
    assert blame.since.title == "broken again"


def test_a_pool_that_crashes_is_blamed_itself(found: Timeline) -> None:
    at = position(found, "pool raises")
    (blame,) = attribution_at(found.history, at, found.states[at])
    assert blame.buffer == REQ_TO_TOKEN
    assert "ZeroDivisionError" in blame.detail


def test_nobody_is_blamed_without_a_fault_or_outside_what_was_asked(found: Timeline) -> None:
    at = position(found, "requests")
    assert attribution_at(found.history, at, found.states[at]) == ()
    at = position(found, "padding row")
    other = [(PoolKind.NORMAL, "another_table")]
    assert attribution_at(found.history, at, found.states[at], only=other) == ()


def test_releases_tell_since_when_from_the_earlier_ones() -> None:
    def state(expression: str) -> ContractState:
        table = BufferState(Condition.SHORT, 8, 8, expression, "f.py", 3)
        return ContractState({PoolKind.NORMAL: PoolState(Condition.OK, "", {}, {"t": table})})

    history = ReleaseRange(("0.5.1", "0.5.2", "0.5.3", "0.5.4"))
    states = [state("a"), state("b"), state("b"), state("b")]
    (blame,) = attribution_at(history, 3, states[3], earlier=states)
    assert blame.since is not None
    assert blame.since.name == "0.5.2"
    (unknown,) = attribution_at(history, 3, states[3], earlier=states[1:2] + states[1:])
    assert unknown.since is None  # at least as old as the range


class TestPrior:
    def test_most_is_on_the_breaches_and_nothing_is_ruled_out(self, found: Timeline) -> None:
        weights = prior_from_timeline(found)
        assert len(weights) == len(found.history)
        assert sum(weights) == pytest.approx(1)
        assert weights[0] == 0
        assert min(weights[1:]) > 0
        breaches = {"padding row", "broken again", "pool raises"}
        titles = [entry.title for entry in found.history.entries]
        shares = dict(zip(titles, weights, strict=True))
        assert min(shares[t] for t in breaches) > max(
            w for t, w in shares.items() if t not in breaches
        )
        assert shares["newest first"] > shares["comment"] > shares["requests"]

    def test_a_fix_is_looked_for_where_something_was_mended(self, found: Timeline) -> None:
        weights = prior_from_timeline(found, find="fixed")
        titles = [entry.title for entry in found.history.entries]
        best = sorted(zip(weights, titles, strict=True))[-3:]
        assert {title for _, title in best} == {"mended", "oldest first", "mended again"}

    def test_without_transitions_all_are_nearly_alike(self, history: CommitRange) -> None:
        state = ContractState({PoolKind.NORMAL: PoolState(Condition.OK)})
        length = len(history)
        flat = Timeline(
            history, PLANS, (state,) * length, frozenset(), (), {}, probed=1, seconds=0.0
        )
        weights = prior_from_timeline(flat)
        assert weights[1:] == pytest.approx([1 / (length - 1)] * (length - 1))
