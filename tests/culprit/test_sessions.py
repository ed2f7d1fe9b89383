"""A session is what was asked and what was measured: it goes on wherever it was left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.culprit import workflow
from poolbisect.culprit.decisions import Decisions
from poolbisect.culprit.interface import Attempt, Probed, Watch
from poolbisect.culprit.session import Session
from poolbisect.culprit.watcher import Watcher
from poolbisect.errors import UsageError

from .reading import FIXED, ReadingProbe, bisect, named, suspects, write_line


class Unplannable(ReadingProbe):
    """Interrupted while it still finds out how to search."""

    def plan(self) -> Plan:
        raise KeyboardInterrupt


class Unconfirmable(ReadingProbe):
    """Interrupted while the culprit is taken back."""

    def probe_without(self, position: int, attempt: Attempt, watch: Watch) -> Probed | str:
        raise KeyboardInterrupt


@pytest.fixture
def line(builder: Any) -> list[str]:
    return write_line(builder, ["good"] * 9 + ["bad"] * 9)


def test_one_that_was_cut_off_before_its_plan_goes_on(
    builder: Any, line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "s"
    with monkeypatch.context() as patch:
        patch.setattr(ReadingProbe, "plan", Unplannable.plan)
        with pytest.raises(KeyboardInterrupt):
            bisect(builder.folder, line[0], line[-1], out)
    assert not Session(out).has_begun
    assert named(bisect(builder.folder, line[0], line[-1], out)) == line[9]


def test_a_budget_is_for_the_start_it_is_given_to(
    builder: Any, line: list[str], tmp_path: Path
) -> None:
    out, seen = tmp_path / "s", list[int]()
    ends = (builder.folder, line[0], line[-1], out)
    bisect(*ends, budget=Budget(probes=3), seen=seen)
    assert len(seen) == 3
    bisect(*ends, budget=Budget(probes=2), seen=seen)
    assert len(seen) == 5


def test_a_repository_that_moved_is_found_where_it_is_now(
    builder: Any, line: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "s"
    first = bisect(builder.folder, line[0], line[-1], out, budget=Budget(probes=2))
    assert line[9] in suspects(first)
    moved = tmp_path / "moved"
    shutil.move(builder.folder, moved)

    def open_probe(_: Any, history: Any, scratch: Path, watch: Watch) -> ReadingProbe:
        return ReadingProbe(history, Plan(mode=Mode.EXACT))

    found = workflow.go_on(Session(out), open_probe, Watcher(), repository=moved)
    assert named(found) == line[9]
    assert Session(out).request().repository == str(moved.resolve())


def test_decisions_are_checked_before_anything_is_measured(
    builder: Any, line: list[str], tmp_path: Path
) -> None:
    seen: list[int] = []
    for decisions in (
        Decisions(skips=("nonsense",)),
        Decisions(suspects=("nonsense",)),
        Decisions(skips=(f"{line[3]}..",)),
        Decisions(skips=(f"{line[3]}...{line[5]}",)),
        Decisions(skips=(line[0],)),
    ):
        with pytest.raises(UsageError):
            bisect(
                *(builder.folder, line[0], line[-1], tmp_path / "s"), decisions=decisions, seen=seen
            )
    assert seen == []
    assert not (tmp_path / "s").exists()


def test_an_interrupt_while_confirming_keeps_the_answer(
    builder: Any, line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadingProbe, "probe_without", Unconfirmable.probe_without, raising=False)
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert (found.verdict, found.exit_code) == ("interrupted", 130)
    assert named(found) == line[9]
    assert found.confirmation is None


def test_totals_are_those_of_the_whole_session(
    builder: Any, line: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "s"
    first = bisect(builder.folder, line[0], line[-1], out, budget=Budget(probes=3))
    again = bisect(builder.folder, line[0], line[-1], out)
    assert again.started == first.started
    assert again.seconds >= sum(step.observation.seconds for step in again.steps)


def test_the_wrong_way_round_is_called_that(builder: Any, line: list[str], tmp_path: Path) -> None:
    found = bisect(builder.folder, line[-1], line[0], tmp_path / "s", find=FIXED)
    assert (found.verdict, found.exit_code) == ("reversed", 2)
    assert "--find introduced" in (found.result.reason if found.result else "")
