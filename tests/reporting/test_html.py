"""The HTML file itself: valid, self-contained, of bounded size, with its policy's hashes."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import html5lib
import pytest

from poolbisect.reporting.contents.questions import LONGEST
from poolbisect.reporting.files import write_reports
from poolbisect.reporting.index import write_index
from tests.reporting.conftest import (
    HOSTILE,
    MakeRun,
    bisect_document,
    night_document,
    write_document,
)


def parsed(path: Path) -> html5lib.HTMLParser:
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.document = parser.parse(path.read_bytes(), likely_encoding="utf-8")
    assert parser.errors == []
    return parser


@pytest.fixture
def pages(make_run: MakeRun, tmp_path: Path) -> list[Path]:
    """A run with hostile text, a bisect, a night and the index."""
    reports = tmp_path / "reports"
    folders = [
        make_run(wrong=HOSTILE, reason=HOSTILE),
        write_document(reports / "bisect" / "1", bisect_document(HOSTILE, scored=True)),
        write_document(reports / "nightly" / "1", night_document()),
    ]
    for folder in folders:
        write_reports(folder)
    return [*(folder / "report.html" for folder in folders), write_index(reports)]


def test_every_page_is_valid_html(pages: list[Path]) -> None:
    for path in pages:
        parsed(path)


def test_ids_are_used_once_and_references_resolve(pages: list[Path]) -> None:
    for path in pages:
        text = path.read_text()
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        for names in re.findall(r'aria-labelledby="([^"]+)"', text):
            assert set(names.split()) <= set(ids)


def test_tables_have_captions_and_scopes(pages: list[Path]) -> None:
    for path in pages:
        document = parsed(path).document
        tables = list(document.iter("table"))
        assert tables
        for table in tables:
            assert (table.find("caption").text or "").strip()
            assert all(head.get("scope") in ("col", "row") for head in table.iter("th"))
        for drawing in document.iter("svg"):
            assert drawing.find("title").text
            assert drawing.find("desc").text


def test_nothing_outside_is_named(pages: list[Path]) -> None:
    for path in pages:
        document = parsed(path).document
        for element in document.iter():
            if not isinstance(element.tag, str):
                continue
            assert element.tag not in ("link", "img", "iframe", "object", "embed", "base")
            assert not any(name.startswith("on") or name == "style" for name in element.attrib)
            assert "src" not in element.attrib
            href = element.get("href", "#")
            assert href.startswith(("#", "./"))
        assert "url(" not in path.read_text().split("</style>")[0]


def test_the_policy_allows_the_own_style_and_script_only(pages: list[Path]) -> None:
    for path in pages:
        document = parsed(path).document
        (policy,) = [
            meta.get("content")
            for meta in document.iter("meta")
            if meta.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        for tag in ("style", "script"):
            (element,) = document.iter(tag)
            digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in policy


def test_a_whole_run_that_lost_everything_stays_small(make_run: MakeRun) -> None:
    """1,319 questions, every one lost, every answer longer than is shown."""
    folder = make_run(asked=1319, lost=1319, text="1" * 3 * LONGEST, wrong="2" * 3 * LONGEST)
    path = write_reports(folder, formats=["html"])[0]
    assert path.stat().st_size < 1_500_000
    assert "more are in" in path.read_text()


def test_a_run_of_usual_answers_shows_every_lost_question(make_run: MakeRun) -> None:
    folder = make_run(asked=1319, lost=600, text="58-18=40;40*9=360", wrong="58-18=40;40*9=361")
    path = write_reports(folder, formats=["html"])[0]
    text = path.read_text()
    assert path.stat().st_size < 1_000_000
    assert "(600 rows)" in text
    assert "more are in" not in text
    assert "58-18=40;40*9=36<mark>1</mark>" in text


def test_rendering_again_gives_the_same_bytes(make_run: MakeRun) -> None:
    folder = make_run()
    first = [path.read_bytes() for path in write_reports(folder)]
    assert [path.read_bytes() for path in write_reports(folder)] == first
