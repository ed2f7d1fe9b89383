"""What the tests of the command probe share: fingerprints, hostile settings, runs and searches."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from poolbisect.bisection.outcome import Find, ProbeRequest, Result
from poolbisect.bisection.plan import Plan
from poolbisect.bisection.search import Search
from poolbisect.culprit.interface import Attempt, Probed
from poolbisect.history.ranges import commit_range
from poolbisect.history.repository import open_repository
from poolbisect.probes.command.options import CommandOptions
from poolbisect.probes.command.probe import CommandProbe
from poolbisect.probes.command.tree import marked


def _fingerprint(root: Path) -> dict[str, tuple[str, int]]:
    found = {}
    for path in sorted(root.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(root))] = (
            hashlib.sha256(content).hexdigest(),
            path.lstat().st_mode,
        )
    return found


@pytest.fixture(scope="session")
def fingerprint() -> Callable[[Path], dict[str, tuple[str, int]]]:
    """Every file's contents and mode, .git included, and every folder."""
    return _fingerprint


def _until(true: Callable[[], Any], seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found


@pytest.fixture(scope="session")
def until() -> Callable[..., Any]:
    """Wait until something holds; its value."""
    return _until


@pytest.fixture(scope="session")
def gone() -> Callable[[str], None]:
    """Wait until no process of a tree is left."""
    return lambda mark: _until(lambda: not list(marked(mark)))


@dataclass
class Hostile:
    """A repository in disorder, whose every setting would run a program that leaves a trace."""

    builder: Any
    trace: Path
    commits: list[str]
    program: Path

    @property
    def folder(self) -> Path:
        return self.builder.folder


@pytest.fixture
def hostile(builder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    commits = []
    for number in range(6):
        files = {
            "state.txt": "good\n" if number < 3 else "bad\n",
            "big.bin": f"pointer {number}\n",
            ".gitattributes": "*.bin filter=lfs diff=traced\n*.txt text\n",
            "collides": None if number != 4 else "tracked here\n",
        }
        files = {path: text for path, text in files.items() if text or number == 5}
        commits.append(builder.commit(f"commit {number}", files))
    builder.write("stashed.txt", "stashed")
    builder.git("stash", "push", "-q", "-u")
    builder.git("checkout", "-q", "--detach", "main~1")
    builder.write("state.txt", "staged\n")
    builder.git("add", "-A")
    builder.write("state.txt", "dirty\n")
    builder.git("checkout", "-q", "main~3", "--", "big.bin")
    builder.write("untracked ä.txt", "untracked\n")
    trace = tmp_path / "trace"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{trace}'\ncat\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / hook).symlink_to(program)
    settings = {
        "core.fsmonitor": str(program),
        "core.hooksPath": str(hooks),
        "core.autocrlf": "true",
        "core.eol": "crlf",
        "core.attributesFile": str(tmp_path / "attributes"),
        "filter.lfs.smudge": str(program),
        "filter.lfs.process": str(program),
        "filter.lfs.required": "true",
        "diff.external": str(program),
        "checkout.defaultRemote": "origin",
        "submodule.recurse": "true",
        "core.pager": str(program),
        "init.templateDir": str(tmp_path / "template"),
    }
    (tmp_path / "template" / "hooks").mkdir(parents=True)
    (tmp_path / "template" / "hooks" / "post-checkout").symlink_to(program)
    (tmp_path / "attributes").write_text("* filter=lfs\n")
    for name, value in settings.items():
        builder.git("config", name, value)
    config = builder.folder / ".git" / "config"
    users = tmp_path / "users.gitconfig"
    users.write_text(config.read_text().replace("bare", "ignored"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(users))
    trace.unlink(missing_ok=True)  # what making this has run
    return Hostile(builder, trace, commits, program)


@dataclass
class Bench:
    """Runs a command probe on a repository as the bisect would."""

    folder: Path
    repository: Path
    count: int = 0
    said: list[str] = field(default_factory=list)

    def attempt(self) -> Attempt:
        self.count += 1
        folder = self.folder / f"attempt-{self.count}"
        folder.mkdir()
        return Attempt(self.count, uuid4().hex, folder)

    def open(
        self,
        command: Sequence[str],
        options: CommandOptions | None = None,
        ends: tuple[str, str] = ("HEAD~1", "HEAD"),
        find: Find = Find.INTRODUCED,
    ) -> CommandProbe:
        repository = open_repository(self.repository)
        return CommandProbe(
            commit_range(repository, *ends),
            command,
            options or CommandOptions(),
            self.folder / "scratch",
            find=find,
            trees=self.folder / "trees",
            watch=self.said.append,
        )

    def once(
        self,
        command: Sequence[str],
        options: CommandOptions | None = None,
        position: int = 0,
        request: ProbeRequest | None = None,
        **more: Any,
    ) -> Probed:
        """One probe; its mode is that of the options, decided as the bisect would."""
        probe = self.open(command, options, **more)
        try:
            probe.plan()
            return probe.probe(request or ProbeRequest(position), self.attempt(), self.said.append)
        finally:
            probe.close()

    def search(
        self,
        command: Sequence[str],
        options: CommandOptions | None = None,
        find: Find = Find.INTRODUCED,
        **more: Any,
    ) -> tuple[Result, Plan, list[tuple[ProbeRequest, Probed]]]:
        """A whole search."""
        probe = self.open(command, options, find=find, **more)
        try:
            plan = replace(probe.plan(), find=find)
            names = [entry.name for entry in probe._history.entries]
            search = Search(names, plan)
            taken: list[tuple[ProbeRequest, Probed]] = []
            while not isinstance(request := search.next(), Result):
                assert len(taken) < 200, "the search does not end"
                seen = probe.probe(request, self.attempt(), self.said.append)
                taken.append((request, seen))
                search.record(request.position, seen.observation)
            return request, plan, taken
        finally:
            probe.close()


@pytest.fixture
def bench(tmp_path: Path, builder: Any) -> Iterator[Bench]:
    """Runs probes on the repository of `builder`; nothing of them may be left afterwards."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    folder = tmp_path / "bench"
    folder.mkdir()
    yield Bench(folder, builder.folder)
    children = psutil.Process().children(recursive=True)
    left = [process for process in children if process.pid not in before]
    assert [process.name() for process in left if process.name() != "git"] == []
    assert not [path for path in folder.glob("trees/*") if path.is_dir()]
