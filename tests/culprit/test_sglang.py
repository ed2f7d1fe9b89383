"""SGLang itself, in the clone that POOLBISECT_SGLANG_REPO names: the right commits are found."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbisect.cli import main

CLONE = os.environ.get("POOLBISECT_SGLANG_REPO")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CLONE is None, reason="POOLBISECT_SGLANG_REPO names no clone of SGLang"),
]

INTRODUCED, FIXED = "cb8fbd53f", "1e404afec"


@pytest.fixture
def bisect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Any:
    def run(*arguments: str) -> dict[str, Any]:
        line = ["poolbisect", "bisect", "--repo", str(CLONE), "--json", *arguments]
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", line)
        with pytest.raises(SystemExit) as ended:
            main()
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert ended.value.code == document["exit_code"] == 0
        return document

    return run


@pytest.mark.parametrize("probe", ["contract", "miniature"])
def test_the_padding_row(bisect: Any, probe: str) -> None:
    ends = ("--good", "8a530468f", "--bad", f"{FIXED}^", "--scenario", "mimo-canary")
    found = bisect(*ends, "--probe", probe)
    assert found["culprit"]["commit"].startswith(INTRODUCED)
    assert found["confidence"] >= 0.99
    assert {k: v["verdict"] for k, v in found["confirmation"].items()} == {
        "parent": "good",
        "culprit": "bad",
        "revert": "good",
    }
    blamed = found["attribution"]
    assert (blamed["buffer"], blamed["rows"]) == ("req_to_hidden_states_pool", 64)
    assert (blamed["index"], blamed["space"]) == (64, "request slot")
    assert blamed["since"]["commit"].startswith("160a06cab2")


def test_its_fix(bisect: Any) -> None:
    ends = ("--bad", INTRODUCED, "--good", FIXED, "--scenario", "mimo-canary")
    assert bisect(*ends, "--find", "fixed")["culprit"]["commit"].startswith(FIXED)


def test_the_mamba_mapping_in_6211_commits(bisect: Any) -> None:
    ends = ("--good", "868403f642^", "--bad", "8a530468f^", "--scenario", "mamba-canary")
    found = bisect(*ends)
    assert found["commits"] == 6212
    assert found["culprit"]["commit"].startswith("868403f642")
    assert found["probes"] <= 2 + 13


@pytest.mark.parametrize("probe", ["contract", "miniature"])
def test_the_crash_of_pd_decode(bisect: Any, probe: str) -> None:
    ends = ("--good", "eec70286ec^", "--bad", "2d2be5d7b2^", "--scenario", "pd-mamba-canary")
    found = bisect(*ends, "--probe", probe)
    assert found["culprit"]["commit"].startswith("eec70286ec")
    assert found["symptom"] == "crash"
    if probe == "miniature":
        assert "crashed" in found["confirmation"]["culprit"]["text"]
