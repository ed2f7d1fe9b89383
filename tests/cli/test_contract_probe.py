"""`poolbisect run --probe contract`: short buffers named without running a model."""

from __future__ import annotations

import json
import sys

import pytest

from poolbisect.cli import main
from poolbisect.scenario import scenario_names


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["poolbisect", "run", *arguments, "--probe", "contract"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("scenario", "subject", "rows", "missing", "short_from"),
    [
        ("mimo-canary", "original", 64, 1, 64),
        ("pd-mimo-canary", "original", 64, 5, 64),
        ("pd-mimo-canary", "unpadded", 64, 4, 64),
        ("ngram-canary", "original", 64, 1, 64),
        ("mamba-canary", "original", 128, 128, 128),
        ("pd-mamba-canary", "original", 32, 32, 32),
    ],
)
def test_it_names_the_missing_rows_and_the_first_slot_past_the_end(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    scenario: str,
    subject: str,
    rows: int,
    missing: int,
    short_from: int,
) -> None:
    code, out = run(capsys, monkeypatch, scenario, "--subject", subject, "--json")
    document = json.loads(out)
    assert code == document["exit_code"] == 1
    good, bad = document["results"]
    assert not good["short"]
    for contract in bad["contract"]:
        assert (contract["rows"], contract["missing_rows"]) == (rows, missing)
        assert contract["short_from"] == short_from


@pytest.mark.parametrize("scenario", scenario_names())
def test_the_corrected_pools_keep_every_contract(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, scenario: str
) -> None:
    code, out = run(capsys, monkeypatch, scenario, "--subject", "corrected")
    assert code == 0
    assert "hold every request slot" in " ".join(out.split())
