"""One self-contained HTML file: no reference to anything outside, nothing run but its own script.

Everything from outside is escaped by jinja2 and made visible first. The content security policy
allows exactly the style and the script of this file, by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from poolbisect.own_environment import own_version
from poolbisect.reporting.charts.shapes import Chart
from poolbisect.reporting.model import (
    Code,
    Commands,
    Fact,
    Facts,
    Figure,
    Prose,
    Report,
    Table,
    Tone,
)
from poolbisect.reporting.numbers import moment, seconds
from poolbisect.reporting.rendering.visible import visible

SIGNS = {Tone.GOOD: "✓", Tone.BAD: "✗", Tone.WARNING: "!", Tone.PLAIN: ""}


def html(report: Report) -> str:
    """The report as an HTML document."""
    return page("report.html.j2", report.title, {"report": report})


def page(template: str, title: str, content: Mapping[str, Any]) -> str:
    """A template below templates/ with the style, the script and the policy of every page."""
    environment = _environment()
    style, script = _resource("page.css"), _resource("page.js")
    return environment.get_template(template).render(
        **content,
        title=title,
        style=Markup(style),
        script=Markup(script),
        policy=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        poolbisect=own_version(),
        numbered=_Numbering(),
    )


class _Numbering:
    """Ids that are used once in a page."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> int:
        self._last += 1
        return self._last


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("poolbisect.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["coordinate"] = _coordinate
    environment.filters["moment"] = moment
    environment.filters["seconds"] = seconds
    environment.filters["sign"] = SIGNS.__getitem__
    environment.tests["code"] = lambda word: isinstance(word, Code)
    for name, kind in (
        ("table", Table),
        ("figure", Figure),
        ("prose", Prose),
        ("commands", Commands),
        ("facts", Facts),
        ("fact", Fact),
        ("chart", Chart),
    ):
        environment.tests[name] = _is(kind)
    return environment


def _is(kind: type) -> Any:
    return lambda value: isinstance(value, kind)


def _shown(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _coordinate(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@cache
def _resource(name: str) -> str:
    loader = PackageLoader("poolbisect.reporting", "templates")
    return loader.get_source(_environment(), name)[0]


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
