"""Reports in a real headless Chromium: they work, offline, and nothing in them is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from poolbisect.reporting.files import write_reports
from poolbisect.reporting.index import write_index
from tests.reporting.conftest import (
    HOSTILE,
    MakeRun,
    Open,
    bisect_document,
    night_document,
    write_document,
)

Page = Any


def column(page: Page, table: int, number: int) -> list[str]:
    """The visible cells of a column, top to bottom."""
    cells: list[str] = page.evaluate(
        """([table, number]) => [...document.querySelectorAll('main table')[table]
            .tBodies[0].rows].filter(row => row.offsetParent !== null)
            .map(row => row.cells[number].textContent.trim())""",
        [table, number],
    )
    return cells


def discordant(page: Page) -> int:
    """Which of the page's tables holds the discordant questions."""
    return int(
        page.evaluate(
            """[...document.querySelectorAll('main table')].findIndex(
                table => table.caption.textContent.includes('Right on one side only'))"""
        )
    )


def test_a_report_says_nothing_and_asks_for_nothing(rendered_run: Path, opened: Open) -> None:
    one = opened()
    page = one.at(rendered_run / "report.html")
    assert one.said == []
    assert one.asked == [page.url]
    assert "req_to_hidden_states_pool" in page.inner_text("h1")
    assert page.evaluate("getComputedStyle(document.querySelector('.badge')).fontWeight") == "650"


def test_tables_sort_by_number_and_back(rendered_run: Path, opened: Open) -> None:
    page = opened().at(rendered_run / "report.html")
    table = discordant(page)
    before = [int(cell) for cell in column(page, table, 0)]
    heads = page.locator("main table").nth(table).locator("thead th")
    heads.nth(0).get_by_role("button").click()
    assert [int(cell) for cell in column(page, table, 0)] == sorted(before)
    assert heads.nth(0).get_attribute("aria-sort") == "ascending"
    heads.nth(0).get_by_role("button").click()
    assert [int(cell) for cell in column(page, table, 0)] == sorted(before, reverse=True)
    assert heads.nth(0).get_attribute("aria-sort") == "descending"
    heads.nth(1).get_by_role("button").click()
    assert heads.nth(0).get_attribute("aria-sort") is None
    assert column(page, table, 1) == sorted(column(page, table, 1))


