"""A bisect over a real history finds the culprit through servers that are really launched."""

from __future__ import annotations

import importlib._bootstrap_external as bytecode
import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from poolbisect.bisection.outcome import Ending, Kind, ProbeRequest, Result
from poolbisect.bisection.plan import Plan
from poolbisect.bisection.search import Search
from poolbisect.culprit.interface import Attempt, Probed
from poolbisect.history.ranges import CommitRange, commit_range
from poolbisect.history.repository import open_repository
from poolbisect.probes.server.options import SGLANG_COMMAND, ServerOptions
from poolbisect.probes.server.probe import ServerProbe

_spec = importlib.util.spec_from_file_location(
    "small_sglang", Path(__file__).with_name("small_sglang.py")
)
assert _spec is not None
assert _spec.loader is not None
small_sglang = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_sglang)
files, GOOD, BAD = small_sglang.files, small_sglang.GOOD, small_sglang.BAD


@dataclass
class Driven:
    """A probe with the search it serves."""

    probe: ServerProbe
    history: CommitRange
    folder: Path
    seen: list[tuple[int, Probed]]

    def at(self, position: int, questions: int = 40, offset: int = 0) -> Probed:
        number = len(self.seen)
        attempt = Attempt(number, f"run-{number}", self.folder / f"attempt-{number}")
        attempt.folder.mkdir(parents=True)
        request = ProbeRequest(position, questions, offset)
        probed = self.probe.probe(request, attempt, lambda words: None)
        self.seen.append((position, probed))
        return probed

    def search(self, **changes: Any) -> Result:
        plan = Plan(**{**_fields(self.probe.plan()), **changes})
        search = Search([entry.name for entry in self.history.entries], plan)
        while True:
            asked = search.next()
            if isinstance(asked, Result):
                return asked
            probed = self.at(asked.position, asked.questions, asked.offset)
            search.record(asked.position, probed.observation)


