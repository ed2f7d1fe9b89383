"""Whatever date a commit has, it is a commit like any other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.history.commit_dates import UNKNOWN, commit_date
from poolbisect.history.ranges import commit_range
from poolbisect.history.repository import open_repository

AT = 1_700_000_000
USUAL = f"committer C <c@example.org> {AT} +0200"


def whose(line: str) -> str:
    return f"author A <a@example.org> {line}"


@pytest.mark.parametrize(
    ("author", "isoformat"),
    [
        (whose(f"{AT} +0530"), "2023-11-15T03:43:20+05:30"),
        (whose(f"{AT} +051800"), "2023-11-14T22:13:20+00:00"),
        (whose(f"{AT} -7530"), "2023-11-14T22:13:20+00:00"),
        (whose("999999999999 +0200"), "9999-12-31T01:59:59+02:00"),
        (whose("99999999999999999999999 +0200"), UNKNOWN.isoformat()),
        (whose("yesterday +0200"), UNKNOWN.isoformat()),
        (whose(""), UNKNOWN.isoformat()),
        ("author", UNKNOWN.isoformat()),
        ("", UNKNOWN.isoformat()),
    ],
)
def test_a_commit_with_an_unusual_date_is_read(builder: Any, author: str, isoformat: str) -> None:
    base = builder.commit("base", {"f": "0"})
    tree = builder.git("rev-parse", f"{base}^{{tree}}")
    lines = (f"tree {tree}", f"parent {base}", *filter(None, [author]), USUAL, "", "odd", "")
    store = ("hash-object", "-t", "commit", "-w", "--literally", "--stdin")
    odd = builder.git(*store, stdin="\n".join(lines))
    committed = USUAL if not author else author.replace("author", "committer", 1)
    lines = (f"tree {tree}", f"parent {odd}", whose(f"{AT} +0200"), committed, "", "later", "")
    later = builder.git(*store, stdin="\n".join(lines))
    with open_repository(builder.folder) as repository:
        history = commit_range(repository, base, later)
        assert [commit.title for commit in history.commits] == ["base", "odd", "later"]
        assert history.commits[1].author_date.isoformat() == isoformat
        assert history.commits[1].commit_date.timestamp() == AT
        if author:
            assert history.commits[2].commit_date.isoformat() == isoformat
        assert str(history.commits[2]).startswith(later[:10])


@given(st.text() | st.from_regex(r"-?[0-9]{1,30} [+-]?[0-9]{1,12}", fullmatch=True))
def test_any_text_is_a_date_that_every_zone_can_show(raw: str) -> None:
    date = commit_date(raw)
    offset = date.utcoffset()
    assert offset is not None
    assert abs(offset) < timedelta(days=1)
    assert datetime.fromisoformat(date.isoformat()) == date
    date.astimezone(UTC)


@given(
    st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 30)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
)
def test_a_usual_date_is_itself(local: datetime, minutes: int) -> None:
    local = local.replace(microsecond=0, tzinfo=UTC)
    seconds = (local - UNKNOWN) // timedelta(seconds=1)
    hours, rest = divmod(abs(minutes), 60)
    zone = f"{'-' if minutes < 0 else '+'}{hours:02}{rest:02}"
    date = commit_date(f"{seconds} {zone}")
    assert date == local
    assert date.utcoffset() == timedelta(minutes=minutes)
