from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolbisect.bisection.commands import replay_commands
from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.journal import create, locked, read, resume
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Ending, Observation, ProbeRequest, Result
from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.bisection.search import Search
from poolbisect.errors import UsageError

from .subjects import Subject, names, questions, run, step

AT = "2026-03-01T00:00:00Z"
COMMITS = names(33)
COMMAND = ("bisect", "--good", "c0", "--bad", "c32", "--repo", "a path/with spaces")


def session(path: Path, plan: Plan, subject: Subject, probes: int = 1000) -> Search:
    with create(path, COMMITS, plan, command=COMMAND, at=AT) as journal:
        for _ in range(probes):
            request = journal.search.next()
            if isinstance(request, Result):
                break
            journal.started(request, AT)
            journal.ended(request.position, subject(request), AT)
        return journal.search


def test_a_replayed_journal_is_the_same_search(tmp_path: Path) -> None:
    plan = Plan(
        mode=Mode.PAIRED,
        costs=CostModel(switch=100.0),
        noise=Noise(run=1e-4),
        budget=Budget(questions=9000),
        weights=tuple(1.0 for _ in COMMITS),
        batch=25,
    )
    lived = session(tmp_path / "s.jsonl", plan, questions(20, 1), probes=9)
    again = read(tmp_path / "s.jsonl").search(COMMITS)
    assert again.plan == plan
    assert again.events == lived.events
    assert again.next() == lived.next()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1))
def test_a_journal_cut_at_any_byte_is_a_valid_prefix_and_goes_on(
    tmp_path: Path, share: float
) -> None:
    path = tmp_path / "cut.jsonl"
    path.unlink(missing_ok=True)
    whole = session(path, Plan(), step(11, frozenset({16})))
    raw = path.read_bytes()
    path.write_bytes(raw[: round(share * len(raw))])
    if b"\n" not in path.read_bytes():
        with pytest.raises(UsageError, match="session line is incomplete"):
            read(path)
        return
    events = read(path).events()
    assert tuple(events) == whole.events[: len(events)]
    with resume(path, COMMITS, at=AT) as journal:
        result = run(journal.search, step(11, frozenset({16})))
    assert result.culprit == 11
    read(path)


def test_resuming_after_a_torn_line_writes_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    session(path, Plan(), step(11), probes=3)
    with path.open("ab") as out:
        out.write(b'{"event":"probe_end')
    with resume(path, COMMITS, at=AT) as journal:
        request = journal.search.next()
        assert isinstance(request, ProbeRequest)
        journal.ended(request.position, step(11)(request), AT)
    assert len(read(path).events()) == 5


@pytest.mark.parametrize("damage", [b"nonsense\n", b'{"event":"skip"}\n', b"\xff\xfe\n", b"\n"])
def test_any_other_damage_names_file_and_line(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "s.jsonl"
    session(path, Plan(), step(11), probes=3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], damage, *lines[3:]]))
    with pytest.raises(UsageError, match=r"s\.jsonl, line 3: "):
        read(path)


def test_a_missing_or_foreign_journal_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with pytest.raises(UsageError, match="no such journal"), resume(path, COMMITS, at=AT):
        pass
    session(path, Plan(), step(11), probes=3)
    with (
        pytest.raises(UsageError, match="history is another one"),
        resume(path, names(34), at=AT),
    ):
        pass
    with (
        pytest.raises(UsageError, match="give --resume"),
        create(path, COMMITS, Plan(), command=COMMAND, at=AT),
    ):
        pass


def test_one_session_has_one_owner(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with (
        create(path, COMMITS, Plan(), command=COMMAND, at=AT),
        pytest.raises(UsageError, match="another poolbisect"),
        locked(path),
    ):
        pass
    with locked(path):
        pass


def test_decisions_are_events_and_come_back_as_commands(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with create(path, COMMITS, Plan(), command=COMMAND, at=AT) as journal:
        journal.suspect(7, AT)
        journal.skip(3, 5, AT)
        journal.ended(0, step(7)(ProbeRequest(0)), AT)
        journal.ended(9, Observation.failed(Ending.BUILD_FAILED), AT)
        journal.forget(9, AT)
        assert journal.search.facts.blocked == {3, 4, 5}
    with resume(path, COMMITS, at=AT) as journal:
        assert journal.search.facts.blocked == {3, 4, 5}
        assert journal.search.facts.suspects == (7,)
    assert replay_commands(read(path)) == [
        "poolbisect bisect --good c0 --bad c32 --repo 'a path/with spaces'",
        "poolbisect bisect --resume --suspect c7",
        "poolbisect bisect --resume --skip 'c3^..c5'",
        "# c0: good",
        "# c9: build_failed",
        "poolbisect bisect --resume --forget c9",
        "# resumed",
    ]


def test_a_refused_event_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with create(path, COMMITS, Plan(mode=Mode.PAIRED), command=COMMAND, at=AT) as journal:
        with pytest.raises(UsageError, match="no answers by question"):
            journal.ended(0, Observation.counts(3, 4), AT)
        with pytest.raises(UsageError, match="cannot be skipped"):
            journal.skip(0, 2, AT)
    assert read(path).lines == ()
