"""`poolbisect bisect`: the answer, one JSON document, and every mistake with its own sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbisect.cli import main

FIELDS = (
    *("schema", "verdict", "exit_code", "culprit", "suspects", "find", "confidence", "probes"),
    *("questions", "switches", "confirmation", "attribution", "report"),
)
NGRAM = ("--scenario", "ngram-canary")


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._capsys, self._patch = capsys, patch

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["poolbisect", "bisect", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        assert "Traceback" not in captured.out + captured.err
        return ended.value.code, captured.out, captured.err


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return Cli(capsys, monkeypatch)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_json_document_names_commit_buffer_slot_and_how_sure(cli: Cli, story: Any) -> None:
    before = contents(story.folder)
    ends = ("--good", story.commits["requests"], "--bad", story.commits["parsable again"])
    code, out, err = cli("--repo", str(story.folder), *ends, *NGRAM, "--json")
    document = json.loads(out)
    assert code == 0
    assert set(FIELDS) <= set(document)
    assert document["schema"] == "poolbisect.bisect/1"
    assert document["culprit"]["commit"] == story.commits["padding row"]
    assert document["culprit"]["title"] == "padding row"
    assert document["culprit"]["author_date"].startswith("2026-")
    blamed = document["attribution"]
    assert (blamed["buffer"], blamed["rows"], blamed["index"]) == ("token_table", 64, 64)
    assert blamed["since"]["commit"] == story.commits["table arrives"]
    confirmed = {name: one["verdict"] for name, one in document["confirmation"].items()}
    assert confirmed == {"parent": "good", "culprit": "bad", "revert": "good"}
    assert "left" in err  # the funnel is elsewhere
    folder = Path(document["report"])
    assert json.loads((folder / "result.json").read_bytes()) == document
    for name in ("report.html", "report.md", "junit.xml", "journal.jsonl", "session.json"):
        assert (folder / name).stat().st_size
    assert contents(story.folder) == before


def test_a_commit_that_cannot_be_parsed_leaves_a_range(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["requests"], "--bad", story.commits["parsable again"])
    skip = ("--skip", story.commits["padding row"])
    code, out, _ = cli("--repo", str(story.folder), *ends, *NGRAM, *skip, "--json")
    document = json.loads(out)
    assert (code, document["exit_code"], document["verdict"]) == (4, 4, "suspect_range")
    assert document["culprit"] is None
    titles = [one["title"] for one in document["suspects"]]
    assert titles == ["padding row", "unparsable", "parsable again"]


def test_the_first_fixed_commit(cli: Cli, story: Any) -> None:
    ends = ("--bad", story.commits["broken again"], "--good", "main")
    code, out, _ = cli("--repo", str(story.folder), *ends, *NGRAM, "--find", "fixed", "--json")
    assert code == 0
    assert json.loads(out)["culprit"]["title"] == "mended again"


def test_the_console_says_it_in_words(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["comment"], "--bad", story.commits["padding row"])
    code, out, err = cli("--repo", str(story.folder), *ends, *NGRAM)
    assert code == 0
    assert "culprit found" in out
    assert f"first bad: {story.commits['padding row'][:10]}" in out
    assert "request slot 64 has no row" in out
    assert "at most 2 probes" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--good", "main", "--bad", "main"), "the same commit"),
        (("--good", "main", "--bad", "main~1"), "--find fixed"),
        (("--bad", "main", "--good", "main~1", "--find", "fixed"), "--find introduced"),
        (("--good", "nowhere", "--bad", "main"), "no commit 'nowhere'"),
        (("--good", "main~1"), "needs --bad"),
        (("--bad", "main"), "needs --good"),
        ((), "needs --good and --bad"),
        (("--good", "main~1", "--bad", "main", "--scenario", "none"), "no scenario is named"),
        (("--good", "main~1", "--bad", "main", "--releases"), "--releases takes no --repo"),
        (("--good", "main~1", "--bad", "main", "--pre-releases"), "is for --releases"),
        (("--good", "main~1", "--bad", "main", "--forget", "main"), "add --resume"),
        (("--good", "main~1", "--bad", "main", "--max-time", "soon"), "90s, 10m or 2h"),
        (("--good", "main~1", "--bad", "main", "--", "true"), "only --probe command takes"),
        (("--good", "main~1", "--bad", "main", "--threshold", "0.7"), "is for --probe command"),
        (("--good", "main~1", "--bad", "main", "--probe", "command"), "no command"),
        (("--good", "main~2", "--bad", "main", "--skip", "main"), "takes an end"),
        (("--good", "main~2", "--bad", "main~1", "--suspect", "main"), "is not in the range"),
        (("--resume", "nowhere"), "session.json"),
    ],
)
def test_mistakes_end_with_2_before_anything_costly(
    cli: Cli, story: Any, arguments: tuple[str, ...], words: str
) -> None:
    repo = () if "--resume" in arguments else ("--repo", str(story.folder))
    code, out, err = cli(*repo, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert " 1 ┃" not in err, "something was measured"


def test_other_lines_of_history(cli: Cli, builder: Any) -> None:
    base = builder.commit("base", {"f": "0"})
    builder.commit("one", {"f": "1"})
    builder.git("checkout", "-q", "-b", "other", base)
    builder.commit("two", {"g": "2"})
    code, _, err = cli("--repo", str(builder.folder), "--good", "main", "--bad", "other")
    assert code == 2
    assert base[:10] in err
    assert "histories part" in err


def test_a_shallow_clone_is_named_with_the_command_that_mends_it(
    cli: Cli, builder: Any, tmp_path: Path
) -> None:
    first, *_ = [builder.commit(f"c{n}", {"f": str(n)}) for n in range(6)]
    clone = tmp_path / "shallow"
    builder.git("clone", "-q", "--depth", "2", builder.folder.as_uri(), str(clone))
    code, _, err = cli("--repo", str(clone), "--good", first, "--bad", "HEAD")
    assert code == 2
    assert "fetch --unshallow" in err


def test_an_ambiguous_name_of_branch_and_tag(cli: Cli, builder: Any) -> None:
    for n in range(3):
        builder.commit(f"c{n}", {"f": str(n)})
    builder.git("tag", "same", "HEAD~1")
    builder.git("branch", "same", "HEAD~2")
    code, _, err = cli("--repo", str(builder.folder), "--good", "same", "--bad", "HEAD")
    assert code == 2
    assert "both a branch and a tag" in err


def test_ends_alike_say_what_was_seen_at_each(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["table arrives"], "--bad", story.commits["comment"])
    code, out, _ = cli("--repo", str(story.folder), *ends, *NGRAM, "--json")
    document = json.loads(out)
    assert (code, document["verdict"]) == (2, "both_good")
    assert document["reason"].count("token_table has 64 rows") == 2
    assert document["probes"] == 2


def test_resume_goes_on_and_the_log_can_be_typed_again(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["requests"], "--bad", story.commits["parsable again"])
    limit = ("--max-probes", "2")
    code, out, _ = cli("--repo", str(story.folder), *ends, *NGRAM, *limit, "--json")
    assert code == 4
    folder = json.loads(out)["report"]
    code, out, _ = cli("--resume", folder, "--max-probes", "20", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["culprit"]["title"] == "padding row"
    assert document["report"] == folder
    code, out, _ = cli("--resume", folder, "--forget", story.commits["padding row"], "--json")
    assert json.loads(out)["culprit"]["title"] == "padding row"
    code, out, _ = cli("log", folder)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("poolbisect bisect --repo")
    assert f"# {story.commits['padding row']}: bad" in lines
    assert f"poolbisect bisect --resume --forget {story.commits['padding row']}" in lines


def test_resume_takes_nothing_that_the_session_keeps(cli: Cli, story: Any) -> None:
    ends = ("--good", story.commits["comment"], "--bad", story.commits["padding row"])
    cli("--repo", str(story.folder), *ends, *NGRAM)
    code, _, err = cli("--resume", "", "--scenario", "mimo-canary")
    assert code == 2
    assert "--scenario is kept by the session" in err


def test_a_command_finds_the_commit_that_changed_its_exit_status(cli: Cli, builder: Any) -> None:
    line = [builder.commit(f"c{n}", {"n.txt": f"{n}\n"}) for n in range(9)]
    before = contents(builder.folder)
    ends = ("--good", line[0], "--bad", line[-1], "--probe", "command")
    check = "import sys; sys.exit(int(open('n.txt').read()) >= 6)"
    run = ("--json", "--", sys.executable, "-c", check)
    code, out, _ = cli("--repo", str(builder.folder), *ends, *run)
    document = json.loads(out)
    assert code == 0
    assert document["culprit"]["commit"] == line[6]
    assert document["attribution"] is None
    assert document["scenario"] is None
    assert contents(builder.folder) == before


def test_help_comes_without_heavy_imports() -> None:
    code = (
        "import sys; sys.argv = ['poolbisect', 'bisect', '--help']\n"
        "from poolbisect.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([n for n in ('torch', 'numpy', 'scipy') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.network
def test_releases_answer_in_versions(cli: Cli) -> None:
    ends = ("--good", "0.5.10.post1", "--bad", "0.5.11")
    code, out, _ = cli("--releases", *ends, "--scenario", "mimo-canary", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["culprit"]["release"] == "0.5.11"
    assert document["attribution"]["buffer"] == "req_to_hidden_states_pool"
    assert document["attribution"]["index"] == 64
