"""`poolbisect run` on every shipped scenario: mamba caches, PD decode, n-grams, accept length."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.cli import main
from poolbisect.pools.interface import HIDDEN_STATES, MAMBA_MAPPINGS, TOKEN_TABLE
from poolbisect.scenario import scenario_folder

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["poolbisect", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    return call


def results(
    cli: Cli, folder: Path, *arguments: str, code: int | None = 0
) -> dict[str, dict[str, Any]]:
    """Results of a run by subject; it ends with `code` (None: any), its folder says the same."""
    ended, out, err = cli("run", *arguments, "--json", "--out", str(folder))
    assert code in (None, ended), (out[-2000:], err)
    document = json.loads(out)
    assert document["exit_code"] == ended
    assert json.loads((Path(document["report"]) / "result.json").read_text()) == document
    return {result["subject"]: result for result in document["results"]}


def accesses(result: dict[str, Any]) -> int:
    return int(result["out_of_range"]["reads"] + result["out_of_range"]["writes"])


def indices(result: dict[str, Any]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for one in result["out_of_range"]["buffers"]:
        found.setdefault(one["buffer"], set()).add(one["index"])
    return found


def tokens(folder: Path, subject: str) -> list[list[int]]:
    (file,) = folder.rglob(f"{subject}.jsonl")
    return [json.loads(line)["tokens"] for line in file.read_text().splitlines()]


def within_baseline(result: dict[str, Any]) -> bool:
    return result["verdict"] == "good" and "in line with its baseline" in (result["baseline"] or "")


@pytest.mark.slow
def test_mamba_canary(cli: Cli, tmp_path: Path) -> None:
    found = results(cli, tmp_path, "mamba-canary")
    good, bad = found["corrected"], found["original"]
    assert accesses(good) == 0
    assert within_baseline(good)
    assert good["workaround"] is None
    assert bad["verdict"] == "bad"
    assert bad["comparison"]["paired"]
    assert bad["comparison"]["p_value"] < 0.001
    assert indices(bad) == {name: set(range(128, 256)) for name in MAMBA_MAPPINGS}
    assert bad["workaround"] == "at least --max-mamba-cache-size 256"
    assert [one["short_from"] for one in bad["contract"]] == [128, 128]
    for result in found.values():
        assert result["ended"] == "measured"
        assert result["last_slot"] == 255
        assert result["slot_coverage"] == 1


def test_the_workaround_is_printed_and_works(cli: Cli, tmp_path: Path) -> None:
    arguments = ("--questions", "300", "--subject", "original", "--out", str(tmp_path))
    code, out, _ = cli("run", "mamba-canary", *arguments)
    assert code == 0
    assert "at least --max-mamba-cache-size 256" in " ".join(out.split())
    path = tmp_path / "ample.toml"
    text = (scenario_folder() / "mamba-canary.toml").read_text()
    text = text.replace("max-mamba-cache-size = 128", "max-mamba-cache-size = 256")
    path.write_text(text.replace('expect = "bad"', 'expect = "good"'))
    found = results(cli, tmp_path / "again", str(path), "--questions", "300", code=None)
    assert accesses(found["original"]) == 0
    assert found["original"]["comparison"]["gained"] == 0
    assert found["original"]["workaround"] is None
    assert found["original"]["comparison"]["lost"] == 0


@pytest.mark.slow
def test_mamba_ample(cli: Cli, tmp_path: Path) -> None:
    found = results(cli, tmp_path, "mamba-ample")
    for result in found.values():
        assert result["verdict"] == "good"
        assert accesses(result) == 0
        assert result["workaround"] is None
    assert tokens(tmp_path, "original") == tokens(tmp_path, "corrected")
    assert within_baseline(found["corrected"])


@pytest.mark.slow
def test_pd_mamba_canary(cli: Cli, tmp_path: Path) -> None:
    found = results(cli, tmp_path, "pd-mamba-canary")
    good, bad = found["corrected"], found["original"]
    assert good["ended"] == "measured"
    assert good["last_slot"] == 63
    assert within_baseline(good)
    assert bad["ended"] == "crashed"
    assert bad["verdict"] == "bad"
    assert "IndexError: index 32 is out of bounds for dimension 0 with size 32" in bad["reason"]
    # Computed before the run from the configuration, met in it.
    (contract,) = bad["contract"]
    assert (contract["short_from"], contract["rows"], contract["last_index"]) == (32, 32, 63)
    assert bad["answered"] < bad["asked"]
    assert bad["comparison"] is None


@pytest.mark.slow
def test_pd_mimo_canary(cli: Cli, tmp_path: Path) -> None:
    found = results(cli, tmp_path, "pd-mimo-canary")
    assert accesses(found["corrected"]) == 0
    assert within_baseline(found["corrected"])
    assert indices(found["unpadded"]) == {HIDDEN_STATES: {64, 65, 66, 67}}
    assert indices(found["original"]) == {HIDDEN_STATES: {64, 65, 66, 67, 68}}
    for name in ("original", "unpadded"):
        assert found[name]["verdict"] == "bad"
        assert found[name]["comparison"]["p_value"] < 0.001


@pytest.mark.slow
def test_ngram_canary(cli: Cli, tmp_path: Path) -> None:
    found = results(cli, tmp_path, "ngram-canary")
    assert accesses(found["corrected"]) == 0
    assert within_baseline(found["corrected"])
    assert accesses(found["original"]) > 0
    assert indices(found["original"]) == {TOKEN_TABLE: {64}}
    (contract,) = found["original"]["contract"]
    assert (contract["missing_rows"], contract["short_from"]) == (1, 64)
    assert found["original"]["verdict"] == "bad"


@pytest.mark.slow
def test_accept_length_canary(cli: Cli, tmp_path: Path) -> None:
    found = results(cli, tmp_path, "accept-length-canary")
    good, bad = found["corrected"], found["unpadded"]
    assert within_baseline(good)
    assert bad["verdict"] == "bad"
    assert bad["accept_length"] < good["accept_length"]
    assert (bad["comparison"]["lost"], bad["comparison"]["gained"]) == (0, 0)
    assert tokens(tmp_path, "unpadded") == tokens(tmp_path, "corrected")
    assert bad["out_of_range"]["padded_writes"] > 0
    assert bad["out_of_range"]["padded_targets"] == [f"request slot 0 of {HIDDEN_STATES}"]
    assert good["out_of_range"]["padded_writes"] == 0
    assert "Padded rows wrote" in bad["attribution"]
    assert accesses(good) == accesses(bad) == 0


@pytest.mark.parametrize(("access", "ended"), [("checked", "crashed"), ("unchecked", "measured")])
def test_the_result_says_which_face_of_the_fault_ran(
    cli: Cli, tmp_path: Path, access: str, ended: str
) -> None:
    text = (scenario_folder() / "mamba-canary.toml").read_text()
    assert 'mapping-access = "unchecked"' in text
    path = tmp_path / "face.toml"
    path.write_text(
        text.replace('mapping-access = "unchecked"', f'mapping-access = "{access}"')
        .replace("max-running-requests = 256", "max-running-requests = 16")
        .replace("max-mamba-cache-size = 128", "max-mamba-cache-size = 6")
    )
    arguments = ("run", str(path), "--questions", "60", "--json", "--out", str(tmp_path))
    _, out, _ = cli(*arguments)
    document = json.loads(out)
    assert document["configuration"]["memory"]["mapping-access"] == access
    (bad,) = [one for one in document["results"] if one["subject"] == "original"]
    assert bad["ended"] == ended
    if access == "checked":
        assert "index 6 is out of bounds for dimension 0 with size 6" in bad["reason"]
    else:
        assert indices(bad) == {name: set(range(6, 16)) for name in MAMBA_MAPPINGS}
    _, console, _ = cli("run", str(path), "--questions", "60", "--out", str(tmp_path / "more"))
    assert access in console


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max-mamba-cache-size = 128", "max-mamba-cache-size = 2", "--max-mamba-cache-size 2"),
        ("max-mamba-cache-size = 128", "max-mamba-cache-size = 0", "max-mamba-cache-size"),
        ('"extra_buffer"', '"some_buffer"', "mamba-scheduler-strategy"),
        ('"unchecked"', '"sometimes"', "mapping-access"),
        ('pools = "mamba"', 'pools = "mammoth"', "mammoth"),
        ("dp-size = 1", "dp-size = 2", "--enable-dp-attention"),
    ],
)
def test_a_scenario_that_cannot_be_served_is_one_sentence_and_exit_2(
    cli: Cli, tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = (scenario_folder() / "mamba-canary.toml").read_text()
    assert old in text
    path = tmp_path / "changed.toml"
    path.write_text(text.replace(old, new))
    code, out, err = cli("run", str(path), "--questions", "20", "--out", str(tmp_path / "out"))
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
