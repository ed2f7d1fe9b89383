"""`poolbisect run`: verdicts, exit codes, and what is printed where."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poolbisect.cli import main
from poolbisect.scenario import scenario_folder


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["poolbisect", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    def run(self, tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
        code, out, _ = self("run", *arguments, "--json", "--out", str(tmp_path))
        document: dict[str, Any] = json.loads(out)
        assert document["exit_code"] == code
        return code, document


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(capsys, monkeypatch)


def by_subject(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["subject"]: result for result in document["results"]}


@pytest.mark.slow
def test_the_canary_shows_the_padding_regression(cli: Cli, tmp_path: Path) -> None:
    code, document = cli.run(tmp_path, "mimo-canary")
    assert code == 0
    assert document["verdict"] == "as_expected"
    results = by_subject(document)
    good, bad = results["corrected"], results["original"]
    assert 0.765 <= good["accuracy"] <= 0.787
    assert good["out_of_range"]["reads"] == good["out_of_range"]["writes"] == 0
    assert bad["accuracy"] < 0.75
    assert bad["comparison"]["paired"]
    assert bad["comparison"]["p_value"] < 0.001
    assert good["accept_length"] > 2
    for result in (good, bad):
        assert result["ended"] == "measured"
        assert result["asked"] == result["answered"] == 1319
        assert result["last_slot"] == 64
        assert result["last_slot_used"]
        assert result["slot_coverage"] == 1
    (buffer,) = bad["out_of_range"]["buffers"]
    assert (buffer["buffer"], buffer["index"], buffer["rows"]) == (
        "req_to_hidden_states_pool",
        64,
        64,
    )
    assert buffer["space"] == "request slot"
    assert buffer["hit"] == ["future.verified_id"]

    # The files say the same, and losses really are changes in recorded answers.
    folder = Path(document["report"])
    assert json.loads((folder / "result.json").read_text()) == document
    answers = {
        name: [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        for name in ("corrected", "original")
    }
    lost = [
        before["id"]
        for before, after in zip(answers["corrected"], answers["original"], strict=True)
        if before["correct"] and not after["correct"]
    ]
    assert lost == bad["comparison"]["lost_ids"]
    # Most of the harm is done to requests that never held the last slot.
    elsewhere = [id for id in lost if answers["original"][id]["slot"] != 64]
    assert len(elsewhere) > len(lost) / 2


@pytest.mark.slow
def test_the_control_changes_no_output_but_records_the_accesses(cli: Cli, tmp_path: Path) -> None:
    code, document = cli.run(tmp_path, "mimo-canary-control")
    assert code == 0
    results = by_subject(document)
    assert results["original"]["comparison"]["lost"] == 0
    assert results["original"]["comparison"]["gained"] == 0
    assert results["original"]["out_of_range"]["writes"] > 0
    assert results["original"]["accept_length"] == results["corrected"]["accept_length"]
    folder = Path(document["report"])
    texts = [
        [json.loads(line)["tokens"] for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        for name in ("corrected", "original")
    ]
    assert texts[0] == texts[1]


def test_too_few_questions_are_inconclusive_and_say_how_many_would_do(
    cli: Cli, tmp_path: Path
) -> None:
    code, document = cli.run(tmp_path, "mimo-canary", "--questions", "40")
    assert code == 4
    for result in document["results"]:
        assert result["verdict"] == "unknown"
        assert not result["last_slot_used"]
        assert "slot 64, the last one, was not used" in result["reason"]
        assert result["questions_needed"] == 128
    code, out, _ = cli(
        "run", "mimo-canary", "--questions", "40", "--subject", "original", "--out", str(tmp_path)
    )
    assert code == 4
    assert "128 questions would reach it" in " ".join(out.split())


def test_strict_mode_stops_at_the_first_access_and_names_it(cli: Cli, tmp_path: Path) -> None:
    code, document = cli.run(
        tmp_path, "mimo-canary", "--questions", "140", "--memory", "strict", "--subject", "original"
    )
    result = by_subject(document)["original"]
    assert result["ended"] == "stopped"
    assert result["verdict"] == "bad"
    assert "req_to_hidden_states_pool[64] of 64 rows" in result["reason"]
    assert result["out_of_range"]["reads"] + result["out_of_range"]["writes"] == 1
    assert code == 0  # original is expected to be bad


def test_silent_mode_gives_the_same_answers_and_says_that_it_did_not_look(
    cli: Cli, tmp_path: Path
) -> None:
    arguments = ("mimo-canary", "--questions", "200", "--subject", "original")
    _, guarded = cli.run(tmp_path, *arguments)
    _, silent = cli.run(tmp_path, *arguments, "--memory", "silent")
    assert not silent["results"][1]["out_of_range"]["watched"]
    texts = [
        (Path(document["report"]) / "original.jsonl").read_text() for document in (guarded, silent)
    ]
    assert texts[0] == texts[1]


def scenario_with(tmp_path: Path, old: str, new: str) -> str:
    text = (scenario_folder() / "mimo-canary.toml").read_text()
    assert old in text
    path = tmp_path / "changed.toml"
    path.write_text(text.replace(old, new))
    return str(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dp-size = 2", "dp-sise = 2", "unknown key `dp-sise` in engine"),
        ("dp-size = 2", 'dp-size = "two"', "engine.dp-size"),
        ("page-size = 64", "page-size = -64", "engine.page-size"),
        ("questions = 1319", "questions = 0", "workload.questions"),
        ('symptom = "accuracy"', 'symptom = "slowness"', "symptom"),
        ('model = "mimo"', 'model = "gpt"', "no model is named 'gpt'"),
        ('padded-rows = "stale"', 'padded-rows = "odd"', "memory.padded-rows"),
        ("[engine]", "[engine", "not valid TOML"),
        ('name = "original"', 'name = "originel"', "'originel' is no subject"),
        ("max-new-tokens = 96", "max-new-tokens = 960", "--context-length"),
    ],
)
def test_a_bad_scenario_file_is_one_sentence_and_exit_2(
    cli: Cli, tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = scenario_with(tmp_path, old, new)
    code, out, err = cli("run", path, "--questions", "20", "--out", str(tmp_path / "out"))
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mimo-canery",), "no scenario is named 'mimo-canery'"),
        (("nowhere.toml",), "nowhere.toml: no such file"),
        (("mimo-canary", "--subject", "fixed"), "'fixed' is no subject"),
        (("mimo-canary", "--subject", "release:"), "'release:' is no subject"),
        (("mimo-canary", "--questions", "0"), "--questions"),
        (("mimo-canary", "--questions", "2000"), "has 1319 problems, 2000 were asked for"),
        (("mimo-canary", "--memory", "loud"), "--memory"),
        (("mimo-canary", "--device", "tpu9"), "--device tpu9"),
        (("mimo-canary", "--out", "/proc/nothing"), "--out /proc/nothing"),
    ],
)
def test_bad_arguments_are_exit_2(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = cli("run", *arguments)
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_a_pool_of_one_slot_runs(cli: Cli, tmp_path: Path) -> None:
    path = scenario_with(tmp_path, "max-running-requests = 128", "max-running-requests = 2")
    code, document = cli.run(tmp_path, path, "--questions", "12")
    assert code in (0, 1, 4)
    original = by_subject(document)["original"]
    assert original["last_slot"] == 1
    assert {buffer["index"] for buffer in original["out_of_range"]["buffers"]} == {1}


@pytest.mark.network
@pytest.mark.slow
def test_upstreams_own_releases_are_good_bad_good(cli: Cli, tmp_path: Path) -> None:
    releases = ("release:0.5.10.post1", "release:0.5.11", "release:0.5.12")
    chosen = [word for release in releases for word in ("--subject", release)]
    code, document = cli.run(tmp_path, "mimo-canary", *chosen)
    results = by_subject(document)
    assert code == 1
    assert [results[release]["verdict"] for release in releases] == ["good", "bad", "good"]
    (buffer,) = results["release:0.5.11"]["out_of_range"]["buffers"]
    assert (buffer["buffer"], buffer["index"]) == ("req_to_hidden_states_pool", 64)
    assert not results["release:0.5.12"]["out_of_range"]["buffers"]


@pytest.mark.slow
def test_ctrl_c_keeps_a_partial_result(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from poolbisect.reporting.console import LiveProgress\n"
        "original = LiveProgress.__call__\n"
        "def interrupted(self, subject, questions, tick):\n"
        "    original(self, subject, questions, tick)\n"
        "    if tick.done > 100:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "LiveProgress.__call__ = interrupted\n"
        "from poolbisect.cli import main\n"
        f"sys.argv = ['poolbisect', 'run', 'mimo-canary', '--json', '--out', {str(tmp_path)!r}]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130, done.stderr
    document = json.loads(done.stdout)
    assert document["partial"]
    (result,) = document["results"]
    assert result["ended"] == "partial"
    assert 100 < result["answered"] < 1319
    assert "Traceback" not in done.stderr
    saved = json.loads((Path(document["report"]) / "result.json").read_text())
    assert saved == document


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "sys.argv = ['poolbisect', '--help']\n"
        "from poolbisect.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    heavy = {'torch', 'numpy', 'pandas', 'scipy', 'rich', 'git'} & set(sys.modules)\n"
        "    print('heavy:', sorted(heavy))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "heavy: []" in done.stdout
    assert "run" in done.stdout
