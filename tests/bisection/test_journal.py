from __future__ import annotations

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolbisect.bisection.commands import replay_commands
from poolbisect.bisection.costs import CostModel
from poolbisect.bisection.facts import Facts
from poolbisect.bisection.journal import create, locked, read, resume
from poolbisect.bisection.noise import Noise
from poolbisect.bisection.outcome import Ending, Observation, ProbeRequest, Result
from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.bisection.search import Search
from poolbisect.culprit.decisions import Decisions, resolve, take
from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.ranges import HistoryRange, commit_range
from poolbisect.history.release_ranges import ReleaseRange
from poolbisect.history.repository import open_repository

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
        journal.ended(0, step(7)(ProbeRequest(0)), AT)
        journal.suspect(7, AT)
        journal.skip(3, 5, AT)
        journal.skip(12, 12, AT)
        journal.ended(9, Observation.failed(Ending.BUILD_FAILED), AT)
        journal.forget(9, AT)
        assert journal.search.facts.blocked == {3, 4, 5, 12}
    with resume(path, COMMITS, at=AT) as journal:
        assert journal.search.facts.blocked == {3, 4, 5, 12}
        assert journal.search.facts.suspects == (7,)
    assert replay_commands(read(path)) == [
        "poolbisect bisect --good c0 --bad c32 --repo 'a path/with spaces'",
        "# 33 positions, from c0 to c32",
        "# c0: good",
        "poolbisect bisect --resume --suspect c7",
        "poolbisect bisect --resume --skip c3 --skip c3..c5",
        "poolbisect bisect --resume --skip c12",
        "# c9: build_failed",
        "poolbisect bisect --resume --forget c9",
        "# resumed",
    ]


def test_what_the_start_decided_is_printed_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with create(path, COMMITS, Plan(), command=(*COMMAND, "--skip", "c3"), at=AT) as journal:
        journal.skip(3, 3, AT)
        journal.suspect(7, AT)  # and what the timeline has seen
    with resume(path, COMMITS, at=AT) as journal:
        journal.skip(4, 4, AT)
    assert replay_commands(read(path)) == [
        "poolbisect bisect --good c0 --bad c32 --repo 'a path/with spaces' --skip c3",
        "# 33 positions, from c0 to c32",
        "# resumed",
        "poolbisect bisect --resume --skip c4",
    ]


def typed_again(history: HistoryRange, commands: list[str]) -> Facts:
    """What a search knows after the printed commands, each read as the command line reads it."""
    names_ = [entry.name for entry in history.entries]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "again.jsonl"
        with create(path, names_, Plan(), command=COMMAND, at=AT) as journal:
            for command in commands:
                words = shlex.split(command, comments=True)[3:]
                options: dict[str, list[str]] = {"--skip": [], "--forget": [], "--suspect": []}
                for option, value in zip(words[::2], words[1::2], strict=True):
                    options[option].append(value)
                decided = Decisions(
                    skips=tuple(options["--skip"]),
                    forgets=tuple(options["--forget"]),
                    suspects=tuple(options["--suspect"]),
                )
                take(journal, resolve(history, decided))
            return journal.search.facts


@pytest.mark.parametrize("span", [(1, 1), (1, 2), (1, 4), (2, 5)])
def test_typed_again_the_same_commits_and_releases_are_skipped(
    tmp_path: Path, builder: Any, span: tuple[int, int]
) -> None:
    base = builder.commit("base")
    builder.git("checkout", "-q", "-b", "side")
    inner = builder.commit("inner")
    builder.git("checkout", "-q", "main")
    for number in range(3):
        builder.commit(f"main {number}")
    builder.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    for number in range(3):
        builder.commit(f"later {number}")
    releases = ("0.5.9", "0.5.10", "0.5.10.post1", "0.5.11", "0.5.12", "0.5.13", "0.5.14")
    with open_repository(builder.folder) as repository:
        # From the good end inside the merge no parent of the next position is the one before it.
        histories = [
            ReleaseRange(releases),
            commit_range(repository, base, "main"),
            commit_range(repository, inner, "main"),
            commit_range(repository, base, "main", all_parents=True),
        ]
        for number, history in enumerate(histories):
            path = tmp_path / f"{number}.jsonl"
            names_ = [entry.name for entry in history.entries]
            with create(path, names_, Plan(), command=COMMAND, at=AT) as journal:
                journal.ended(0, step(1)(ProbeRequest(0)), AT)
                journal.skip(*span, AT)
                wanted = journal.search.facts.blocked
            _, _, *commands = replay_commands(read(path))
            assert typed_again(history, commands).blocked == wanted


@pytest.mark.parametrize(
    ("kind", "field", "value", "words"),
    [
        ("probe_ended", "position", 99, "position 99 is not one of 33"),
        ("probe_ended", "position", -1, "position -1 is not one of 33"),
        ("probe_started", "position", 33, "position 33 is not one of 33"),
        ("skip", "last", 77, "position 77 is not one of 33"),
        ("skip", "first", 6, "position 6 is c6, not c3"),
        ("probe_ended", "name", "c8", "position 0 is c0, not c8"),
        ("probe_started", "name", "c8", "position 0 is c0, not c8"),
        ("forget", "name", "c8", "position 9 is c9, not c8"),
        ("suspect", "name", "c8", "position 7 is c7, not c8"),
        ("skip", "names", ["c3", "c8"], "position 5 is c5, not c8"),
    ],
)
def test_a_line_that_means_another_commit_than_it_names_is_refused(
    tmp_path: Path, kind: str, field: str, value: object, words: str
) -> None:
    path = tmp_path / "s.jsonl"
    with create(path, COMMITS, Plan(), command=COMMAND, at=AT) as journal:
        journal.started(ProbeRequest(0), AT)
        journal.ended(0, step(7)(ProbeRequest(0)), AT)
        journal.suspect(7, AT)
        journal.skip(3, 5, AT)
        journal.forget(9, AT)
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    (number,) = (n for n, line in enumerate(lines) if line["event"] == kind)
    lines[number][field] = value
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    refusal = rf"s\.jsonl, line {number + 1}: {words}; restore"
    with pytest.raises(UsageError, match=refusal), resume(path, COMMITS, at=AT):
        pass


def test_a_folder_or_a_full_disk_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    with pytest.raises(UsageError, match=r"reports: the journal cannot be read \(Is a dir"):
        read(tmp_path / "reports")
    path = tmp_path / "s.jsonl"
    with create(path, COMMITS, Plan(), command=COMMAND, at=AT) as journal:
        path.unlink()
        path.symlink_to("/dev/full")
        with pytest.raises(InfrastructureError, match=r"s\.jsonl: .*No space left on device"):
            journal.suspect(7, AT)


def test_a_refused_event_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with create(path, COMMITS, Plan(mode=Mode.PAIRED), command=COMMAND, at=AT) as journal:
        with pytest.raises(UsageError, match="no answers by question"):
            journal.ended(0, Observation.counts(3, 4), AT)
        with pytest.raises(UsageError, match="cannot be skipped"):
            journal.skip(0, 2, AT)
    assert read(path).lines == ()
