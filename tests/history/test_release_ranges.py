"""Versions are a history like commits: in order, checked, and read as they are needed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from poolbisect.errors import UsageError
from poolbisect.history.release_ranges import ReleaseRange, release_range
from poolbisect.history.releases import WheelTree

OFFERED = ["0.5.9", "0.5.10rc0", "0.5.10", "0.5.10.post1", "0.5.11.dev2", "0.5.11", "0.5.2"]


def versions(good: str, bad: str, **options: bool) -> tuple[str, ...]:
    return release_range(good, bad, available=OFFERED, **options).versions  # type: ignore[arg-type]


def test_versions_are_in_their_own_order_and_without_pre_releases() -> None:
    assert versions("0.5.2", "0.5.11") == ("0.5.2", "0.5.9", "0.5.10", "0.5.10.post1", "0.5.11")
    assert versions("v0.5.9", "0.5.10") == ("0.5.9", "0.5.10")


def test_pre_releases_take_part_when_asked_for_or_named() -> None:
    everything = versions("0.5.9", "0.5.11", pre_releases=True)
    assert everything == ("0.5.9", "0.5.10rc0", "0.5.10", "0.5.10.post1", "0.5.11.dev2", "0.5.11")
    assert versions("0.5.10rc0", "0.5.10.post1") == ("0.5.10rc0", "0.5.10", "0.5.10.post1")


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("0.5.9", "0.5.9.0", "the same release"),
        ("0.5.11", "0.5.9", "bisect --find fixed"),
        ("0.5.99", "0.5.9", "--good 0.5.99: there is no sglang 0.5.99 "),
        ("0.5.11", "0.5.8", "--bad 0.5.8: there is no sglang 0.5.8 .*the nearest is 0.5.9"),
        ("main", "0.5.9", "--good main is not a release version"),
        ("0.5.9", "0.5.12", "--bad 0.5.12: there is no sglang 0.5.12 .*the nearest is 0.5.1"),
        ("0.5.3", "0.5.9", "--good 0.5.3: there is no sglang 0.5.3 .*the nearest is 0.5.2"),
    ],
)
def test_mistakes_are_named(good: str, bad: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        versions(good, bad)
    assert len(str(raised.value).splitlines()) == 1


def test_wheels_come_when_they_are_read_and_bring_their_date(tmp_path: Path) -> None:
    fetched = []

    def fetch(version: str) -> WheelTree:
        fetched.append(version)
        wheel = tmp_path / f"sglang-{version}-py3-none-any.whl"
        year = 2026 if version == "0.5.9" else 1980
        with zipfile.ZipFile(wheel, "w") as archive:
            for day in (1, 3, 2):
                member = zipfile.ZipInfo(f"sglang/{day}.py", (year, 1, day, 12, 0, 0))
                archive.writestr(member, f"day = {day}\n")
        return WheelTree(wheel)

    history = ReleaseRange(("0.5.9", "0.5.10"), fetch)
    assert [entry.date for entry in history.entries] == [None, None]
    assert fetched == []
    assert history.tree(0).read("sglang/2.py") == "day = 2\n"
    assert history.tree(1).name == "sglang 0.5.10"
    assert fetched == ["0.5.9", "0.5.10"]
    dates = [entry.date for entry in history.entries]
    assert dates[0] is not None
    assert f"{dates[0]:%Y-%m-%d}" == "2026-01-03"
    assert dates[1] is None  # built without a clock
    assert (history.parents(0), history.parents(1)) == ((), (0,))


@pytest.mark.network
def test_the_index_is_asked() -> None:
    history = release_range("0.5.10.post1", "0.5.12")
    assert history.versions[0] == "0.5.10.post1"
    assert "0.5.11" in history.versions
    assert history.versions[-1] == "0.5.12"