def test_tables_sort_by_keyboard_alone(make_run: MakeRun, opened: Open) -> None:
    folder = make_run()
    write_reports(folder)
    page = opened().at(folder / "report.html")
    table = discordant(page)
    button = page.locator("main table").nth(table).locator("thead button").first
    for _ in range(60):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    else:
        pytest.fail("the button cannot be reached with Tab")
    outline = button.evaluate("button => getComputedStyle(button).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert [int(cell) for cell in column(page, table, 0)] == list(range(9, -1, -1))


def test_tables_are_filtered_by_words_and_say_how_many(make_run: MakeRun, opened: Open) -> None:
    folder = make_run(lost=12)
    write_reports(folder)
    page = opened().at(folder / "report.html")
    table = discordant(page)
    field = page.get_by_role("searchbox", name="Filter: Right on one side only")
    field.fill("11+1: LOST")
    assert column(page, table, 0) == ["11"]
    assert page.locator("#questions").get_by_role("status").inner_text() == "1 of 12 shown"
    field.fill("no such words")
    assert column(page, table, 0) == []
    field.fill("")
    assert len(column(page, table, 0)) == 12
    assert page.locator("#questions").get_by_role("status").inner_text() == ""


def test_every_link_inside_the_page_leads_somewhere(rendered_run: Path, opened: Open) -> None:
    page = opened().at(rendered_run / "report.html")
    targets = page.eval_on_selector_all("a[href^='#']", "all => all.map(a => a.hash.slice(1))")
    assert {"accuracy", "memory", "slots", "questions", "environment"} <= set(targets)
    for target in targets:
        assert page.locator(f"[id='{target}']").count() == 1


def test_the_index_leads_to_each_report(make_run: MakeRun, opened: Open, tmp_path: Path) -> None:
    folder = make_run(name="a #50%? b")
    write_reports(folder)
    index = write_index(tmp_path / "reports")
    one = opened()
    page = one.at(index)
    page.locator("#reports a").first.click()
    page.wait_for_url("**/report.html")
    assert "original" in page.inner_text("h1")
    assert one.said == []


def test_dark_is_dark_and_light_is_light(rendered_run: Path, opened: Open) -> None:
    for scheme, is_dark in (("light", False), ("dark", True)):
        page = opened(color_scheme=scheme).at(rendered_run / "report.html")
        red, green, blue = page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        )
        assert (red + green + blue < 200) is is_dark


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, make_run: MakeRun, opened: Open, tmp_path: Path) -> None:
    """Contrast, labels, roles, headings, table headers: what axe-core can check."""
    if "POOLBISECT_CI" not in os.environ:
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    bisect = write_document(tmp_path / "reports" / "bisect" / "1", bisect_document(scored=True))
    first = write_document(
        tmp_path / "reports" / "nightly" / "1",
        night_document("2026-05-31T02:00:00.000+00:00", None, 0.776),
    )
    night = write_document(tmp_path / "reports" / "nightly" / "2", night_document())
    run = make_run()
    for folder in (run, bisect, first, night):
        write_reports(folder)
    index = write_index(tmp_path / "reports")
    for path in (
        run / "report.html",
        bisect / "report.html",
        night / "report.html",
        index,
    ):
        page = opened(color_scheme=scheme).at(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_hostile_text_stays_text(make_run: MakeRun, opened: Open, tmp_path: Path) -> None:
    long = HOSTILE + "x" * 100_000
    run = make_run(
        text=HOSTILE + " one",
        wrong=long,
        reason=HOSTILE,
        scenario=HOSTILE,
        configuration={HOSTILE: {HOSTILE: HOSTILE}},
        command=["poolbisect", HOSTILE],
        environment={HOSTILE: HOSTILE},
    )
    bisect = write_document(tmp_path / "reports" / "bisect" / "1", bisect_document(HOSTILE))
    for folder in (run, bisect):
        write_reports(folder)
        one = opened(viewport={"width": 800, "height": 600})
        page = one.at(folder / "report.html")
        assert one.said == []
        assert one.asked == [page.url]
        assert page.evaluate("window.hit") is None
        assert page.locator("img, iframe, object, embed, [onerror], [onload]").count() == 0
        assert page.locator("script").count() == 1
        text = page.inner_text("main")
        assert "</script></style><img src=x onerror=" in text
        assert "{{ 7*7 }}" in text
        assert "[U+202E]gnp.exe[U+2066]" in text
        assert "\u202e" not in text
        assert "␀␛[31m" in text
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    write_index(tmp_path / "reports")
    page = opened().at(tmp_path / "reports" / "index.html")
    assert page.evaluate("window.hit") is None
    assert page.locator("img").count() == 0


def test_the_policy_stops_a_script_that_got_in(rendered_run: Path, opened: Open) -> None:
    one = opened()
    page = one.at(rendered_run / "report.html")
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.hit = 1';
            document.body.append(script);
            const image = document.createElement('img');
            image.setAttribute('onerror', 'window.hit = 1');
            image.src = 'http://127.0.0.1:9/x.png';
            document.body.append(image);
        }"""
    )
    page.wait_for_function("document.querySelector('img').complete")
    assert page.evaluate("window.hit") is None
    assert any("Content Security Policy" in words for words in one.said)


@pytest.mark.parametrize("width", [320, 390, 800])
def test_narrow_screens_do_not_scroll_sideways(
    width: int, rendered_run: Path, opened: Open, tmp_path: Path
) -> None:
    bisect = write_document(tmp_path / "bisect" / "1", bisect_document("t" * 300, scored=True))
    write_reports(bisect)
    for folder in (rendered_run, bisect):
        page = opened(viewport={"width": width, "height": 800}).at(folder / "report.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_print_shows_everything_open_on_paper(make_run: MakeRun, opened: Open) -> None:
    folder = make_run(asked=80, lost=60)
    write_reports(folder)
    page = opened(color_scheme="dark").at(folder / "report.html")
    assert len(column(page, discordant(page), 0)) == 60
    page.emulate_media(media="print", color_scheme="dark")
    assert len(column(page, discordant(page), 0)) == 40
    assert page.get_by_text("Printed: the first 40 of 60 rows.").is_visible()
    assert not page.locator("nav").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    table = page.locator("#questions .scroll")
    assert table.evaluate("box => box.scrollHeight <= box.clientHeight + 1")
    assert page.pdf()[:5] == b"%PDF-"


def test_charts_have_names_and_words(rendered_run: Path, opened: Open) -> None:
    page = opened().at(rendered_run / "report.html")
    figure = page.get_by_role("img", name="Questions lost by original, by request slot")
    assert figure.count() == 1
    described = figure.evaluate(
        "svg => document.getElementById(svg.getAttribute('aria-labelledby').split(' ')[1])"
        ".textContent"
    )
    assert "On slots without a row" in described
    assert page.get_by_text("slot 64: no row").count() == 1


def test_a_year_of_nights_is_one_usable_index(opened: Open, tmp_path: Path) -> None:
    for night in range(365):
        stamp = f"20{20 + night // 336:02d}-{1 + night % 336 // 28:02d}-{1 + night % 28:02d}"
        red = night in (200, 201)
        document = night_document(
            f"{stamp}T02:00:00.000+00:00", "new" if red else None, 0.72 if red else 0.776
        )
        write_document(tmp_path / "reports" / "nightly" / stamp, document)
    index = write_index(tmp_path / "reports")
    assert index.stat().st_size < 1_500_000
    page = opened().at(index)
    assert len(column(page, 0, 0)) == 365
    page.get_by_role("searchbox").fill("new: original")
    assert len(column(page, 0, 0)) == 2
    assert page.locator("#trends svg .diamond").count() == 2
