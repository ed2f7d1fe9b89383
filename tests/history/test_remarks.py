"""A culprit that touches no code is named with that remark."""

from __future__ import annotations

from typing import Any

import pytest

from poolbisect.history.remarks import remark
from poolbisect.history.repository import open_repository

PROJECT = """[project]
dependencies = [
    "torch>=2.9",
    "flashinfer-python[cu12]=={version}",
]
{more}"""


def said(builder: Any, revision: str = "main") -> str:
    with open_repository(builder.folder) as repository:
        return remark(repository, repository.commit(revision))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"README.md": "x", "docs/guide/conf.py": "x"}, "documentation only"),
        ({"test/srt/test_a.py": "x", "python/sglang/test/few_shot.py": "x"}, "measurement"),
        ({"benchmark/gsm8k/bench_sglang.py": "x"}, "measurement"),
        ({"python/sglang/eval/run_eval.py": "x"}, "measurement"),
        ({"python/sglang/srt/pool.py": "x"}, ""),
        ({"python/sglang/srt/latest.py": "x"}, ""),
        ({"python/sglang/srt/pool.py": "x", "README.md": "x"}, ""),
        ({}, "no file"),
    ],
)
def test_by_what_is_touched(builder: Any, files: dict[str, str], words: str) -> None:
    builder.commit("before", {"python/sglang/srt/pool.py": "y", "README.md": "y"})
    builder.commit("culprit", files)
    found = said(builder)
    assert words in found
    assert bool(words) == bool(found)


def test_a_pinned_version_is_named_old_and_new(builder: Any) -> None:
    path = "python/pyproject.toml"
    builder.commit("before", {path: PROJECT.format(version="0.2.1", more="")})
    builder.commit("pin", {path: PROJECT.format(version="0.2.2.post1", more="")})
    assert said(builder) == "it changes only pinned versions: flashinfer-python 0.2.1 → 0.2.2.post1"
    builder.commit("more", {path: PROJECT.format(version="0.2.3", more="[tool.x]\nfast = true\n")})
    assert said(builder) == ""


def test_the_same_pin_in_several_files(builder: Any) -> None:
    files = {
        "docker/Dockerfile": "ARG SGL_KERNEL_VERSION={}\n",
        "requirements.txt": "sgl-kernel=={}\n",
    }
    builder.commit("before", {path: text.format("0.3.1") for path, text in files.items()})
    builder.commit("pin", {path: text.format("0.3.2") for path, text in files.items()})
    found = said(builder)
    assert "sgl-kernel 0.3.1 → 0.3.2" in found
    assert "SGL_KERNEL_VERSION 0.3.1 → 0.3.2" in found


def test_a_merge_is_judged_by_what_it_brings(builder: Any) -> None:
    builder.commit("base", {"python/sglang/srt/pool.py": "y"})
    builder.git("checkout", "-q", "-b", "topic")
    builder.commit("docs", {"docs/x.md": "x"})
    builder.git("checkout", "-q", "main")
    builder.commit("code", {"python/sglang/srt/pool.py": "z"})
    builder.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
    assert said(builder) == "it touches documentation only"
