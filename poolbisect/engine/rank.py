"""One data-parallel rank: its device memory, its pools, and the requests it runs.

The order of allocation follows upstream's: what belongs to the model, request pool (with its mamba
states and mappings), token table, target KV cache and graph inputs, draft KV caches, the
hidden-states pool of multi-layer EAGLE, graph inputs, and last, once the first batch has run, the
future buffers. A scenario may name something else to lie behind the hidden-states pool.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from poolbisect.engine.config import Behind, EngineConfig, MappingAccess
from poolbisect.engine.future import NEW_SEQ_LENS, TOPK_INDEX, VERIFIED_ID, FutureMap, Outcome
from poolbisect.engine.graph_inputs import GraphInputs, RowInputs
from poolbisect.engine.kv_cache import PageAllocator, kv_buffers
from poolbisect.engine.request import Request
from poolbisect.engine.shape import ModelShape, ServedModel
from poolbisect.memory.arena import Arena, Buffer
from poolbisect.memory.guard import Guard, MemoryMode
from poolbisect.memory.placement import MIB
from poolbisect.memory.spaces import IndexSpace
from poolbisect.pools.interface import (
    HIDDEN_STATES,
    MAMBA_MAPPINGS,
    TOKEN_TABLE,
    HybridRequestPool,
    RequestPool,
    SubjectPools,
)
from poolbisect.pools.mamba_sizing import MambaSizing
from poolbisect.pools.unchecked import UncheckedRows

REQUEST_SLOT = "request slot"
MAMBA_SLOT = "mamba slot"
REGION = 64 * MIB
_MOVED = {
    Behind.FUTURE_VERIFIED_IDS: VERIFIED_ID,
    Behind.FUTURE_SEQ_LENS: NEW_SEQ_LENS,
    Behind.FUTURE_DRAFTS: TOPK_INDEX,
    Behind.VERIFY_METADATA: "verify_graph",
    Behind.KV_CACHE: "target_kv",
    Behind.SLACK: VERIFIED_ID,
}


@dataclass(slots=True)
class Rank:
    """State of one rank; built by `build_rank`."""

    number: int
    config: EngineConfig
    arena: Arena
    pool: RequestPool
    slots: IndexSpace
    allocator: PageAllocator
    future: FutureMap
    buffers: dict[str, Buffer] = field(default_factory=dict)
    target_kv: list[Buffer] = field(default_factory=list)
    draft_kv: list[Buffer] = field(default_factory=list)
    verify_inputs: GraphInputs = field(init=False)
    draft_inputs: GraphInputs = field(init=False)
    mamba_states: list[tuple[Buffer, Buffer]] = field(default_factory=list)
    mamba_per_request: int = 0
    mappings: list[UncheckedRows] = field(default_factory=list)
    waiting: deque[Request] = field(default_factory=deque)
    transferred: deque[tuple[Request, Outcome]] = field(default_factory=deque)
    running: list[Request] = field(default_factory=list)
    future_indices: list[int] = field(default_factory=list)
    allocations: int = 0

    @property
    def guard(self) -> Guard:
        return self.arena.guard

    @property
    def req_to_token(self) -> Buffer:
        return self.buffers["req_to_token"]

    @property
    def hidden_states(self) -> Buffer:
        return self.buffers[HIDDEN_STATES]

    @property
    def token_table(self) -> Buffer:
        return self.buffers[TOKEN_TABLE]

    @property
    def rotary(self) -> Buffer:
        return self.buffers["rotary_cos_sin"]

    def admit(self) -> list[Request]:
        """Take as many waiting requests as there are free slots, in order of arrival."""
        count = min(len(self.waiting), self.pool.available_size(), self._mamba_room())
        if self.config.concurrency is not None:
            in_flight = len(self.slots.owners)
            count = min(count, self.config.concurrency // self.config.dp_size - in_flight)
        if count <= 0:
            return []
        requests = [self.waiting.popleft() for _ in range(count)]
        with self._on_behalf_of(requests):
            slots = self.pool.alloc(requests)
        assert slots is not None, "available_size promised that many slots"
        self.allocations += count
        self.slots.take(slots, (request.id for request in requests))
        for request, slot in zip(requests, slots, strict=True):
            request.slot_held = slot
            self.reserve(request, len(request.prompt))
        return requests

    def _mamba_room(self) -> int:
        """How many more requests the free mamba slots are enough for."""
        if not self.mamba_per_request:
            return len(self.waiting)
        pool = cast(HybridRequestPool, self.pool)
        return pool.mamba_pool.available_size() // self.mamba_per_request

    @contextmanager
    def _on_behalf_of(self, requests: Sequence[Request]) -> Iterator[None]:
        """Name the requests that the pool's accesses to its mappings are for."""
        with ExitStack() as stack:
            for mapping in self.mappings:
                stack.enter_context(mapping.on_behalf_of([request.id for request in requests]))
            yield

    def mamba_slots(self, inputs: RowInputs) -> Tensor:
        """Mamba slots (real rows,) of a pass, through the mapping; padded rows have none."""
        pool = cast(HybridRequestPool, self.pool)
        with ExitStack() as stack:
            for mapping in self.mappings:
                stack.enter_context(mapping.on_behalf_of(inputs.requests))
            return pool.get_mamba_indices(inputs.slots[: len(inputs.requests)]).long()

    def join(self, requests: list[Request], outcome: Outcome) -> None:
        """Let prefilled requests run: store what their first decode step starts from."""
        start, end = self.future.reserve(len(requests))
        self.future.store(start, end, outcome, requests)
        self.running += requests
        self.future_indices += range(start, end)

    def join_transferred(self) -> None:
        """On a PD decode instance, let as many transferred requests run as may run at once."""
        waiting = [one for one in self.transferred if one[0].finished is None]
        self.transferred = deque(waiting)
        count = min(len(waiting), self.config.slots_per_rank - len(self.running))
        if count > 0:
            joining = [self.transferred.popleft() for _ in range(count)]
            outcome = Outcome.joined([outcome for _, outcome in joining])
            self.join([request for request, _ in joining], outcome)

    def reserve(self, request: Request, tokens: int) -> None:
        """Give `request` KV locations for `tokens` tokens and write them to its row."""
        covered = len(request.pages) * self.allocator.page_size
        locations = self.allocator.cover(request, tokens)
        if locations:
            row = torch.tensor(locations, dtype=torch.int32, device=self.arena.device)
            end = min(covered + len(locations), self.config.context_length)
            self.pool.write((request.req_pool_idx or 0, slice(covered, end)), row[: end - covered])
        request.reserved = tokens

    def release(self, request: Request) -> None:
        """Free the slot and pages of a finished request."""
        assert request.req_pool_idx is not None
        self.slots.release([request.req_pool_idx])
        if self.mamba_per_request:
            with self._on_behalf_of([request]):
                cast(HybridRequestPool, self.pool).free_mamba_cache(request)
        self.pool.free(request)
        self.allocator.release(request)


