"""A commit's date, however odd: git stores what it is given."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for a date that a commit does not have, or that cannot be read."""

_RAW = re.compile(r"(-?\d+) ([+-]?)(\d+)")
_DAY = timedelta(days=1)
# A day away from what a datetime can hold, so that every time zone can show it.
_EARLIEST = datetime.min.replace(tzinfo=UTC) + _DAY
_LATEST = datetime.max.replace(tzinfo=UTC, microsecond=0) - _DAY


def commit_date(raw: str) -> datetime:
    """The date of git's raw format, seconds since 1970 and a zone: "1770000000 +0200".

    A year that a datetime cannot hold is the nearest one that it can. A zone of a day or more is
    none: the date is in UTC then.
    """
    match = _RAW.fullmatch(raw.strip())
    if match is None:
        return UNKNOWN
    seconds, sign, zone = match.groups()
    since = min(max(int(seconds), _seconds(_EARLIEST)), _seconds(_LATEST))
    hours, minutes = divmod(min(int(zone), 9999), 100)
    offset = timedelta(hours=hours, minutes=minutes)
    if offset >= _DAY:
        offset = timedelta()
    return (UNKNOWN + timedelta(seconds=since)).astimezone(
        timezone(-offset if sign == "-" else offset)
    )


def _seconds(date: datetime) -> int:
    return (date - UNKNOWN) // timedelta(seconds=1)
