"""`poolbisect timeline`: exit codes, JSON on stdout alone, the table, and the user's mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbisect.cli import main
from poolbisect.cli import timeline as timeline_command

FIELDS = {"schema", "good", "bad", "commits", "probed", "untestable", "seconds", "transitions"}


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["poolbisect", "timeline", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.setenv("COLUMNS", "220")
    monkeypatch.chdir(tmp_path)
    return Cli(capsys, monkeypatch)


def test_json_is_one_object_and_progress_is_elsewhere(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["requests"], "--bad", "main~5")
    code, out, _ = cli("--repo", str(story.folder), *ends, "--scenario", "ngram-canary", "--json")
    assert code == 0
    document = json.loads(out)
    assert set(document) >= FIELDS
    assert document["schema"] == "poolbisect.timeline/1"
    assert document["good"] == story.commits["requests"]
    assert document["bad"] == story.commits["broken again"]
    assert document["commits"] == 7
    assert document["untestable"] == 1
    kinds = [(one["kind"], one["buffer"], one["title"]) for one in document["transitions"]]
    assert ("introduced", "token_table", "padding row") in kinds
    assert kinds[-1] == ("re-introduced", "token_table", "broken again")
    (report,) = Path("reports/timeline").iterdir()
    assert json.loads((report / "result.json").read_bytes()) == document
    assert "padding row" in (report / "report.html").read_text()
    last = document["transitions"][-1]
    assert last["commit"] == story.commits["broken again"]
    assert last["date"].startswith("2026-")
    assert (last["before"]["rows"], last["after"]["rows"]) == (65, 64)
    assert last["after"]["largest_slot"] == 64
    assert last["after"]["missing"] == 1
    assert last["after"]["file"].endswith("model_runner.py")


def test_the_table_names_commits_buffers_and_rows(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["comment"], "--bad", story.commits["padding row"])
    code, out, err = cli("--repo", str(story.folder), *ends)
    assert code == 0
    assert "Traceback" not in out + err
    assert f"{story.commits['comment'][:10]}..{story.commits['padding row'][:10]}" in out
    assert "2 commits, 2 probed, 0 untestable" in out
    assert "introduced" in out
    assert "64 rows, slots to 63 → 64 rows, slots to 64: short by 1" in out


def test_a_range_without_transitions_is_an_answer(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["pools"], "--bad", story.commits["docs"])
    code, out, _ = cli("--repo", str(story.folder), *ends)
    assert code == 0
    assert "No transition" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--good", "main", "--bad", "main"), "the same commit"),
        (("--good", "main", "--bad", "main~1"), "swap the two"),
        (("--good", "nowhere", "--bad", "main"), "no commit 'nowhere'"),
        (("--good", "main~1", "--bad", "main", "--scenario", "none"), "no scenario is named"),
        (("--good", "main~1", "--bad", "main", "--releases"), "neither --repo nor --all-parents"),
        (("--good", "main~1", "--bad", "main", "--pre-releases"), "is for --releases"),
        (("--good", "main~1"), "Missing option"),
    ],
)
def test_mistakes_end_with_2_and_say_what_to_do(
    cli: Cli, story: Any, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = cli("--repo", str(story.folder), *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_a_folder_without_a_repository(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("--repo", str(tmp_path), "--good", "a", "--bad", "b")
    assert (code, out) == (2, "")
    assert "no git repository" in err


def test_the_checkout_is_as_it_was(cli: Cli, story: Any) -> None:
    def contents() -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in story.folder.rglob("*") if p.is_file()}

    before = contents()
    cli("--repo", str(story.folder), "--good", "main~3", "--bad", "main", "--json")
    assert contents() == before


def test_an_interrupt_ends_with_130(cli: Cli, story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(timeline_command, "timeline", interrupted)
    code, out, err = cli("--repo", str(story.folder), "--good", "main~1", "--bad", "main", "--json")
    assert (code, out) == (130, "")
    assert "interrupted" in err


def test_help_comes_without_heavy_imports() -> None:
    code = (
        "import sys; sys.argv = ['poolbisect', 'timeline', '--help']\n"
        "from poolbisect.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([n for n in ('torch', 'numpy', 'scipy') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.network
def test_releases_answer_in_versions(cli: Cli) -> None:
    arguments = ("--releases", "--good", "0.5.10.post1", "--bad", "0.5.12", "--json")
    code, out, _ = cli(*arguments)
    assert code == 0
    document = json.loads(out)
    found = {
        (one["release"], one["kind"], one["buffer"], one["pools"][0])
        for one in document["transitions"]
    }
    for buffer in ("req_to_hidden_states_pool", "token_table"):
        assert ("0.5.11", "introduced", buffer, "normal") in found
        assert ("0.5.12", "fixed", buffer, "normal") in found
        assert ("0.5.12", "fixed", buffer, "pd-decode") in found
    mapping = "req_index_to_mamba_index_mapping"
    for pool in ("hybrid", "hybrid-pd-decode"):
        assert ("0.5.11", "fixed", mapping, pool) in found
    assert document["untestable"] == 0
    assert all(one["title"] == f"sglang {one['release']}" for one in document["transitions"])


@pytest.mark.network
def test_a_release_that_does_not_exist(cli: Cli) -> None:
    code, _, err = cli("--releases", "--good", "0.5.11", "--bad", "0.5.999")
    assert code == 2
    assert "there is no sglang 0.5.999" in err
