"""`poolbisect nightly` in a process of its own: four nights, failures, interrupts, two at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from poolbisect.scenario import scenario_folder
from poolbisect.store import Store, frames

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
QUESTIONS = 200
"""Enough for the last slot of every rank, and for the canary's drop to be significant."""


@dataclass(frozen=True)
class Ended:
    code: int
    document: dict[str, Any]
    err: str

    @property
    def findings(self) -> list[tuple[str, str, str]]:
        found = self.document["findings"]
        return [(one["state"], one["scenario"], one["role"]) for one in found]

    @property
    def folder(self) -> Path:
        return Path(self.document["report"])


def nightly(out: Path, *arguments: str, questions: int = QUESTIONS) -> Ended:
    command = [sys.executable, "-m", "poolbisect", "nightly", "--json", "--out", str(out)]
    done = subprocess.run(
        [*command, "--questions", str(questions), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout) if done.stdout else {}
    assert document.get("exit_code", done.returncode) == done.returncode, done.stderr
    return Ended(done.returncode, document, done.stderr)


@pytest.fixture(scope="module")
def four_nights(tmp_path_factory: pytest.TempPathFactory) -> list[Ended]:
    out = tmp_path_factory.mktemp("four") / "reports"
    canary = ("--scenario", "mimo-canary")
    return [
        nightly(out, *canary, *(("--subject", subject) if subject else ()))
        for subject in (None, "original", "original", "corrected")
    ]


@pytest.mark.slow
def test_a_swapped_in_regression_is_new_then_persistent_then_fixed(
    four_nights: list[Ended],
) -> None:
    canary = ("mimo-canary", "under test")
    assert [night.findings for night in four_nights] == [
        [],
        [("new", *canary)],
        [("persistent", *canary)],
        [("fixed", *canary)],
    ]
    assert [night.code for night in four_nights] == [0, 1, 1, 0]
    first, second, third, fourth = (night.document for night in four_nights)
    new, old, fixed = (night["findings"][0] for night in (second, third, fourth))
    assert new["since"] == old["since"] == fixed["since"] == second["started"]
    assert new["last_good"] == old["last_good"] == fixed["last_good"] == first["started"]
    assert new["drop"] > 0.01
    assert new["p_value"] < 0.001


@pytest.mark.slow
def test_the_loss_is_that_of_recorded_answers_against_the_last_good_night(
    four_nights: list[Ended],
) -> None:
    answers = []
    for night, subject in zip(four_nights[:2], ("corrected", "original"), strict=True):
        folder = night.folder / night.document["rows"][0]["report"]
        lines = (folder / f"{subject}.jsonl").read_text().splitlines()
        answers.append({line["id"]: line["correct"] for line in map(json.loads, lines)})
    before, after = answers
    finding = four_nights[1].document["findings"][0]
    assert finding["lost"] == sum(before[q] and not after[q] for q in before)
    assert finding["gained"] == sum(after[q] and not before[q] for q in before)
    assert finding["drop"] == pytest.approx((finding["lost"] - finding["gained"]) / QUESTIONS)


@pytest.mark.slow
def test_rows_stand_beside_the_nights_before(four_nights: list[Ended]) -> None:
    rows = [night.document["rows"][0] for night in four_nights]
    assert [row["nights"] for row in rows] == [0, 1, 2, 3]
    healthy, bad = rows[0]["accuracy"], rows[1]["accuracy"]
    assert rows[3]["mean7"] == pytest.approx((healthy + 2 * bad) / 3)
    assert rows[3]["best"] == healthy == rows[3]["accuracy"]
    assert rows[1]["out_of_range"]["buffers"] == ["req_to_hidden_states_pool"]
    assert rows[0]["out_of_range"]["writes"] == 0


@pytest.mark.slow
def test_every_night_has_its_reports_and_the_document_is_what_was_printed(
    four_nights: list[Ended],
) -> None:
    for night in four_nights:
        assert json.loads((night.folder / "result.json").read_text()) == night.document
        run = night.folder / night.document["rows"][0]["report"]
        for folder in (night.folder, run):
            for name in ("report.html", "report.md", "junit.xml"):
                assert (folder / name).stat().st_size > 0, night.err
    out = four_nights[0].folder.parent.parent
    assert (out / "index.html").exists()
    with Store(out / "poolbisect.sqlite") as store:
        assert len(frames.nights(store)) == 4
        assert len(frames.runs(store)) == 4


@pytest.mark.slow
def test_what_fails_stops_nothing_else_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("name = ")
    impossible = (scenario_folder() / "mimo-canary.toml").read_text()
    impossible = impossible.replace('name = "mimo-canary"', 'name = "impossible"')
    impossible = impossible.replace("max-new-tokens = 96", "max-new-tokens = 960")
    (tmp_path / "impossible.toml").write_text(impossible)
    (tmp_path / "night.toml").write_text(
        'scenarios = ["broken.toml", "impossible.toml", "mimo-canary"]\n'
        'subjects = ["corrected", "unreserved"]\n'
    )
    store = tmp_path / "store.sqlite"
    store.write_bytes(b"no database" * 1000)
    night = nightly(
        tmp_path / "out", "--config", str(tmp_path / "night.toml"), "--store", str(store)
    )
    assert night.code == 4
    said = {failure["scenario"]: failure["text"] for failure in night.document["failures"]}
    assert "broken.toml" in said[str(tmp_path / "broken.toml")]
    assert "--context-length" in said["impossible"]
    assert "unreserved" in said["mimo-canary"]
    assert "the results database is damaged" in said["night"]
    assert store.read_bytes() == b"no database" * 1000
    (row,) = night.document["rows"]
    assert (row["scenario"], row["verdict"], row["answered"]) == ("mimo-canary", "good", QUESTIONS)


@pytest.mark.slow
def test_a_database_that_lost_its_past_gets_it_back_and_damaged_files_are_failures(
    four_nights: list[Ended], tmp_path: Path
) -> None:
    """After two of the four nights, with a database that was emptied."""
    out = tmp_path / "reports"
    shutil.copytree(four_nights[0].folder.parent.parent, out)
    for night in four_nights[2:]:
        shutil.rmtree(out / "nightly" / night.folder.name)
    for name in ("", "-wal", "-shm"):
        (out / f"poolbisect.sqlite{name}").unlink(missing_ok=True)
    (out / "poolbisect.sqlite").touch()
    damaged = out / "mimo-canary" / "damaged" / "result.json"
    damaged.parent.mkdir()
    damaged.write_text('{"schema"')
    night = nightly(out, "--scenario", "mimo-canary", "--subject", "original")
    assert night.findings == [("persistent", "mimo-canary", "under test")]
    (failure,) = night.document["failures"]
    assert failure["scenario"] == "night"
    assert str(damaged) in failure["text"]
    with Store(out / "poolbisect.sqlite") as store:
        assert len(frames.nights(store)) == 3
        assert len(frames.runs(store)) == 5  # each once, though it was read in and recorded


@pytest.mark.slow
def test_two_nights_at_once_on_one_database_are_both_recorded(tmp_path: Path) -> None:
    out = tmp_path / "reports"
    with ThreadPoolExecutor(2) as pool:
        both = list(
            pool.map(lambda _: nightly(out, "--scenario", "mimo-canary", questions=140), range(2))
        )
    # The later one may have seen the other's night, for which so few questions decide nothing.
    assert {night.code for night in both} <= {0, 4}
    assert not any(night.document["failures"] for night in both)
    assert both[0].folder != both[1].folder
    assert both[0].document["id"] != both[1].document["id"]
    with Store(out / "poolbisect.sqlite") as store:
        assert store.damage() is None
        assert len(frames.nights(store)) == 2
        assert len(frames.night_rows(store)) == 2


INTERRUPTED = """
import os, signal, sys
from poolbisect.reporting.console import LiveProgress
shown = LiveProgress.__call__
def interrupted(self, subject, questions, tick):
    shown(self, subject, questions, tick)
    if subject == "original" and tick.done > 20:
        os.kill(os.getpid(), signal.SIGINT)
LiveProgress.__call__ = interrupted
from poolbisect.cli import main
sys.argv = ["poolbisect", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
def test_an_interrupted_night_leaves_a_whole_document_and_what_was_measured(
    tmp_path: Path,
) -> None:
    out = tmp_path / "reports"
    chosen = ("--scenario", "mimo-canary", "--scenario", "mamba-canary", "--subject", "corrected")
    more = ("--subject", "original", "--questions", "150")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "nightly", "--json", "--out", str(out), *chosen, *more],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)
    assert (document["verdict"], document["partial"]) == ("interrupted", True)
    whole, cut = document["rows"]
    assert (whole["ended"], whole["answered"]) == ("measured", 150)
    assert (cut["ended"], cut["accuracy"]) == ("partial", None)
    assert 20 < cut["answered"] < 150
    assert {row["scenario"] for row in document["rows"]} == {"mimo-canary"}
    saved = json.loads((Path(document["report"]) / "result.json").read_text())
    assert saved == document
    # What was measured is the past of the next night, what was cut off decides nothing in it.
    with Store(out / "poolbisect.sqlite") as store:
        assert frames.nights(store)["partial"].tolist() == [True]
        rows = frames.night_rows(store).set_index("role")
        assert rows["state"].to_dict() == {"under test": "good", "original": "unknown"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--subject", "fixed"), "'fixed' is no subject"),
        (("--scenario", "mimo-v2-flash"), "with the real SGLang: add --probe server"),
        (("--scenario", "mimo-canery"), "no scenario is named 'mimo-canery'"),
        (("--config", "nowhere.toml"), "nowhere.toml: no such file"),
        (("--repo", "/proc"), "/proc is no git repository"),
        (("--out", "/proc/nothing"), "--out /proc/nothing"),
        (("--questions", "0"), "--questions"),
    ],
)
def test_what_the_user_got_wrong_is_one_sentence_and_exit_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    from poolbisect.cli import main

    out = () if "--out" in arguments else ("--out", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["poolbisect", "nightly", *out, *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert ended.value.code == 2
    assert captured.out == ""
    assert words in captured.err
    assert not (tmp_path / "nightly").exists()
