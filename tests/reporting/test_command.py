"""`poolbisect report`: what it writes, prints and ends with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from poolbisect.cli import main
from tests.reporting.conftest import MakeRun


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["poolbisect", "report", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(capsys, monkeypatch)


def test_all_three_files_are_written_and_named(cli: Cli, make_run: MakeRun) -> None:
    folder = make_run()
    code, out, _ = cli(folder)
    assert code == 0
    names = ["report.html", "report.md", "junit.xml"]
    assert out.split() == [str(folder / name) for name in names]
    assert all((folder / name).stat().st_size for name in names)


@pytest.mark.parametrize(
    ("format_", "name"),
    [("html", "report.html"), ("markdown", "report.md"), ("junit", "junit.xml")],
)
def test_one_format_writes_one_file(cli: Cli, make_run: MakeRun, format_: str, name: str) -> None:
    folder = make_run()
    before = {path.name for path in folder.iterdir()}
    code, _, _ = cli(folder, "--format", format_)
    assert code == 0
    assert {path.name for path in folder.iterdir()} - before == {name}


def test_json_prints_the_result_and_writes_nothing(cli: Cli, make_run: MakeRun) -> None:
    folder = make_run()
    before = sorted(folder.iterdir())
    code, out, err = cli(folder, "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((folder / "result.json").read_text())
    assert sorted(folder.iterdir()) == before


def test_a_smaller_markdown_limit_is_kept(cli: Cli, make_run: MakeRun) -> None:
    folder = make_run()
    assert cli(folder, "--format", "markdown", "--markdown-limit", "900")[0] == 0
    assert (folder / "report.md").stat().st_size <= 900


def test_mistakes_end_with_2_and_one_sentence(cli: Cli, make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run()
    (folder / "result.json").write_text("{")
    for arguments in ([folder], [tmp_path / "nowhere"], [folder.parent], [folder, "--format=json"]):
        code, out, err = cli(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("poolbisect: ")
        assert err.count("\n") == 1
    assert cli(tmp_path, "--index", "--format", "junit")[0] == 2


def test_the_index_is_written_on_request(cli: Cli, make_run: MakeRun, tmp_path: Path) -> None:
    make_run()
    code, out, _ = cli(tmp_path / "reports", "--index")
    assert code == 0
    assert out.strip() == str(tmp_path / "reports" / "index.html")


def test_rendering_loads_neither_torch_nor_matplotlib(make_run: MakeRun) -> None:
    folder = make_run()
    script = (
        "import sys; from pathlib import Path; from poolbisect.reporting.files import "
        f"write_reports; write_reports(Path({str(folder)!r})); "
        "print([name for name in ('torch', 'matplotlib', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
