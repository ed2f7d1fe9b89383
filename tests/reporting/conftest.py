"""Report folders: of a real run, and of documents written by hand."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from poolbisect.canary import RunRequest, run
from poolbisect.reporting import result_json
from poolbisect.reporting.files import write_reports
from poolbisect.scenario import load_scenario

HOSTILE = (
    "</script></style><img src=x onerror=\"window.hit=1\"><svg onload='window.hit=1'>"
    "'\"&amp;{{ 7*7 }}{% raw %}\u202egnp.exe\u2066 \x00\x1b[31m \u05d0\u05d1 `| @everyone"
)


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a real run of the canary, long enough for the last slot to be used."""
    folder = tmp_path_factory.mktemp("real") / "mimo-canary" / "20261129T000000Z"
    folder.mkdir(parents=True)
    report = run(RunRequest(load_scenario("mimo-canary"), questions=200))
    result_json.save(report, folder, ["poolbisect", "run", "mimo-canary", "--questions", "200"])
    return folder


@pytest.fixture
def rendered_run(real_run: Path, tmp_path: Path) -> Path:
    """A copy of the real run's folder with its reports."""
    folder = tmp_path / "mimo-canary" / real_run.name
    shutil.copytree(real_run, folder)
    write_reports(folder)
    return folder


Fields = Any
MakeRun = Callable[..., Path]


def answer(number: int, correct: bool, text: str, **more: Fields) -> dict[str, Fields]:
    return {
        "id": number,
        "correct": correct,
        "prompt": f"{number}+1:",
        "expected": number + 1,
        "text": text,
        "outcome": "right" if correct else "wrong",
        "rank": number % 2,
        "slot": 1 + number % 8,
        "finish": "stop",
        "tokens": [ord(character) % 1000 for character in text],
        **more,
    }


def result(subject: str, correct: int, asked: int, **more: Fields) -> dict[str, Fields]:
    return {
        "subject": subject,
        "ended": "measured",
        "asked": asked,
        "answered": asked,
        "correct": correct,
        "accuracy": correct / asked if asked else None,
        "interval": [0.1, 0.9] if asked else None,
        "verdict": "good",
        "reason": "the reference of this comparison",
        "expected": "good",
        "as_expected": True,
        "out_of_range": {"watched": True},
        **more,
    }


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Write a run's folder by hand: `asked` questions, of which `lost` only the subject misses."""

    def make(
        name: str = "20260101T000000Z",
        asked: int = 40,
        lost: int = 10,
        text: str = "right",
        wrong: str = "wrong",
        scenario: str = "hand-made",
        subject: str = "original",
        started: str = "2026-01-01T00:00:00+00:00",
        reason: str = "accuracy fell by 25.0 points (p = 0.002)",
        out: Path | None = None,
        **more: Fields,
    ) -> Path:
        folder = (out or tmp_path) / "reports" / "hand-made" / name
        folder.mkdir(parents=True)
        lost_ids = list(range(lost))
        lines = {
            "corrected": [answer(number, True, text) for number in range(asked)],
            subject: [
                answer(number, number >= lost, wrong if number < lost else text)
                for number in range(asked)
            ],
        }
        paired = {
            "n": asked,
            "lost": lost,
            "gained": 0,
            "difference": -lost / asked,
            "interval": [-0.4, -0.1],
            "p_value": 0.002,
            "lost_ids": lost_ids,
            "gained_ids": [],
        }
        contract = {
            "buffer": "req_to_hidden_states_pool",
            "space": "request slot",
            "rows": 8,
            "last_index": 8,
            "missing_rows": 1,
            "short_from": 8,
        }
        bad = {
            "verdict": "bad",
            "reason": reason,
            "expected": None,
            "as_expected": None,
            "comparison": paired,
            "contract": [contract],
            "attribution": reason,
            "provenance": {"pools": subject, "device": "cpu"},
        }
        document = {
            "schema": "poolbisect.run/1",
            "scenario": scenario,
            "verdict": "regression",
            "exit_code": 1,
            "started": started,
            "seconds": 1.5,
            "questions": asked,
            "reference": "corrected",
            "report": str(folder),
            "results": [
                result("corrected", asked, asked),
                result(subject, asked - lost, asked, **bad),
            ],
            "configuration": {"engine": {"dp-size": 2}},
            **more,
        }
        (folder / "result.json").write_text(json.dumps(document))
        for who, answers in lines.items():
            path = folder / f"{who.replace(':', '-').replace('/', '-')}.jsonl"
            path.write_text("\n".join(map(json.dumps, answers)) + "\n")
        return folder

    return make


def entry(position: int, title: str = "a commit") -> dict[str, Fields]:
    return {
        "commit": f"{position:02x}" * 20,
        "short": f"{position:02x}" * 5,
        "title": title,
        "date": f"2026-05-{position + 1:02d}T12:00:00+00:00",
        "author_date": None,
    }


