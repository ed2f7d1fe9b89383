"""D, B14: scores in whatever form a command gives them; lost questions and no score are told."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.probes.command.options import CommandOptions
from poolbisect.probes.command.score_reading import (
    LostError,
    NoScoreError,
    Reading,
    read_file,
    read_output,
)


def of_output(
    folder: Path, out: str, err: str = "", asked: int | None = None, **options: object
) -> Reading:
    (folder / "stdout.txt").write_bytes(out.encode(errors="surrogateescape"))
    (folder / "log.txt").write_bytes((err + out).encode(errors="surrogateescape"))
    return read_output(
        folder / "stdout.txt",
        folder / "log.txt",
        CommandOptions(**options),  # type: ignore[arg-type]
        asked,
    )


def of_file(
    folder: Path, text: str, name: str = "f.json", asked: int | None = None, **options: object
) -> Reading:
    (folder / name).write_text(text)
    return read_file(folder / name, CommandOptions(**options), asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "Accuracy: 0.776\nInvalid: 0.000\nLatency: 12.3 s\n",
        "Score: 0.776",
        "\x1b[32mScore: 0.776\x1b[0m\n",
        " 99%|#########9| 1318/1319 [02:11<00:01]\rAccuracy: 0.776\n",
        "{'accuracy': np.float64(0.776), 'latency': 3.2}\n",
        "[METRIC] gsm8k_score=0.776 labels={}\n",
    ],
)
def test_an_upstream_style_line_is_found_without_options(tmp_path: Path, text: str) -> None:
    reading = of_output(tmp_path, text) if "1318" not in text else None
    if reading is None:
        with pytest.raises(LostError, match="1318 of 1319"):
            of_output(tmp_path, text)
    else:
        assert reading.score == pytest.approx(0.776)
        assert reading.answers is None


def test_how_many_questions_may_be_on_the_progress_bar_of_the_other_stream(tmp_path: Path) -> None:
    bar = "100%|##########| 200/200 [00:09<00:00]\n"
    reading = of_output(tmp_path, "Accuracy: 0.775\n", err=bar)
    assert reading.counts == (155, 200)
    assert of_output(tmp_path, "Accuracy: 0.775\n").counts is None


def test_how_many_questions_may_be_told(tmp_path: Path) -> None:
    assert of_output(tmp_path, "Score: 0.776\n", asked=1319).counts == (1024, 1319)
    with pytest.raises(NoScoreError, match="no whole number of right answers among 7"):
        of_output(tmp_path, "Score: 0.776\n", asked=7)


def test_a_key_in_json_on_output_or_in_a_file(tmp_path: Path) -> None:
    document = json.dumps({"results": {"accuracy": 0.5, "all": [{"acc,none": 0.25}]}})
    noisy = f"loading\n{document}\n"
    assert of_output(tmp_path, noisy, score_key="results.accuracy").score == 0.5
    assert of_file(tmp_path, document, score_key="results.accuracy", asked=10).counts == (5, 10)
    assert of_file(tmp_path, document, score_key="results.all.0.acc,none").score == 0.25
    assert of_file(tmp_path, '{"a.b": 0.5}', score_key="a.b").score == 0.5
    with pytest.raises(NoScoreError, match=r"ends at 'acc'; there are accuracy, all"):
        of_file(tmp_path, document, score_key="results.acc")
    with pytest.raises(NoScoreError, match=r"--scale 100"):
        of_file(tmp_path, '{"acc": 77.6}', score_key="acc")
    assert of_file(tmp_path, '{"acc": 77.6}', score_key="acc", scale=100).score == pytest.approx(
        0.776
    )


def test_a_regular_expression(tmp_path: Path) -> None:
    text = "final: acc=0.75 (n=200)\n"
    assert of_output(tmp_path, text, score_regex=r"acc=([\d.]+)").score == 0.75
    both = r"acc=(?P<score>[\d.]+) \(n=(?P<asked>\d+)\)"
    assert of_output(tmp_path, text, score_regex=both).counts == (150, 200)
    counted = r"(?P<correct>\d+)/(?P<asked>\d+) right"
    assert of_output(tmp_path, "141/200 right\n", score_regex=counted).counts == (141, 200)
    with pytest.raises(LostError, match="160 of 200"):
        of_output(tmp_path, "141/160 right\n", score_regex=counted, asked=200)
    with pytest.raises(NoScoreError, match="nothing fits"):
        of_output(tmp_path, "nothing\n", score_regex=counted)
    with pytest.raises(NoScoreError, match=r":2: two scores"):
        of_output(tmp_path, "acc=0.1\nacc=0.2\n", score_regex=r"acc=([\d.]+)")
    assert of_output(tmp_path, "acc=0.1\nacc=0.1\n", score_regex=r"acc=([\d.]+)").score == 0.1
    with pytest.raises(NoScoreError, match="not a score"):
        of_output(tmp_path, "acc=nan\n", score_regex=r"acc=(\w+)")


def answers(outcomes: str) -> str:
    values = {"1": True, "0": False, "-": None}
    lines = (json.dumps({"id": n, "correct": values[o]}) for n, o in enumerate(outcomes))
    return "".join(f"{line}\n" for line in lines)


def test_answers_one_by_one(tmp_path: Path) -> None:
    reading = of_file(tmp_path, answers("1101"), "a.jsonl")
    assert reading.answers == {0: True, 1: True, 2: False, 3: True}
    assert reading.counts == (3, 4)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (answers("1" * 160 + "-" * 40), None),
        (answers("1" * 160), 200),
    ],
)
def test_lost_questions_are_never_a_score(tmp_path: Path, text: str, asked: int | None) -> None:
    with pytest.raises(LostError, match="40 of 200 questions"):
        of_file(tmp_path, text, "a.jsonl", asked=asked)


def test_lost_questions_of_printed_scores(tmp_path: Path) -> None:
    with pytest.raises(LostError, match="160 of 200"):
        of_output(tmp_path, "answered 160/200\nAccuracy: 0.775\n")
    with pytest.raises(LostError, match="160 of 200"):
        of_output(tmp_path, "Accuracy: 0.775\n", err="80%|########  | 160/200 [00:09<00:02]\n")
    with pytest.raises(LostError, match="partial"):
        of_file(tmp_path, json.dumps({"aggregate": {"score": 0.5}, "partial": True}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no score: the file is empty"),
        ("hello\nworld\n", "standard output:2: no score"),
        ("Score: 0.7\nScore: 0.8\n", "standard output:2: a second score"),
        ("Score: 77.6\n", "standard output:1: .*--scale 100"),
    ],
)
def test_what_cannot_be_read_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NoScoreError, match=message):
        of_output(tmp_path, text)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_score_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    for options in (
        CommandOptions(),
        CommandOptions(score_key="a.b"),
        CommandOptions(score_regex=r"(\d+)"),
    ):
        (folder / "f").write_bytes(data)
        for read in (
            lambda o=options: read_output(folder / "f", folder / "f", o, None),
            lambda o=options: read_file(folder / "f", o, None),
        ):
            with contextlib.suppress(NoScoreError, LostError):
                assert 0 <= read().score <= 1
