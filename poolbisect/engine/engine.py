"""The engine: continuous batching over DP ranks, with or without overlap scheduling."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import nn

from poolbisect.engine.config import EngineConfig
from poolbisect.engine.rank import Rank, build_rank
from poolbisect.engine.request import Request
from poolbisect.engine.serving import serve
from poolbisect.engine.step import Stepper, StepResult
from poolbisect.errors import UsageError
from poolbisect.memory.guard import MemoryMode
from poolbisect.pools.interface import SubjectPools


@dataclass(frozen=True, slots=True)
class Progress:
    """Running totals, handed to the caller after every step."""

    finished: list[Request]
    tokens: int
    steps: int


class Engine:
    """Serves requests on `pools`, the code under test, and knows nothing else about it."""

    def __init__(
        self,
        config: EngineConfig,
        model: nn.Module,
        pools: SubjectPools,
        memory: MemoryMode = MemoryMode.GUARD,
        device: str = "cpu",
    ) -> None:
        served = serve(model, device)
        if config.speculative_num_steps > served.shape.mtp_layers:
            raise UsageError(
                f"--speculative-num-steps {config.speculative_num_steps} needs as many MTP "
                f"layers; the model has {served.shape.mtp_layers}"
            )
        if bool(served.shape.mamba_layers) != (config.max_mamba_cache_size is not None):
            raise UsageError(
                "a model with mamba layers is served with --max-mamba-cache-size, "
                "and only such a model"
            )
        self.config = config
        self.ranks: list[Rank] = [
            build_rank(number, config, served, pools, memory, device)
            for number in range(config.dp_size)
        ]
        self.stepper = Stepper(config, served, self.ranks)
        self.tokens = 0

    def run(
        self, requests: Iterable[Request], watch: Callable[[Progress], None] | None = None
    ) -> None:
        """Answer every request, in order of arrival, dealt to the ranks in turn.

        Raises IllegalAccessError when an access leaves the device's memory, and OutOfRangeError
        at the first breach in strict mode; requests then keep what they had.
        """
        for number, request in enumerate(requests):
            self._check(request)
            self.ranks[number % len(self.ranks)].waiting.append(request)
        with torch.inference_mode():
            self._loop(watch)

    def _loop(self, watch: Callable[[Progress], None] | None) -> None:
        in_flight: list[StepResult] = []
        while True:
            launched = self._launch()
            if self.config.disable_overlap_schedule:
                in_flight, launched = launched, []
            finished = [request for result in in_flight for request in self._settle(result)]
            if in_flight and watch is not None:
                watch(Progress(finished, self.tokens, self.stepper.count))
            if not launched and not in_flight:
                return
            in_flight = launched

    def _launch(self) -> list[StepResult]:
        for rank in self.ranks:
            _drop_finished(rank)
            rank.join_transferred()
        admitted = [rank.admit() for rank in self.ranks]
        if any(admitted):
            return self.stepper.prefill(admitted)
        if any(rank.running for rank in self.ranks):
            return self.stepper.decode()
        return []

    def _settle(self, result: StepResult) -> list[Request]:
        """Read a step's result on the host: append tokens, free what has finished."""
        finished: list[Request] = []
        rows = zip(result.requests, result.tokens.tolist(), result.counts.tolist(), strict=True)
        for request, tokens, count in rows:
            if request.finished is not None:
                continue
            before = len(request.output)
            request.take(tokens[:count])
            self.tokens += len(request.output) - before
            if result.decoded:
                request.verify_steps += 1
                request.accepted += count
                request.kv_committed_len += count
                request.reserved -= self.config.tokens_per_step - count
            if request.finished is not None:
                result.rank.release(request)
                finished.append(request)
        return finished

    def _check(self, request: Request) -> None:
        shortest = max(2, self.config.speculative_num_steps - 1)
        if len(request.prompt) < shortest:
            raise UsageError(
                f"request {request.id}: a prompt needs at least {shortest} tokens, "
                f"it has {len(request.prompt)}"
            )
        needed = len(request.prompt) + request.max_new_tokens + 3 * self.config.tokens_per_step
        if needed > self.config.context_length:
            raise UsageError(
                f"request {request.id}: prompt, answer and drafts take up to {needed} tokens, "
                f"--context-length is {self.config.context_length}"
            )


def _drop_finished(rank: Rank) -> None:
    kept = [
        (request, index)
        for request, index in zip(rank.running, rank.future_indices, strict=True)
        if request.finished is None
    ]
    gone = set(rank.future_indices) - {index for _, index in kept}
    rank.future.space.release(gone)
    rank.running = [request for request, _ in kept]
    rank.future_indices = [index for _, index in kept]
