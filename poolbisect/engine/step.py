"""One step of all ranks: a prefill or a decode, from resolving futures to storing them.

When any rank has something to prefill, the others idle for that step: speculative prefill and
decode batches are not mixed in one DP group (as upstream).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from poolbisect.engine.config import EngineConfig
from poolbisect.engine.eagle import ExtendRows, draft_extend, verify
from poolbisect.engine.forward import Forward
from poolbisect.engine.future import Outcome
from poolbisect.engine.graph_inputs import RowInputs
from poolbisect.engine.rank import Rank
from poolbisect.engine.request import Request
from poolbisect.engine.sampler import choose
from poolbisect.engine.shape import ServedModel


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one rank's step produced: for each request its new tokens, on the device."""

    rank: Rank
    requests: list[Request]
    tokens: Tensor
    counts: Tensor
    decoded: bool


class Stepper:
    """Runs steps over the ranks of one engine."""

    def __init__(self, config: EngineConfig, forward: ServedModel, ranks: Sequence[Rank]) -> None:
        self.config = config
        self.forward = forward
        self.ranks = ranks
        self.count = 0

    def prefill(self, admitted: Sequence[list[Request]]) -> list[StepResult]:
        """Run the prompts of newly admitted requests, one list per rank."""
        self._begin("prefill")
        active = [(rank, reqs) for rank, reqs in zip(self.ranks, admitted, strict=True) if reqs]
        longest = max(len(request.prompt) for _, reqs in active for request in reqs)
        batches = [(rank, self._prompt_inputs(rank, reqs, longest)) for rank, reqs in active]
        hidden = self.forward.target(batches)
        results, extends = [], []
        for (rank, requests), (_, inputs), states in zip(active, batches, hidden, strict=True):
            lengths = self._tensor([len(request.prompt) for request in requests])
            rows = torch.arange(len(requests), device=lengths.device)
            logits = self.forward.target_logits(states[rows, lengths - 1])
            token = self._choose(logits, requests, lengths)
            results.append(
                StepResult(rank, requests, token[:, None], torch.ones_like(token), decoded=False)
            )
            extends.append(self._extend_prompt(rank, requests, inputs, states, lengths, token))
        drafts = self._draft(extends)
        for result, extend, (best, index) in zip(results, extends, drafts, strict=True):
            outcome = Outcome(result.tokens[:, 0], extend.last + 1, best, index)
            self._store_prefilled(result.rank, result.requests, outcome)
            for request in result.requests:
                request.kv_committed_len = len(request.prompt)
        return results

    def decode(self) -> list[StepResult]:
        """One verify and draft extend of every running request."""
        self._begin("decode")
        width = self.config.tokens_per_step
        for rank in self.ranks:
            for request in rank.running:
                rank.reserve(request, min(request.reserved + width, self.config.context_length))
        most = max(len(rank.running) for rank in self.ranks)
        rows = self.ranks[0].verify_inputs.bucket(most)
        graph = rows <= self.ranks[0].verify_inputs.max_bs
        taking_part = [rank for rank in self.ranks if graph or rank.running]
        prepared = [self._verify_inputs(rank, rows, graph) for rank in taking_part]
        hidden = self.forward.target([(rank, inputs) for rank, inputs, _ in prepared])
        results, extends, lengths_of = [], [], []
        for (rank, inputs, lengths), states in zip(prepared, hidden, strict=True):
            requests = list(rank.running)
            real = len(requests)
            logits = self.forward.target_logits(states[:real])
            positions = inputs.positions[:real] + 1
            predicted = self._choose(logits, requests, positions)
            outcome = verify(inputs.tokens[:real], predicted)
            results.append(StepResult(rank, requests, predicted, outcome.accept_lens, decoded=True))
            lengths_of.append(lengths)
            extends.append(
                self._extend_verified(
                    rank, requests, states, lengths, predicted, outcome.accept_lens, graph
                )
            )
        drafts = self._draft(extends)
        for result, lengths, (best, index) in zip(results, lengths_of, drafts, strict=True):
            real = len(result.requests)
            at = torch.arange(real, device=lengths.device)
            verified = result.tokens[at, result.counts - 1]
            outcome_next = Outcome(verified, lengths + result.counts, best[:real], index[:real])
            self._store_decoded(result.rank, result.requests, outcome_next)
        return results

    def _begin(self, phase: str) -> None:
        self.count += 1
        for rank in self.ranks:
            rank.guard.step = self.count
            rank.guard.phase = phase

    def _store_prefilled(self, rank: Rank, requests: list[Request], outcome: Outcome) -> None:
        """Let the requests run; on a PD decode instance they wait until they may."""
        if self.config.pre_alloc_size is None:
            rank.join(requests, outcome)
        else:
            rank.transferred += [(request, outcome.row(at)) for at, request in enumerate(requests)]

    def _store_decoded(self, rank: Rank, requests: list[Request], outcome: Outcome) -> None:
        start, end = rank.future.reserve(len(requests))
        rank.future.store(start, end, outcome, requests)
        rank.future_indices = list(range(start, end))

    def _prompt_inputs(self, rank: Rank, requests: list[Request], longest: int) -> RowInputs:
        tokens = self._tensor(
            [request.prompt + [0] * (longest - len(request.prompt)) for request in requests]
        )
        positions = torch.arange(longest, device=tokens.device).expand(tokens.shape)
        slots = self._tensor([request.req_pool_idx for request in requests])
        out_locs = rank.req_to_token.read_cells(slots[:, None], positions, _names(requests)).long()
        lengths = self._tensor([len(request.prompt) for request in requests])
        return RowInputs(tokens, positions, out_locs, slots, _names(requests), lengths)

    def _extend_prompt(
        self,
        rank: Rank,
        requests: list[Request],
        inputs: RowInputs,
        hidden: Tensor,
        lengths: Tensor,
        token: Tensor,
    ) -> ExtendRows:
        rows, width = inputs.tokens.shape
        steps = max(1, self.config.speculative_num_steps)
        following = torch.zeros((rows, width + steps - 1), dtype=torch.int64, device=token.device)
        following[:, : width - 1] = inputs.tokens[:, 1:]
        following[torch.arange(rows, device=token.device), lengths - 1] = token
        return ExtendRows(
            rank, following, hidden, torch.zeros_like(lengths), lengths - 1, inputs.slots,
            _names(requests), None, reverts=False,
        )  # fmt: skip

    def _verify_inputs(self, rank: Rank, rows: int, graph: bool) -> tuple[Rank, RowInputs, Tensor]:
        """Resolve the futures of the running requests into the verify pass's inputs."""
        outcome = rank.future.resolve(self._tensor(rank.future_indices))
        requests = rank.running
        slots = self._tensor([request.req_pool_idx for request in requests])
        lengths = outcome.new_seq_lens
        tokens = outcome.verified_id.long()[:, None]
        if self.config.speculative:
            tokens = torch.cat((tokens, outcome.topk_index), dim=1)
        offsets = torch.arange(tokens.shape[1], device=tokens.device)
        positions = lengths[:, None] + offsets
        out_locs = rank.req_to_token.read_cells(slots[:, None], positions, _names(requests)).long()
        if not graph:
            return rank, RowInputs(tokens, positions, out_locs, slots, _names(requests)), lengths
        rank.verify_inputs.fill_slots(slots)
        inputs = rank.verify_inputs.fill(rows, tokens, positions, out_locs, _names(requests))
        return rank, inputs, lengths

    def _extend_verified(
        self,
        rank: Rank,
        requests: list[Request],
        hidden: Tensor,
        lengths: Tensor,
        predicted: Tensor,
        accept_lens: Tensor,
        graph: bool,
    ) -> ExtendRows:
        rows, width, _ = hidden.shape
        real = len(requests)
        following = torch.zeros(
            (rows, width + max(1, self.config.speculative_num_steps) - 1),
            dtype=torch.int64,
            device=hidden.device,
        )
        following[:real, :width] = predicted
        first = torch.zeros(rows, dtype=torch.int64, device=hidden.device)
        first[:real] = lengths
        last = torch.zeros_like(first)
        last[:real] = accept_lens - 1
        slots = self._tensor([request.req_pool_idx for request in requests])
        if graph:
            slots = rank.draft_inputs.fill_slots(slots)[:rows]
        return ExtendRows(
            rank, following, hidden, first, last, slots, _names(requests),
            rank.draft_inputs if graph else None, reverts=True,
            padded_writes=self.config.padded_writes,
        )  # fmt: skip

    def _draft(self, extends: list[ExtendRows]) -> list[tuple[Tensor, Tensor]]:
        if self.config.speculative:
            return draft_extend(
                cast(Forward, self.forward), self.config.speculative_num_steps, extends
            )
        return [
            (
                torch.zeros((part.last.shape[0], 1), device=part.last.device),
                torch.zeros((part.last.shape[0], 1), dtype=torch.int64, device=part.last.device),
            )
            for part in extends
        ]

    def _choose(self, logits: Tensor, requests: list[Request], positions: Tensor) -> Tensor:
        seeds = self._tensor([request.noise_seed for request in requests])
        if positions.dim() == 2:
            seeds = seeds[:, None]
        return choose(logits, self.config.temperature, seeds, positions)

    def _tensor(self, values: list[int | None] | list[int] | list[list[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.ranks[0].arena.device)


def _names(requests: Sequence[Request]) -> tuple[str, ...]:
    return tuple(request.id for request in requests)
