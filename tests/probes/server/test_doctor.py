"""`doctor` says what the server probe lacks, and that nothing of it is needed for the miniature."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from poolbisect.cli import main


def test_it_names_what_a_server_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("POOLBISECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POOLBISECT_LEASES", str(tmp_path / "leases"))
    monkeypatch.setattr(sys, "argv", ["poolbisect", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for what in ("GPUs", "environments of commits", "ports", "leases of devices"):
        assert f"{what} (server probe)" in shown
    assert "3 of them for the server probe only" in shown
    if importlib.util.find_spec("sglang") is None:
        assert "missing SGLang (server probe): not installed; the miniature needs none" in shown
        assert "--server-command" in shown
    assert not (tmp_path / "leases").exists()  # it looks, and makes nothing
