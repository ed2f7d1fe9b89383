"""Markdown for step summaries: under its limit, and nothing in it acts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from poolbisect.reporting.documents.reading import read_document
from poolbisect.reporting.files import write_reports
from poolbisect.reporting.model import Report
from poolbisect.reporting.opening import report_of
from poolbisect.reporting.rendering.markdown import code, escaped, markdown
from tests.reporting.conftest import HOSTILE, MakeRun


@pytest.fixture
def report(make_run: MakeRun) -> Report:
    folder = make_run(lost=30)
    return report_of(read_document(folder), folder)


def test_a_whole_report_is_below_the_limit_of_a_step_summary(report: Report) -> None:
    text = markdown(report)
    assert len(text.encode()) < 1024 * 1024
    assert text.startswith("# ❌ hand-made: regression\n")
    for section in report.sections:
        assert f"## {section.title}" in text
    assert "Left out" not in text


@pytest.mark.parametrize("limit", [200, 700, 1500, 3000, 4500, 5800])
def test_any_limit_is_kept_by_whole_sections_and_said(report: Report, limit: int) -> None:
    text = markdown(report, limit)
    whole = markdown(report)
    assert len(text.encode()) <= limit < len(whole.encode())
    assert text.startswith("# ❌ hand-made: regression\n")
    titles = re.findall(r"^## (.*)$", text, re.M)
    assert titles == [section.title for section in report.sections][: len(titles)]
    last = text.rstrip("\n").rsplit("\n", 1)[-1]
    assert f"{limit:,} bytes" in last
    if limit >= 1500:
        left_out = [section.title for section in report.sections][len(titles) :]
        assert last == f"_Left out to stay under {limit:,} bytes: {', '.join(left_out)}._"


@pytest.mark.parametrize("limit", range(60, 700, 20))
def test_a_limit_too_small_for_the_head_cuts_no_paragraph_in_two(
    report: Report, limit: int
) -> None:
    paragraphs = markdown(report).split("\n\n")
    *kept, line = markdown(report, limit).rstrip("\n").split("\n\n")
    assert kept == paragraphs[: len(kept)]
    assert f"{limit:,} bytes" in line


def test_a_column_of_pictures_is_left_out_though_a_subject_has_none(make_run: MakeRun) -> None:
    folder = make_run()
    whole = read_document(folder)
    document = json.loads((folder / "result.json").read_text())
    assert " to " not in _header(markdown(report_of(whole, folder)))
    for one in document["results"][::-1]:
        one |= {"ended": "crashed", "accuracy": None, "interval": None, "verdict": "untestable"}
        (folder / "result.json").write_text(json.dumps(document))
        assert " to " not in _header(markdown(report_of(read_document(folder), folder)))


def _header(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("| subject |"))


def test_the_limit_of_the_caller_is_used(make_run: MakeRun) -> None:
    folder = make_run()
    _, path, _ = write_reports(folder, markdown_limit=1500)
    assert path.stat().st_size <= 1500


@given(st.text())
def test_a_code_span_ends_where_it_should(text: str) -> None:
    span = code(text)
    if not span:
        return
    fence = re.match("`+", span)
    assert fence is not None
    assert span.endswith(fence[0])
    inner = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inner)
    assert "\n" not in span


@given(st.text())
def test_escaped_prose_holds_no_mark_that_acts(text: str) -> None:
    made = escaped(text)
    assert not re.search(r"(?<!\\)[`*_\[\]{}()#!|~]", made.replace("\\\\", ""))
    assert "<" not in made
    assert not re.search(r"@\w", made)


def test_hostile_text_makes_no_html_no_mention_and_no_extra_row(make_run: MakeRun) -> None:
    folder = make_run(reason=HOSTILE, scenario=HOSTILE, text=HOSTILE, wrong=HOSTILE + "\n| x |")
    _, path, _ = write_reports(folder)
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text())
    inline = [child for token in tokens for child in token.children or ()]
    for token in [*tokens, *inline]:
        assert token.type not in ("link_open", "image", "html_inline")
        if token.type == "html_block":
            left = re.sub(r"</?(details|summary)>", "", token.content)
            assert "<" not in left
    prose = [token.content for token in inline if token.type == "text"]
    assert any("onerror=" in words for words in prose)
    assert not any("@everyone" in words for words in prose)
    spans = [token.content for token in inline if token.type == "code_inline"]
    hostile = [span for span in spans if "{{ 7*7 }}" in span]
    assert hostile
    assert all("`| @everyone" in span for span in hostile)  # no cell was cut at the bar


def test_names_of_code_are_code(real_run: Path) -> None:
    text = markdown(report_of(read_document(real_run), real_run))
    assert "`req_to_hidden_states_pool[64]`" in text
