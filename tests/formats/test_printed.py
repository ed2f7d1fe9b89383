"""What evals print: one score out of a log, or an error that names the line."""

from __future__ import annotations

import pytest

from poolbisect.errors import UsageError
from poolbisect.formats import Choice, ScoreFile, parse_bytes

BAR = (
    "  0%|          | 0/200 [00:00<?, ?it/s]\r"
    " 50%|#####     | 100/200 [00:05<00:05, 20.0it/s, acc=81.00%]\r"
    "100%|##########| 200/200 [00:10<00:00, 20.0it/s]"
)


def read(text: str, **choice: object) -> ScoreFile:
    return parse_bytes(text.encode(), "eval.log", Choice(**choice))  # type: ignore[arg-type]


def refused(text: str, **choice: object) -> str:
    with pytest.raises(UsageError) as raised:
        read(text, **choice)
    message = str(raised.value)
    assert len(message.splitlines()) == 1
    return message


def test_a_score_after_a_progress_bar_on_the_same_line() -> None:
    log = f"\x1b[32mready\x1b[0m\n{BAR}Accuracy: 0.775\nInvalid: 0.000\nLatency: 9.1 s\n"
    score = read(log + "avg_spec_accept_length=3.2100\n")
    assert (score.score, score.asked, score.correct) == (0.775, 200, 155)
    assert score.accept_length == 3.21
    assert any("progress bar on line 2" in note for note in score.notes)


def test_one_score_said_in_several_ways_is_read_most_exactly() -> None:
    log = (
        "Total latency: 12.3 s\nScore: 0.776\n"
        '[METRIC] gsm8k_score=0.7763457164518575 labels={"model": "m", "eval": "gsm8k"}\n'
        '[METRIC] gsm8k_latency=12.3 labels={"model": "m", "eval": "gsm8k"}\n'
        "{'chars': 300.1, 'score': np.float64(0.7763457164518575)}\n"
        "metrics={'chars': 300.1, 'score': np.float64(0.7763457164518575)}\n"
    )
    score = read(log, asked=1319)
    assert score.score == 0.7763457164518575
    assert score.correct == 1024
    assert score.facts == {"task": "gsm8k", "model": "m"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'accuracy': np.float64(0.77), 'invalid': np.float64(0.0)}", 0.77),
        ("Score: 0.776", 0.776),
        ("[2026-05-01 03:00:00] Score: 0.776", 0.776),
        ("Score: 1.000", 1.0),
        ("Accuracy: np.float64(0.776)", 0.776),
        ("{'latency': 3.1,\n 'score': np.float64(0.776)}", 0.776),
        ('{"event": "start"}\nScore: 0.776', 0.776),
        ("Score: 77.6%", 0.776),
        ("Score: 77.6\n[METRIC] gsm8k_score=0.776", 0.776),
        ("* score      =  77.60%\n  no_answer  =  20.00%", 0.776),
        ("\ufeffScore: 0.776\r\n", 0.776),
    ],
)
def test_forms_of_a_score(text: str, expected: float) -> None:
    assert read(text).score == pytest.approx(expected)


def test_a_scale_of_100_must_be_said() -> None:
    assert "eval.log:2: Score is 77.6, above 1 on a 0-1 scale" in refused("x\nScore: 77.6")
    assert read("Score: 77.6", scale=100).score == pytest.approx(0.776)
    assert "above 100" in refused("Score: 776", scale=100)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "eval.log:1: no score"),
        ("warming up\ndone\n", "eval.log:2: no score"),
        ("Invalid: 0.000\n[METRIC] gsm8k_latency=0.5", "eval.log:2: no score"),
        (BAR + "\n", "eval.log:1: no score"),
        ("ok\nScore: 1.2", "eval.log:2: Score is 1.2, above 1"),
        ("Score: -0.2", "eval.log:1: Score is -0.2, below 0"),
        ("Score: nan", "eval.log:1: Score is 'nan', not a score"),
        ("Score: 0.72\nScore: 0.776", "eval.log:2: a second score, 0.776 after 0.72 on line 1"),
        ("Score: 0.72\nScore: 0.72", "without an attempt number"),
        ("Score: 0.72\nAccuracy: 0.776", "two scores that disagree"),
        ("Answered 1279 of 1319\nScore: 0.776", "eval.log:1: 1279 of 1319 questions"),
        ("80%|####  | 160/200 [00:01]\nScore: 0.775", "eval.log:1: 160 of 200 questions"),
        ("asked: 200\nanswered: 160\nScore: 0.775", "eval.log:2: 160 of 200 questions"),
        ("Questions: 10\nScore: 0.776", "no whole number of right answers among 10"),
    ],
)
def test_what_is_no_score_is_an_error_that_names_the_line(text: str, named: str) -> None:
    assert named in refused(text)


def test_attempts_are_chosen_and_never_the_best_of_them_taken() -> None:
    log = "Attempt 1/3\nScore: 0.720\nAttempt 2/3\nScore: 0.776\n"
    message = refused(log)
    assert "1: 0.72 (line 2), 2: 0.776 (line 4)" in message
    assert "--attempt" in message
    assert read(log, attempt=1).score == 0.72
    assert "attempts: 1, 2" in refused(log, attempt=3)


def test_a_partial_summary_is_marked() -> None:
    summary = "30 examples (single-shot)  |  8.0s\n* score  =  78.00%\n"
    log = summary + "[partial] 12 / 30 examples completed"
    score = read(log)
    assert score.partial
    assert (score.asked, score.answered) == (30, 12)


def test_a_bar_of_something_else_counts_no_questions() -> None:
    """36 captured batches cannot be the questions of a score of 0.776."""
    score = read("Capturing batches: 100%|####| 36/36 [00:09<00:00]\nScore: 0.776\n")
    assert score.asked is None


def test_utf_16_as_powershell_writes_it() -> None:
    data = "Score: 0.776\r\n".encode("utf-16")
    assert parse_bytes(data, "out.txt").score == 0.776
