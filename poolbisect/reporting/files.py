"""The report files of one folder: report.html, report.md and junit.xml, made of its result.json."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from poolbisect.errors import UsageError
from poolbisect.reporting.documents.reading import read_document, report_home
from poolbisect.reporting.model import Report
from poolbisect.reporting.opening import report_of

FORMATS = ("html", "markdown", "junit")
STEP_SUMMARY_LIMIT = 1024 * 1024


def write_reports(
    folder: Path,
    *,
    markdown_limit: int = STEP_SUMMARY_LIMIT,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Render the result.json in `folder`; the files that were written.

    `markdown_limit` is in bytes. Each file is replaced whole or not at all. UsageError, one
    sentence, if the folder holds no document that can be rendered or cannot be written.
    """
    home = report_home(folder)
    report = report_of(read_document(home), home)
    written = []
    for name in formats:
        file, write = _WRITERS[name]
        path = home / file
        try:
            _replaced(path, report, write, markdown_limit)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"{path}: cannot be written ({reason})") from error
        written.append(path)
    return written


Writer = Callable[[Report, Path, int], None]


def _replaced(path: Path, report: Report, write: Writer, limit: int) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(report, fresh, limit)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _html(report: Report, path: Path, _: int) -> None:
    from poolbisect.reporting.rendering.html import html

    path.write_text(html(report), encoding="utf-8")


def _markdown(report: Report, path: Path, limit: int) -> None:
    from poolbisect.reporting.rendering.markdown import markdown

    path.write_text(markdown(report, limit), encoding="utf-8")


def _junit(report: Report, path: Path, _: int) -> None:
    from poolbisect.reporting.rendering.junit import write_junit

    write_junit(report, path)


_WRITERS: dict[str, tuple[str, Writer]] = {
    "html": ("report.html", _html),
    "markdown": ("report.md", _markdown),
    "junit": ("junit.xml", _junit),
}