def bisect_document(title: str = "reserve row 0", scored: bool = False) -> dict[str, Fields]:
    """A bisect over 16 commits with commit 5 as its culprit, in the shape the command writes."""
    probes = [(0, "good", 1, 15), (15, "bad", 1, 15), (8, "bad", 1, 8), (4, "good", 5, 8)]
    probes += [(6, "bad", 5, 6), (5, "bad", 5, 5)]
    steps = [
        {
            "number": number,
            "position": position,
            "entry": entry(position, title if position == 5 else f"change {position}"),
            "reason": "halve the range",
            "questions": 1319 if scored else 1,
            "asked": 1319 if scored else None,
            "correct": (1023 if verdict == "good" else 950) if scored else None,
            "accuracy": (0.776 if verdict == "good" else 0.72) if scored else None,
            "interval": ([0.753, 0.798] if verdict == "good" else [0.695, 0.744])
            if scored
            else None,
            "ending": "measured",
            "verdict": None if scored else verdict,
            "note": "",
            "accept_length": None,
            "low": low,
            "high": high,
            "remaining": high - low + 1,
            "mass": 1 / (high - low + 1),
            "seconds": 2.0,
            "log": None,
        }
        for number, (position, verdict, low, high) in enumerate(probes, 1)
    ]
    return {
        "schema": "poolbisect.bisect/1",
        "verdict": "culprit",
        "exit_code": 0,
        "reason": "the commit before it was measured in the old state, the commit in the new",
        "culprit": {**entry(5, title), "remark": None},
        "merge": None,
        "suspects": [],
        "others": [],
        "find": "introduced",
        "confidence": 0.996,
        "asked_confidence": 0.99,
        "probes": len(steps),
        "questions": 0,
        "switches": 5,
        "confirmation": {
            "parent": {"verdict": "good", "text": "step 4"},
            "culprit": {"verdict": "bad", "text": "step 6"},
            "revert": {"verdict": None, "text": "not tried: the range is of releases"},
        },
        "attribution": {
            "buffer": "req_to_hidden_states_pool",
            "pool": "normal",
            "file": "srt/speculative/worker.py",
            "line": 150,
            "rows": 64,
            "index": 64,
            "last": 64,
            "space": "request slot",
            "since": entry(1, "wrote the line"),
            "detail": "",
            "text": "req_to_hidden_states_pool (srt/speculative/worker.py:150) has 64 rows: "
            "request slot 64 has no row.",
        },
        "report": "reports/bisect/1",
        "partial": False,
        "probe": "miniature" if scored else "contract",
        "scenario": "mimo-canary",
        "symptom": "accuracy",
        "history": "commit",
        "repository": "sglang",
        "good": entry(0),
        "bad": entry(15),
        "commits": 16,
        "started": "2026-06-01T10:00:00+00:00",
        "seconds": 12.0,
        "steps": steps,
        "posterior": [
            {"position": 4, **entry(4), "weight": 0.004},
            {"position": 5, **entry(5, title), "weight": 0.996},
        ],
        "transitions": [
            {
                "commit": "05" * 20,
                "date": "2026-05-06T12:00:00+00:00",
                "title": title,
                "kind": "introduced",
                "buffer": "req_to_hidden_states_pool",
                "aspect": "rows",
                "pools": ["normal"],
                "unknown_before": 0,
                "text": "req_to_hidden_states_pool: 64 rows → 64 rows: short by 1",
            }
        ],
        "untestable": 0,
        "command": ["poolbisect", "bisect", "--good", "a b"],
        "environment": {"python": "3.11.7", "nested": {"torch": "2.13"}},
    }


def night_document(
    started: str = "2026-06-01T02:00:00.000+00:00",
    state: str | None = "new",
    accuracy: float = 0.72,
) -> dict[str, Fields]:
    """A night with one series; `state` of its finding, None: nothing is wrong."""
    red = state in ("new", "persistent")
    found = {
        "state": state,
        "scenario": "mimo-canary",
        "role": "under test",
        "subject": "original",
        "text": "accuracy fell by 5.6 points (p = 0.0001)",
        "drop": 0.056,
        "p_value": 0.0001,
        "culprit": entry(5, "reserve row 0") if state == "new" else None,
    }
    return {
        "schema": "poolbisect.nightly/1",
        "verdict": "regression" if red else "no_regression",
        "exit_code": 1 if red else 0,
        "started": started,
        "seconds": 60.0,
        "findings": [found] if state else [],
        "rows": [
            {
                "scenario": "mimo-canary",
                "role": "under test",
                "subject": "original" if red else "corrected",
                "accuracy": accuracy,
                "interval": [accuracy - 0.02, accuracy + 0.02],
                "correct": 950,
                "answered": 1319,
                "verdict": "bad" if red else "good",
                "reason": "as measured",
                "mean7": 0.776,
                "sd7": 0.011,
                "best": 0.79,
                "nights": 7,
                "baseline": "0.776 ± 0.0110 (run-to-run)",
                "gate": "passes >= 0.75",
                "report": "../../mimo-canary/1",
            }
        ],
        "drift": [],
        "gate_health": ["the gate >= 0.75 is noisy"],
        "failures": [],
        "command": ["poolbisect", "nightly"],
        "environment": {"python": "3.11.7"},
        "report": "reports/nightly/1",
    }


def write_document(folder: Path, document: dict[str, Fields]) -> Path:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(document))
    return folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium. Skipped without one, but never where POOLBISECT_CI is set."""
    required = "POOLBISECT_CI" in os.environ
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        reason = f"no Chromium: none of {', '.join(names)} is on the path"
        pytest.fail(reason) if required else pytest.skip(reason)
    if not required:
        pytest.importorskip("playwright", reason="playwright is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


class Opened:
    """A page, and everything it said or asked for beyond itself."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def at(self, path: Path) -> Any:
        self.page.goto(path.resolve().as_uri())
        return self.page


Open = Callable[..., Opened]


@pytest.fixture
def opened(chromium: Any) -> Iterator[Open]:
    """Open pages in the browser, each in a context of its own."""
    pages: list[Opened] = []

    def open_page(**options: Any) -> Opened:
        pages.append(Opened(chromium, **options))
        return pages[-1]

    yield open_page
    for one in pages:
        one.page.close()
