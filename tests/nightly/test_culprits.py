"""From a new finding of a checkout to the commit, by the contract timeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.nightly.culprit import find_culprit
from poolbisect.scenario import load_scenario

WRITE = """
    def write(self, indices, values):
        self.req_to_token[indices] = values
"""


def test_the_one_breach_that_still_stands_is_named(story: Any) -> None:
    commits = story.commits
    ngram = load_scenario("ngram-canary")
    found = find_culprit(story.folder, commits["table arrives"], commits["padding row"], ngram)
    assert found.entry is not None
    assert (found.entry["commit"], found.entry["title"]) == (commits["padding row"], "padding row")
    assert "token_table" in found.text
    assert not found.confirmed
    assert found.transitions


def test_what_was_mended_on_the_way_is_not_blamed(story: Any) -> None:
    commits = story.commits
    ngram = load_scenario("ngram-canary")
    found = find_culprit(story.folder, commits["table arrives"], commits["broken again"], ngram)
    assert found.entry is not None
    assert found.entry["title"] == "broken again"
    found = find_culprit(story.folder, commits["table arrives"], commits["mended"], ngram)
    assert found.entry is None
    assert found.transitions
    assert "the contract does not explain it" in found.text


@pytest.mark.slow
@pytest.mark.parametrize("bisect", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_checkout_that_breaks_is_new_and_its_commit_is_named(
    tmp_path: Path, new_repository: Callable[[str], Any], story: Any, bisect: bool
) -> None:
    def source(title: str, path: str) -> str:
        return str(story.builder.git("show", f"{story.commits[title]}:{path}")) + "\n"

    pool, worker = story.POOL, story.WORKER
    builder = new_repository("sglang ü")
    first = {pool: source("requests", pool) + WRITE, worker: source("table arrives", worker)}
    builder.commit("pools", first)
    out = tmp_path / "reports"

    def night(*more: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "poolbisect", "nightly", "--json", "--out", str(out)]
        chosen = ["--scenario", "ngram-canary", "--repo", str(builder.folder)]
        done = subprocess.run(
            [*command, *chosen, "--questions", "140", *more],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert "Traceback" not in done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        assert document["exit_code"] == done.returncode
        return document

    assert night()["exit_code"] == 0
    builder.commit("docs", {"docs/a.md": "a"})
    culprit = builder.commit("padding row", {pool: source("padding row", pool) + WRITE})
    builder.commit("more docs", {"docs/a.md": "b"})
    before = builder.git("status", "--porcelain=v2", "--branch")
    bad = night(*(["--bisect"] if bisect else []))
    assert bad["exit_code"] == 1
    (finding,) = bad["findings"]
    assert (finding["state"], finding["role"]) == ("new", "checkout")
    assert finding["culprit"]["commit"] == culprit
    assert finding["culprit"]["confirmed"] is bisect
    if bisect:
        folder = Path(bad["report"]) / finding["culprit"]["report"]
        assert json.loads((folder / "result.json").read_text())["culprit"]["commit"] == culprit
        assert (folder / "report.html").exists()
    assert builder.git("status", "--porcelain=v2", "--branch") == before
