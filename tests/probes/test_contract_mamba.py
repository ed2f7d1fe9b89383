"""The contract of the mappings from request slots to mamba slots (cases A2, A3, A4)."""

from __future__ import annotations

import pytest

from poolbisect.errors import NotApplicableError
from poolbisect.pools.interface import MAMBA_MAPPING, MAMBA_MAPPINGS, HybridRequestPool
from poolbisect.pools.mamba_mapping import HybridSlots
from poolbisect.pools.mamba_sizing import (
    MambaSizing,
    mamba_ratio,
    mamba_size_per_rank,
    running_requests_per_rank,
)
from poolbisect.pools.original import ReqToTokenPool
from poolbisect.pools.shipped import FAMILIES, ShippedPools
from poolbisect.probes.contract import Lack, contracts


class PaddedWithStaleRows(HybridSlots, ReqToTokenPool):
    """A padding row, and mappings as long as the pool says it is: no state of upstream's."""

    def mapping_rows(self) -> int:
        return self.size


class StalePools(ShippedPools):
    def make_hybrid_pool(
        self, size: int, max_context_len: int, device: str, **more: object
    ) -> HybridRequestPool:
        mamba = MambaSizing(more["mamba_size"], extra_buffer=True)  # type: ignore[arg-type]
        return PaddedWithStaleRows(size, max_context_len, device, mamba=mamba)  # type: ignore[return-value]


def test_a2_both_mappings_are_short_from_the_mamba_size_on() -> None:
    pools = ShippedPools("original", "mamba")
    found = contracts(pools, MAMBA_MAPPINGS, 8, mamba=MambaSizing(3, extra_buffer=True))
    assert [one.buffer for one in found] == list(MAMBA_MAPPINGS)
    for one in found:
        assert (one.rows, one.first, one.last) == (3, 0, 7)
        assert (one.short_from, one.missing, one.lacks) == (3, 5, Lack.OTHER_SIZE)
        assert str(one) == (
            f"{one.buffer}: 3 rows, but request slots run to 7: "
            "short by 5 rows from request slot 3 on"
        )


@pytest.mark.parametrize("mamba_size", [8, 9, 24])
def test_a2_with_as_many_mamba_slots_as_requests_it_is_clean(mamba_size: int) -> None:
    found = contracts(
        ShippedPools("original", "mamba"),
        MAMBA_MAPPINGS,
        8,
        mamba=MambaSizing(mamba_size, extra_buffer=True),
    )
    assert [(one.missing, one.lacks) for one in found] == [(0, None)] * 2


def test_a2_only_the_last_slot_is_the_padding_rows_kind() -> None:
    for one in contracts(StalePools("original"), MAMBA_MAPPINGS, 8, mamba=MambaSizing(3)):
        assert (one.rows, one.first, one.last) == (8, 1, 8)
        assert (one.short_from, one.missing, one.lacks) == (8, 1, Lack.PADDING_ROW)


@pytest.mark.parametrize(
    ("family", "state"), [("mamba", "corrected"), ("mamba", "padded"), ("padding", "corrected")]
)
@pytest.mark.parametrize("mamba_size", [1, 3, 8, 12])
@pytest.mark.parametrize("pre_alloc_size", [None, 0, 4])
def test_corrected_states_have_a_row_for_every_slot(
    family: str, state: str, mamba_size: int, pre_alloc_size: int | None
) -> None:
    found = contracts(
        ShippedPools(state, family),
        MAMBA_MAPPINGS,
        8,
        pre_alloc_size,
        MambaSizing(mamba_size, extra_buffer=True),
    )
    assert [one.missing for one in found] == [0, 0]


@pytest.mark.parametrize(
    ("state", "rows", "short_from"), [("original", 32, 32), ("corrected", 64, None)]
)
def test_a3_is_computed_from_the_configuration(
    state: str, rows: int, short_from: int | None
) -> None:
    """PD decode, 64 requests and 64 mamba slots on 2 ranks, 32 more slots pre-allocated."""
    mamba_size = mamba_size_per_rank(64, 64, 2)
    slots = running_requests_per_rank(64, 2, mamba_size, mamba_ratio(radix_cache=False))
    (one,) = contracts(
        ShippedPools(state, "pd-mamba"), [MAMBA_MAPPING], slots, 32, MambaSizing(mamba_size)
    )
    assert (one.rows, one.first, one.last, one.short_from) == (rows, 0, 63, short_from)


@pytest.mark.parametrize("pre_alloc_size", [0, 1])
def test_pd_decode_without_pre_allocation_is_clean(pre_alloc_size: int) -> None:
    (one,) = contracts(
        ShippedPools("original", "pd-mamba"), [MAMBA_MAPPING], 32, pre_alloc_size, MambaSizing(32)
    )
    assert one.missing == pre_alloc_size


@pytest.mark.parametrize(
    ("family", "state"), [(f, s) for f, states in FAMILIES.items() for s in states]
)
@pytest.mark.parametrize("pre_alloc_size", [None, 0])
def test_a4_one_request_and_one_mamba_slot_fit_in_every_state(
    family: str, state: str, pre_alloc_size: int | None
) -> None:
    (one,) = contracts(
        ShippedPools(state, family), [MAMBA_MAPPING], 1, pre_alloc_size, MambaSizing(1)
    )
    assert (one.missing, one.last - one.first) == (0, 0)


def test_other_consumers_are_checked_beside_the_mappings() -> None:
    hidden, mapping = contracts(
        ShippedPools("original"),
        ["req_to_hidden_states_pool", MAMBA_MAPPING],
        8,
        mamba=MambaSizing(3),
    )
    assert (hidden.missing, hidden.lacks, mapping.missing) == (1, Lack.PADDING_ROW, 0)


def test_a_pool_without_the_mapping_is_not_applicable() -> None:
    with pytest.raises(NotApplicableError, match=MAMBA_MAPPING):
        contracts(ShippedPools("original"), [MAMBA_MAPPING], 8)
    with pytest.raises(NotApplicableError, match="extra buffer"):
        contracts(ShippedPools("original"), MAMBA_MAPPINGS, 8, mamba=MambaSizing(3))
