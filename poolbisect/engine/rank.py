"""One data-parallel rank: its device memory, its pools, and the requests it runs.

The order of allocation follows upstream's: request pool and target KV cache, draft KV caches, the
hidden-states pool of multi-layer EAGLE, graph inputs, and last, once the first batch has run, the
future buffers. A scenario may name something else to lie behind the hidden-states pool.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from poolbisect.engine.config import Behind, EngineConfig
from poolbisect.engine.future import NEW_SEQ_LENS, TOPK_INDEX, VERIFIED_ID, FutureMap
from poolbisect.engine.graph_inputs import GraphInputs
from poolbisect.engine.kv_cache import PageAllocator, kv_buffers
from poolbisect.engine.request import Request
from poolbisect.memory.arena import Arena, Buffer
from poolbisect.memory.guard import Guard, MemoryMode
from poolbisect.memory.placement import MIB
from poolbisect.memory.spaces import IndexSpace
from poolbisect.models.llama import LlamaConfig, rotary_tables
from poolbisect.pools.interface import HIDDEN_STATES, RequestPool, SubjectPools

REQUEST_SLOT = "request slot"
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
    waiting: deque[Request] = field(default_factory=deque)
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
    def rotary(self) -> Buffer:
        return self.buffers["rotary_cos_sin"]

    def admit(self) -> list[Request]:
        """Take as many waiting requests as there are free slots, in order of arrival."""
        count = min(len(self.waiting), self.pool.available_size(), self._room())
        if count == 0:
            return []
        requests = [self.waiting.popleft() for _ in range(count)]
        slots = self.pool.alloc(requests)
        assert slots is not None, "available_size promised that many slots"
        self.allocations += count
        self.slots.take(slots, (request.id for request in requests))
        for request, slot in zip(requests, slots, strict=True):
            request.slot_held = slot
            self.reserve(request, len(request.prompt))
        return requests

    def _room(self) -> int:
        return self.config.slots_per_rank - len(self.slots.owners)

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
        self.pool.free(request)
        self.allocator.release(request)


def build_rank(
    number: int,
    config: EngineConfig,
    model: LlamaConfig,
    pools: SubjectPools,
    memory: MemoryMode,
    device: str,
) -> Rank:
    """Allocate everything a rank keeps for as long as it lives."""
    size = config.slots_per_rank
    pool = pools.make_pool(size, config.context_length, device)
    space = IndexSpace(REQUEST_SLOT, min(pool.free_slots), max(pool.free_slots))
    pages_each = -(-config.context_length // config.page_size)
    allocator = PageAllocator(size * pages_each, config.page_size)
    arena = Arena(device, _capacity(config, model, allocator), Guard(memory, number))
    future = FutureMap(size, max(1, config.speculative_num_steps))
    rank = Rank(number, config, arena, pool, space, allocator, future)
    _allocate(rank, model, pools)
    return rank


def _allocate(rank: Rank, model: LlamaConfig, pools: SubjectPools) -> None:
    config, arena, pool = rank.config, rank.arena, rank.pool
    shape = tuple(pool.req_to_token.shape)
    table = arena.allocate("req_to_token", shape, pool.req_to_token.dtype, rank.slots)
    pool.req_to_token = table.tensor
    rank.buffers["req_to_token"] = table
    half = model.head_dim // 2
    tables = rotary_tables(model, config.context_length)
    rotary = arena.allocate("rotary_cos_sin", (config.context_length, half, 2), torch.float32)
    rotary.tensor.copy_(torch.stack([table[:, :half] for table in tables], dim=-1))
    rank.buffers["rotary_cos_sin"] = rotary
    layers, heads = model.num_hidden_layers, model.num_key_value_heads

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
        "target_kv": target_kv,
        "verify_graph": verify_graph,
        "draft_kv": draft_kv,
        HIDDEN_STATES: lambda: _hidden_states(rank, model, pools),
        "draft_graph": draft_graph,
        **rank.future.builders(arena),
    }
    _in_order(rank, groups)


def _in_order(rank: Rank, groups: dict[str, Callable[[], None]]) -> None:
    """Build the groups in order, with the scenario's choice moved behind the hidden states."""
    behind = rank.config.behind_hidden_states
    moved = _MOVED.get(behind)
    for name, build in groups.items():
        if name == moved and rank.config.speculative:
            continue
        if name != HIDDEN_STATES:
            build()
        elif rank.config.speculative:
            _with_neighbour(rank, build, groups[moved] if moved else None)


def _with_neighbour(
    rank: Rank, build: Callable[[], None], build_neighbour: Callable[[], None] | None
) -> None:
    behind = rank.config.behind_hidden_states
    own_region = behind in (Behind.SLACK, Behind.NOTHING, Behind.KV_CACHE)
    if own_region:
        rank.arena.open_region(REGION)
    build()
    if behind == Behind.SLACK:
        rank.arena.skip(rank.hidden_states.row_bytes)
    if build_neighbour is not None:
        build_neighbour()
    if own_region:
        rank.arena.close_region()


def _hidden_states(rank: Rank, model: LlamaConfig, pools: SubjectPools) -> None:
    rows = pools.consumer_rows(HIDDEN_STATES, rank.pool)
    shape = (rows, rank.config.speculative_num_steps - 1, model.hidden_size)
    rank.buffers[HIDDEN_STATES] = rank.arena.allocate(
        HIDDEN_STATES, shape, torch.float32, rank.slots
    )


def _graph_rows(config: EngineConfig) -> int:
    return min(config.cuda_graph_max_bs, config.slots_per_rank)


def _capacity(config: EngineConfig, model: LlamaConfig, allocator: PageAllocator) -> int:
    """Bytes to reserve: the KV caches twice over (segments leave gaps), and room for the rest."""
    layers = model.num_hidden_layers + config.speculative_num_steps
    location = 2 * model.num_key_value_heads * model.head_dim * 4
    kv = (allocator.pages + 1) * allocator.page_size * location * layers
    slots = config.slots_per_rank * (config.context_length * 4 + model.hidden_size * 8)
    return 2 * kv + 4 * slots + REGION + 64 * MIB
