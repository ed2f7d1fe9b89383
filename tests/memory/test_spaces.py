"""Index spaces: who holds an index, how long a buffer must be, how much has been used."""

from __future__ import annotations

import pytest

from poolbisect.memory.spaces import IndexSpace


def test_owners_come_and_go_but_use_is_remembered() -> None:
    space = IndexSpace("request slot", 1, 8)
    space.take([1, 8], ["a", "b"])
    assert space.owners == {1: "a", 8: "b"}
    space.release([8])
    assert space.owners == {1: "a"}
    space.take([1], ["c"])
    assert space.owners == {1: "c"}
    assert space.used == {1, 8}
    assert space.coverage == pytest.approx(2 / 8)


def test_every_index_needs_an_owner() -> None:
    with pytest.raises(ValueError, match="shorter"):
        IndexSpace("request slot", 1, 8).take([1, 2], ["a"])


@pytest.mark.parametrize(("rows", "missing"), [(8, 1), (9, 0), (10, 0), (0, 9)])
def test_a_buffer_needs_more_rows_than_the_largest_index(rows: int, missing: int) -> None:
    assert IndexSpace("request slot", 1, 8).missing_rows(rows) == missing


def test_a_space_of_one_index() -> None:
    space = IndexSpace("request slot", 0, 0)
    assert (space.coverage, space.missing_rows(1), space.missing_rows(0)) == (0, 0, 1)
    space.take([0], ["a"])
    assert space.coverage == 1