def _fields(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


@pytest.fixture
def drive(
    builder: Any, tmp_path: Path, options: Callable[..., ServerOptions]
) -> Iterator[Callable[..., Driven]]:
    """Open the server probe on the builder's commits from one to another."""
    opened: list[Any] = []

    def start(first: str, last: str, **more: Any) -> Driven:
        own = {"command": SGLANG_COMMAND}
        if (tmp_path / "wheels").exists():  # of the same name and version in other tests
            own["environments"] = tmp_path / "environments"
        chosen = options(**{**own, **more})
        repository = open_repository(builder.folder)
        history = commit_range(repository, first, last)
        number = len(opened)
        probe = ServerProbe(history, chosen, tmp_path / f"scratch-{number}")
        opened.extend((probe, repository))
        return Driven(probe, history, tmp_path / f"attempts-{number}", [])

    yield start
    for one in opened:
        with closing(one):
            pass


@pytest.mark.usefixtures("offline")
def test_12_good_the_bug_and_12_bad(builder: Any, make_wheel: Any, drive: Any) -> None:
    """A dead block in the good half, a changed dependency, and the culprit as the 13th commit."""
    make_wheel("steady", "1.0", {"steady.py": "ONE = 1\n"})
    make_wheel("steady", "2.0", {"steady.py": "TWO = 2\n"})
    one, two = "import steady; steady.ONE", "import steady; steady.TWO"
    builder.commit("start", files(dependencies=["steady==1.0"], imports=one))
    commits = [builder.commit("good 1", {"notes.md": "1"})]
    for number in range(2, 13):
        change: dict[str, str | None] = {"notes.md": str(number)}
        if number == 6:
            change["python/sglang/launch_server.py"] = "def broken(:\n"
        if number == 9:  # mended, and with another dependency
            change |= files(dependencies=["steady==2.0"], imports=two)
        commits.append(builder.commit(f"good {number}", change))
    culprit = builder.commit("the bug", {"python/sglang/arithmetic.py": BAD})
    commits.append(culprit)
    for number in range(1, 12):
        commits.append(builder.commit(f"bad {number}", {"notes.md": f"b{number}"}))
    assert len(commits) == 24
    driven = drive(commits[0], commits[-1])
    result = driven.search(end_questions=60, max_end_questions=240)
    assert result.kind is Kind.CULPRIT, result
    assert driven.history.entries[result.culprit or 0].name == culprit
    assert _launches(driven) <= 10
    for position, probed in driven.seen:
        if probed.observation.ending is Ending.MEASURED:
            proof = probed.evidence["provenance"]
            assert proof["revision"] == driven.history.entries[position].name
            assert "/worktrees/" in proof["imported_from"]
            version = "2.0" if position >= 8 else "1.0"
            assert proof["declared"] == [f"steady=={version}"]


def _launches(driven: Driven) -> int:
    return len([position for position, _ in itertools.groupby(p for p, _ in driven.seen)])


def test_a_dead_block_that_hides_the_culprit_is_a_range(builder: Any, drive: Any) -> None:
    first = builder.commit("start", files())
    broken = {"python/sglang/launch_server.py": "import no_such_module\n"}
    for number in range(3):
        builder.commit(f"dead {number}", {**broken, "notes.md": str(number)})
    builder.commit("the bug, and alive", files(BAD))
    last = builder.commit("bad", {"notes.md": "x"})
    driven = drive(first, last)
    result = driven.search(end_questions=60, max_end_questions=240)
    assert (result.kind, result.suspects) == (Kind.SUSPECT_RANGE, (1, 4))
    dead = [p.observation for at, p in driven.seen if 1 <= at <= 3]
    assert dead
    assert all(seen.ending is Ending.BUILD_FAILED for seen in dead)
    assert "No module named 'no_such_module'" in dead[0].note


@pytest.mark.usefixtures("offline")
def test_dependencies_are_those_of_the_commit_whatever_the_order(
    builder: Any, make_wheel: Any, drive: Any
) -> None:
    imports = "import steady; print('steady', steady.VERSION, flush=True)"
    commits = []
    for version in ("1.0", "2.0"):
        make_wheel("steady", version, {"steady.py": f"VERSION = {version!r}\n"})
        tree = files(dependencies=[f"steady=={version}"], imports=imports)
        commits.append(builder.commit(version, tree))
    commits.append(builder.commit("none", files()))
    driven = drive(commits[0], commits[-1])
    keys: dict[int, set[str]] = {}
    for position in (1, 0, 1, 2, 0):
        probed = driven.at(position, questions=3)
        log = (driven.folder / f"attempt-{len(driven.seen) - 1}" / "server.log").read_text()
        assert re_version(log) == {0: "1.0", 1: "2.0", 2: None}[position]
        proof = probed.evidence["provenance"]
        keys.setdefault(position, set()).add(proof["environment"])
        assert proof["environment_reused"] == ([p for p, _ in driven.seen[:-1]].count(position) > 0)
    assert all(len(found) == 1 for found in keys.values())
    assert len({key for found in keys.values() for key in found}) == 3


def re_version(log: str) -> str | None:
    return next((line.split()[1] for line in log.splitlines() if line.startswith("steady")), None)


@pytest.mark.usefixtures("offline")
def test_a_dependency_that_does_not_install_is_named(
    builder: Any, make_wheel: Any, drive: Any
) -> None:
    make_wheel("steady", "1.0", {"steady.py": ""})
    first = builder.commit("start", files())
    last = builder.commit("pinned", files(dependencies=["steady==7.7"]))
    driven = drive(first, last)
    seen = driven.at(1)
    assert seen.observation.ending is Ending.BUILD_FAILED
    assert "steady==7.7" in seen.observation.note
    assert seen.evidence["class"] == "dependency"
    assert driven.at(1).observation.note == seen.observation.note


def test_stale_bytecode_is_never_run(builder: Any, drive: Any, tmp_path: Path) -> None:
    """Bait that Python itself would take: caches that were committed, marked as unchecked."""
    cache = "python/sglang/__pycache__/arithmetic." + sys.implementation.cache_tag + ".pyc"
    lie = compile(BAD, "arithmetic.py", "exec")
    bait = bytecode._code_to_hash_pyc(lie, b"\0" * 8, checked=False)  # type: ignore[attr-defined]
    first = builder.commit("start", files())
    (builder.folder / cache).parent.mkdir()
    (builder.folder / cache).write_bytes(bait)
    last = builder.commit("bait")
    assert _plain_python_multiplies(builder.folder / "python") == 7
    driven = drive(first, last)
    for position in (1, 0, 1):
        assert driven.at(position).observation.outcomes == "1" * 40


def _plain_python_multiplies(folder: Path) -> int:
    code = "from sglang.arithmetic import multiply; print(multiply(2, 3))"
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONPYCACHEPREFIX": ""}
    import subprocess

    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    return int(shown.stdout)


def test_commits_of_one_second_and_size_are_told_apart(builder: Any, drive: Any) -> None:
    """The good and the bad source have the same length and are checked out within a second."""
    assert len(GOOD) == len(BAD)
    first = builder.commit("good", files())
    last = builder.commit("bad", files(BAD))
    driven = drive(first, last)
    good, bad = (driven.at(position).observation for position in (0, 1))
    assert good.correct == 40
    assert bad.correct < 30
    assert driven.at(0).observation.correct == 40


def test_one_server_answers_a_position_until_another_is_asked(builder: Any, drive: Any) -> None:
    first = builder.commit("good", files())
    last = builder.commit("bad", files(BAD))
    driven = drive(first, last)
    pids = [
        driven.at(position, 5, offset).evidence["provenance"]["process"]
        for position, offset in ((0, 0), (0, 5), (1, 0), (0, 0))
    ]
    assert pids[0] == pids[1]
    assert len(set(pids)) == 3
    with_offset = driven.seen[1][1].observation
    assert (with_offset.offset, with_offset.outcomes) == (5, "11111")
    assert (driven.folder / "attempt-0" / "answers.jsonl").read_text().count("\n") == 5
