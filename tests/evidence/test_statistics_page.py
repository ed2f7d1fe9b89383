from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
COMMANDS = re.findall(r'^\$ python -c "\n(.*?)^"\n(.*?)^```', PAGE.read_text("utf-8"), re.M | re.S)


def test_every_section_on_a_statistic_has_a_worked_number():
    sections = PAGE.read_text("utf-8").split("\n## ")[1:]
    assert [section.splitlines()[0] for section in sections if "$ python -c" not in section] == []


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        pytest.param(*pair, marks=pytest.mark.slow if "nightly" in pair[0] else [], id=str(number))
        for number, pair in enumerate(COMMANDS)
    ],
)
def test_the_page_prints_what_its_commands_print(command, printed):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(command, {})
    assert out.getvalue() == printed
