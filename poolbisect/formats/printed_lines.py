"""What SGLang's evals print, line by line: every statement of a score, a count, or a length.

`Score: 0.776` and `[METRIC] gsm8k_score=0.776 labels={...}` (sglang.test.run_eval),
`Accuracy: 0.776` (its older few-shot script), `avg_spec_accept_length=3.2100`, the dict of metrics,
and sgl-eval's summary `* score = 77.60%`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from poolbisect.formats.terminal_text import Segment

_NUMBER = r"(?P<value>[+-]?(?:\d{1,30}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,4})?|nan|inf)"
_WRAPPED = rf"(?:(?:np|numpy)\.float\d\d\(|tensor\()?\s*{_NUMBER}"
_END = r"(?P<percent>\s*%)?(?![\w.])"
# At the start of a line, or after what loggers put before a message.
_START = r"(?:^|[\])|:>-]\s*)"
_LINE = re.compile(rf"{_START}(?P<kind>Score|Accuracy)\s*[:=]\s*{_WRAPPED}{_END}", re.IGNORECASE)
_SUMMARY = re.compile(rf"^\*\s+(?P<kind>score|pass@1\S{{0,40}})\s+=\s+{_NUMBER}{_END}")
_METRIC = re.compile(
    rf"\[METRIC\]\s+(?P<kind>[\w.@/-]{{1,200}})={_WRAPPED}\)?(?:\s+labels=(?P<labels>\{{.*\}}))?"
)
_ENTRY = re.compile(rf"['\"](?P<kind>score|accuracy|mean_score)['\"]\s*:\s*{_WRAPPED}")
_SCORE_NAMES = re.compile(r"(?:^|_)(?:score|accuracy)$")
_LENGTH = re.compile(
    rf"\b(?:avg_)?(?:spec_)?acc(?:ept)?_length['\"]?\s*[=:]\s*{_WRAPPED}(?P<percent>)",
    re.IGNORECASE,
)
_COUNTS = (
    re.compile(
        r"\banswered\s*[:=]?\s*(?P<done>\d{1,9})\s*(?:/|of|out of)\s*(?P<total>\d{1,9})",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<done>\d{1,9})\s*(?:/|of|out of)\s*(?P<total>\d{1,9})\s+(?:\w+\s+)?"
        r"(?:were\s+)?(?:answered|completed|scored)\b",
        re.IGNORECASE,
    ),
)
_ASKED = re.compile(
    r"^(?:asked|(?:num_|number of )?(?:questions|examples)(?: asked)?)\s*[:=]\s*(?P<total>\d{1,9})$"
    r"|^(?P<summary>\d{1,9}) examples (?:\(single-shot\)|x \d)",
    re.IGNORECASE,
)
_ANSWERED = re.compile(
    r"^(?:(?:questions|examples) )?answered\s*[:=]\s*(?P<done>\d{1,9})$", re.IGNORECASE
)
_ATTEMPT = re.compile(r"\b(?:attempt|trial|retry)\s*[#:=]?\s*(?P<number>\d{1,6})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A score as printed: what was said (`kind`), the number, and to how many places.

    `percent` if the number carries a percent sign; `labels` are those of a [METRIC] line.
    """

    kind: str
    value: float
    places: int
    percent: bool
    line: int
    labels: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Counts:
    """Questions answered and asked, as a line says; None where it does not."""

    line: int
    answered: int | None
    asked: int | None
    partial: bool = False


def statements(segment: Segment) -> Iterator[Statement]:
    """Every statement of a score in a segment."""
    text = segment.text
    for match in _METRIC.finditer(text):
        if _SCORE_NAMES.search(match["kind"]):
            yield _statement(match, f"[METRIC] {match['kind']}", segment, _labels(match["labels"]))
    if "[METRIC]" in text:
        return
    # A dict on one line, or one entry of a dict over several.
    if "{" in text or text[:1] in ("'", '"'):
        for match in _ENTRY.finditer(text):
            yield _statement(match, f"{match['kind']} in a dict", segment, {})
        return
    line = _SUMMARY.search(text) or _LINE.search(text)
    if line:
        yield _statement(line, line["kind"].capitalize(), segment, {})


def accept_length(segment: Segment) -> float | None:
    """The accept length a segment states, None if it states none."""
    match = _LENGTH.search(segment.text)
    return float(match["value"]) if match else None


def counts(segment: Segment) -> Counts | None:
    """The counts of questions a segment states, None if it states none."""
    for pattern in _COUNTS:
        match = pattern.search(segment.text)
        if match:
            done, total = int(match["done"]), int(match["total"])
            return Counts(segment.line, done, total, segment.text.startswith("[partial]"))
    match = _ASKED.search(segment.text)
    if match:
        return Counts(segment.line, None, int(match["total"] or match["summary"]))
    match = _ANSWERED.search(segment.text)
    return Counts(segment.line, int(match["done"]), None) if match else None


def attempt(segment: Segment) -> int | None:
    """The number of the attempt a segment announces, None if it announces none."""
    match = _ATTEMPT.search(segment.text)
    return int(match["number"]) if match else None


def _statement(
    match: re.Match[str], kind: str, segment: Segment, labels: dict[str, Any]
) -> Statement:
    digits = match["value"].lower().partition("e")
    places = len(digits[0].partition(".")[2]) - (int(digits[2]) if digits[2] else 0)
    percent = bool(match.groupdict().get("percent"))
    return Statement(kind, float(match["value"]), max(0, places), percent, segment.line, labels)


def _labels(text: str | None) -> dict[str, Any]:
    try:
        labels = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return labels if isinstance(labels, dict) else {}