def build_rank(
    number: int,
    config: EngineConfig,
    model: ServedModel,
    pools: SubjectPools,
    memory: MemoryMode,
    device: str,
) -> Rank:
    """Allocate everything a rank keeps for as long as it lives."""
    size = config.slots_per_rank
    pool = _make_pool(config, pools, device)
    space = IndexSpace(REQUEST_SLOT, min(pool.free_slots), max(pool.free_slots))
    pages_each = -(-config.context_length // config.page_size)
    allocator = PageAllocator((size + (config.pre_alloc_size or 0)) * pages_each, config.page_size)
    arena = Arena(device, _capacity(config, model.shape, allocator), Guard(memory, number))
    future = FutureMap(size, max(1, config.speculative_num_steps))
    rank = Rank(number, config, arena, pool, space, allocator, future)
    _allocate(rank, model, pools)
    return rank


def _make_pool(config: EngineConfig, pools: SubjectPools, device: str) -> RequestPool:
    size, length = config.slots_per_rank, config.context_length
    if config.max_mamba_cache_size is None:
        return pools.make_pool(size, length, device, config.pre_alloc_size)
    return pools.make_hybrid_pool(
        size,
        length,
        device,
        mamba_size=config.mamba_slots_per_rank,
        pre_alloc_size=config.pre_alloc_size,
        extra_buffer=config.mamba_extra_buffer,
        overlap=not config.disable_overlap_schedule,
    )


def _allocate_mamba(rank: Rank, model: ModelShape) -> None:
    """State buffers of the mamba pool, then the pool's mappings, as upstream builds them."""
    config, arena = rank.config, rank.arena
    pool = cast(HybridRequestPool, rank.pool)
    rows = pool.mamba_pool.rows
    space = IndexSpace(MAMBA_SLOT, min(pool.mamba_pool.free_slots), pool.mamba_pool.size)
    for layer in range(model.mamba_layers):
        conv, ssm = (
            arena.allocate(f"mamba_{name}[{layer}]", (rows, *shape), torch.float32, space)
            for name, shape in (("conv", model.conv_state), ("ssm", model.ssm_state))
        )
        rank.mamba_states.append((conv, ssm))
    names = MAMBA_MAPPINGS if config.mamba_extra_buffer else MAMBA_MAPPINGS[:1]
    for name in names:
        made = getattr(pool, name)
        buffer = arena.allocate(name, tuple(made.shape), made.dtype, rank.slots)
        rank.buffers[name] = buffer
        if config.mapping_access == MappingAccess.CHECKED:
            setattr(pool, name, buffer.tensor)
        else:
            memory = UncheckedRows(buffer)
            setattr(pool, name, memory)
            rank.mappings.append(memory)
    overlap = not config.disable_overlap_schedule
    rank.mamba_per_request = MambaSizing(
        config.mamba_slots_per_rank, config.mamba_extra_buffer, overlap
    ).slots_per_request


def _allocate(rank: Rank, served: ServedModel, pools: SubjectPools) -> None:
    config, arena, pool = rank.config, rank.arena, rank.pool
    model = served.shape
    rotary_shape = (config.context_length, model.head_dim // 2, 2)
    rotary = arena.allocate("rotary_cos_sin", rotary_shape, torch.float32)
    rotary.tensor.copy_(served.rotary_table(config.context_length))
    rank.buffers["rotary_cos_sin"] = rotary
    shape = tuple(pool.req_to_token.shape)
    table = arena.allocate("req_to_token", shape, pool.req_to_token.dtype, rank.slots)
    pool.req_to_token = table.tensor
    rank.buffers["req_to_token"] = table
    if config.max_mamba_cache_size is not None:
        _allocate_mamba(rank, served.shape)
    layers, heads = model.attention_layers, model.kv_heads

    def target_kv() -> None:
        rank.target_kv = kv_buffers(
            arena, "target_kv", layers, heads, model.head_dim, rank.allocator
        )

    def draft_kv() -> None:
        rank.draft_kv = kv_buffers(
            arena, "draft_kv", config.speculative_num_steps, heads, model.head_dim, rank.allocator
        )

    def draft_graph() -> None:
        steps = max(1, config.speculative_num_steps)
        rank.draft_inputs = GraphInputs.allocate(
            arena, "draft_graph", _graph_rows(config), config.tokens_per_step + steps - 1,
            config.padded_rows,
        )  # fmt: skip

    def verify_graph() -> None:
        rank.verify_inputs = GraphInputs.allocate(
            arena, "verify_graph", _graph_rows(config), config.tokens_per_step, config.padded_rows
        )

    groups: dict[str, Callable[[], None]] = {
        TOKEN_TABLE: lambda: _token_table(rank, pools),
        "target_kv": target_kv,
        "verify_graph": verify_graph,
        "draft_kv": draft_kv,
        HIDDEN_STATES: lambda: _hidden_states(rank, model, pools),
        "draft_graph": draft_graph,
        **rank.future.builders(arena),
    }
    if not model.token_table:
        del groups[TOKEN_TABLE]
    if not config.speculative:
        del groups[HIDDEN_STATES]
    shorts = [name for name in (TOKEN_TABLE, HIDDEN_STATES) if name in groups]
    _in_order(rank, groups, shorts[0] if shorts else "")


def _in_order(rank: Rank, groups: dict[str, Callable[[], None]], short: str) -> None:
    """Build the groups in order, with the scenario's choice moved behind buffer `short`."""
    moved = _MOVED.get(rank.config.behind_hidden_states) if short else None
    for name, build in groups.items():
        if name == short:
            _with_neighbour(rank, build, short, groups[moved] if moved else None)
        elif name != moved:
            build()


def _with_neighbour(
    rank: Rank, build: Callable[[], None], short: str, neighbour: Callable[[], None] | None
) -> None:
    behind = rank.config.behind_hidden_states
    own_region = behind in (Behind.SLACK, Behind.NOTHING, Behind.KV_CACHE)
    if own_region:
        rank.arena.open_region(REGION)
    build()
    if behind == Behind.SLACK:
        rank.arena.skip(rank.buffers[short].row_bytes)
    if neighbour is not None:
        neighbour()
    if own_region:
        rank.arena.close_region()


def _token_table(rank: Rank, pools: SubjectPools) -> None:
    rows = pools.consumer_rows(TOKEN_TABLE, rank.pool)
    shape = (rows, rank.config.context_length)
    rank.buffers[TOKEN_TABLE] = rank.arena.allocate(TOKEN_TABLE, shape, torch.int32, rank.slots)


def _hidden_states(rank: Rank, model: ModelShape, pools: SubjectPools) -> None:
    rows = pools.consumer_rows(HIDDEN_STATES, rank.pool)
    shape = (rows, rank.config.speculative_num_steps - 1, model.hidden_size)
    rank.buffers[HIDDEN_STATES] = rank.arena.allocate(
        HIDDEN_STATES, shape, torch.float32, rank.slots
    )


def _graph_rows(config: EngineConfig) -> int:
    return min(config.cuda_graph_max_bs, config.slots_per_rank)


def _capacity(config: EngineConfig, model: ModelShape, allocator: PageAllocator) -> int:
    """Bytes to reserve: the KV caches twice over (segments leave gaps), and room for the rest."""
    layers = model.attention_layers + config.speculative_num_steps
    location = 2 * model.kv_heads * model.head_dim * 4
    kv = (allocator.pages + 1) * allocator.page_size * location * layers
    slots = config.slots_per_rank * (config.context_length * 4 + model.hidden_size * 8)
    # A PD decode pool may raise the mamba size to what its request slots need, at most 3 each.
    most = max(
        config.mamba_slots_per_rank, 3 * (config.slots_per_rank + (config.pre_alloc_size or 0))
    )
    mamba = (most + 1) * model.bytes_per_mamba_slot
    return 2 * kv + 4 * slots + 2 * mamba + REGION + 128 * MIB
