"""The released wheels show what upstream's history says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poolbisect.errors import NotApplicableError, UsageError
from poolbisect.history.releases import fetch_release, list_releases
from poolbisect.pools.upstream import UpstreamCode, slot_range

pytestmark = pytest.mark.network

HIDDEN, TOKENS = "req_to_hidden_states_pool", "token_table"
S, P = 64, 32


def shortage(code: UpstreamCode, buffer: str, pre_alloc_size: int | None = None) -> int:
    """Rows that the buffer lacks for the largest slot of a pool of S (+ P)."""
    pool = code.make_pool(S, 128, "cpu", pre_alloc_size)
    return slot_range(pool).largest + 1 - code.consumer_rows(buffer, pool).rows


@pytest.mark.parametrize(
    ("version", "smallest", "largest", "rows"),
    [
        ("0.5.9", 0, S - 1, S),
        ("0.5.10.post1", 0, S - 1, S),
        ("0.5.11", 1, S, S + 1),
        ("0.5.12", 1, S, S + 1),
        ("0.5.23", 1, S, S + 1),
    ],
)
def test_slots_and_rows(
    release: Callable[[str], UpstreamCode], version: str, smallest: int, largest: int, rows: int
) -> None:
    code = release(version)
    for extra in (None, P):
        pool = code.make_pool(S, 128, "cpu", extra)
        found = slot_range(pool)
        more = extra or 0
        assert pool.size == S
        assert (found.smallest, found.largest, found.rows) == (
            smallest,
            largest + more,
            rows + more,
        )


@pytest.mark.parametrize(
    ("version", "hidden", "tokens", "hidden_in_decode"),
    [
        ("0.5.9", 0, None, P),
        ("0.5.10.post1", 0, 0, P),
        ("0.5.11", 1, 1, P + 1),
        ("0.5.12", 0, 0, 0),
    ],
)
def test_consumers_are_short_where_upstream_says_so(
    release: Callable[[str], UpstreamCode],
    version: str,
    hidden: int,
    tokens: int | None,
    hidden_in_decode: int,
) -> None:
    code = release(version)
    assert shortage(code, HIDDEN) == hidden
    assert shortage(code, HIDDEN, P) == hidden_in_decode
    if tokens is None:
        with pytest.raises(NotApplicableError, match=f"{version} allocates no {TOKENS}"):
            shortage(code, TOKENS)
    else:
        assert shortage(code, TOKENS) == tokens


def test_a_consumer_that_was_removed_is_not_applicable(
    release: Callable[[str], UpstreamCode],
) -> None:
    code = release("0.5.23")
    with pytest.raises(NotApplicableError, match=rf"sglang 0\.5\.23 allocates no {HIDDEN}"):
        shortage(code, HIDDEN)
    assert shortage(code, TOKENS) == 0


def test_releases_are_known_in_order(
    release: Callable[[str], UpstreamCode], tmp_path: Path
) -> None:
    release("0.5.9")
    known = list_releases()
    wanted = ["0.5.9", "0.5.10", "0.5.10.post1", "0.5.11", "0.5.12"]
    assert [version for version in known if version in wanted] == wanted
    with pytest.raises(UsageError, match=r"no sglang 0\.5\.999 wheel"):
        fetch_release("0.5.999", tmp_path)
