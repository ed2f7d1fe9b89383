"""What the tests share: devices, measurements made by hand, and real git repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from poolbisect.measurement import Answer, Ended, Measurement, MemoryEvents, Outcome, SlotUse

# In CI a run must say the same of the same code; elsewhere examples vary.
settings.register_profile("poolbisect", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("poolbisect")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(
    scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], ids=str
)
def device(request: pytest.FixtureRequest) -> str:
    """Every device the memory model runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def measured() -> Callable[..., Measurement]:
    """Make a measurement whose questions `wrong` are answered wrongly and all others rightly."""

    def make(
        subject: str,
        asked: int = 1319,
        wrong: range | set[int] = range(0),
        ended: Ended = Ended.MEASURED,
        last_slot_used: bool = True,
        **more: Any,
    ) -> Measurement:
        answers = tuple(
            Answer(
                id=number,
                prompt="1+1:",
                expected=2,
                text="1+1=3" if number in wrong else "1+1=2",
                outcome=Outcome.WRONG if number in wrong else Outcome.RIGHT,
                rank=0,
                slot=1,
                finish="stop",
                accept_length=None,
            )
            for number in range(asked)
        )
        facts: dict[str, Any] = {
            "detail": "",
            "accept_length": None,
            "slots": SlotUse(64, last_slot_used, 1.0, 20, asked),
            "memory": MemoryEvents(watched=True),
            "seconds": 1.0,
            "tokens": 10 * asked,
        }
        return Measurement(
            subject=subject, ended=ended, asked=asked, answers=answers, **(facts | more)
        )

    return make


_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Somebody"), ("EMAIL", "somebody@example.org"))
}


class RepositoryBuilder:
    """A repository under construction; `git` runs any command in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = 1_770_000_000
        folder.mkdir(parents=True)
        self.git("init", "-q", "--initial-branch=main")

    def git(self, *arguments: str, stdin: str | None = None) -> str:
        date = f"{self._clock} +0200"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**clean, **_IDENTITY, **dates, "GIT_CONFIG_GLOBAL": os.devnull},
            check=True,
            capture_output=True,
            text=True,
            input=stdin,
        ).stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def commit(self, title: str, files: Mapping[str, str | None] | None = None) -> str:
        """Commit files (None deletes one) under a title; the id."""
        for path, text in (files or {}).items():
            if text is None:
                (self.folder / path).unlink()
            else:
                self.write(path, text)
        self._clock += 3600
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", title)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def new_repository(tmp_path: Path) -> Callable[[str], RepositoryBuilder]:
    """Make an empty repository in a folder of this name."""
    return lambda name: RepositoryBuilder(tmp_path / name)


@pytest.fixture
def builder(new_repository: Callable[[str], RepositoryBuilder]) -> RepositoryBuilder:
    return new_repository("Projekt ä b")


_POOLS = """
import torch

class ReqToTokenPool:
    def __init__(self, size, max_context_len, device, enable_memory_saver):
        self.size = size
        self.req_to_token = torch.zeros((size{rows}, max_context_len), dtype=torch.int32)
        self.free_slots = list(range({first}, size{rows}))

    def alloc(self, {count}):
        taken, self.free_slots = self.free_slots[:{number}], self.free_slots[{number}:]
        {give}

    def free(self, {one}):
        {take}

    def available_size(self):
        return len(self.free_slots)
"""
_COUNTING = {
    "count": "need_size",
    "number": "need_size",
    "give": "return taken",
    "one": "free_index",
    "take": "self.free_slots.append(free_index)",
}
_REQUESTS = {
    "count": "reqs",
    "number": "len(reqs)",
    "give": "return [setattr(r, 'req_pool_idx', i) or i for r, i in zip(reqs, taken)]",
    "one": "req",
    "take": "self.free_slots.append(req.req_pool_idx); req.req_pool_idx = None",
}


def pool_source(*, padded: bool = False, requests: bool = False, newest_first: bool = False) -> str:
    """Request pools as a small SGLang would have them, in one of its states."""
    call = _REQUESTS if requests else _COUNTING
    first, rows = (1, " + 1") if padded else (0, "")
    text = _POOLS.format(first=first, rows=rows, **call)
    return text.replace(".append(", ".insert(0, ") if newest_first else text


def worker_source(rows: str = "self.req_to_token_pool.size", buffer: str = "token_table") -> str:
    """A consumer of request slots with a buffer of so many rows."""
    return (
        "import torch\n\nclass Worker:\n    def start(self):\n"
        f"        self.{buffer} = torch.empty(({rows}, 4), dtype=torch.int32)\n"
    )


@dataclass(frozen=True)
class Story:
    """A small SGLang in a repository, and its commits by title."""

    builder: RepositoryBuilder
    commits: dict[str, str]

    POOL = "python/sglang/srt/mem_cache/memory_pool.py"
    WORKER = "python/sglang/srt/model_executor/model_runner.py"
    MOVED = "python/sglang/srt/model_executor/tables.py"

    @property
    def folder(self) -> Path:
        return self.builder.folder


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Sixteen commits: a table is broken by a padding row, mended, broken again, moved, mended."""
    builder = RepositoryBuilder(tmp_path_factory.mktemp("story") / "sglang ü")
    whole = "self.req_to_token_pool.req_to_token.shape[0]"
    pool, worker, moved = Story.POOL, Story.WORKER, Story.MOVED
    commits: dict[str, str] = {}

    def commit(title: str, files: Mapping[str, str | None] | None = None) -> None:
        commits[title] = builder.commit(title, files)

    commit("pools", {pool: pool_source(), "README.md": "small"})
    commit("docs", {"docs/pools.md": "token_table"})
    commit("table arrives", {worker: worker_source()})
    commit("elsewhere", {"python/sglang/srt/other.py": "x = 1\n"})
    commit("requests", {pool: pool_source(requests=True)})
    commit("comment", {worker: "# a comment\n" + worker_source()})
    commit("padding row", {pool: pool_source(requests=True, padded=True)})
    commit("unparsable", {worker: "def broken(:\n    token_table"})
    commit("parsable again", {worker: worker_source()})
    commit("mended", {worker: worker_source(whole)})
    commit("broken again", {worker: worker_source("self.req_to_token_pool.size")})
    commit("moved", {worker: "x = 1\n", moved: worker_source()})
    commit("newest first", {pool: pool_source(requests=True, padded=True, newest_first=True)})
    raising = pool_source(requests=True, padded=True).replace("= size\n", "= size // 0\n", 1)
    commit("pool raises", {pool: raising})
    commit("oldest first", {pool: pool_source(requests=True, padded=True)})
    commit("mended again", {moved: worker_source(whole)})
    return Story(builder, commits)
