"""The miniature probe: a small real model, served by the miniature engine on a subject's pools."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from poolbisect.engine.config import EngineConfig
from poolbisect.engine.engine import Engine, Progress
from poolbisect.engine.rank import Rank
from poolbisect.engine.request import Request
from poolbisect.errors import UsageError
from poolbisect.measurement import (
    Answer,
    Ended,
    Measurement,
    MemoryEvents,
    Outcome,
    PlacedBuffer,
    ShortAccess,
    SlotUse,
)
from poolbisect.memory.arena import IllegalAccessError
from poolbisect.memory.guard import MemoryMode, OutOfRangeError
from poolbisect.memory.host_heap import keep_freed_memory
from poolbisect.models.loading import LoadedModel
from poolbisect.pools.interface import SubjectPools
from poolbisect.pools.mamba_pool import MambaShortageError
from poolbisect.pools.upstream.faults import SubjectFault
from poolbisect.scenario import EngineFlags, Memory, Scenario, Workload
from poolbisect.tasks import arithmetic
from poolbisect.tasks.arithmetic import Problem

_SHOWN_BEFORE, _SHOWN_BEHIND = 2, 4


@dataclass(frozen=True, slots=True)
class Tick:
    """How far a run is: questions done and right so far, tokens generated, seconds."""

    done: int
    right: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run may choose beside its scenario."""

    memory: MemoryMode = MemoryMode.GUARD
    device: str = "cpu"
    seed: int | None = None


def check_device(device: str) -> None:
    """UsageError unless PyTorch can compute on `device` here."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"--device {device}: PyTorch cannot use it here ({reason})") from error


def engine_config(flags: EngineFlags, memory: Memory, workload: Workload) -> EngineConfig:
    """The engine's configuration for a scenario. UsageError when it is not one it can serve."""
    if flags.speculative_algorithm not in (None, "EAGLE"):
        raise UsageError(
            f"--speculative-algorithm {flags.speculative_algorithm}: the engine knows EAGLE only"
        )
    if flags.speculative_algorithm and not flags.enable_multi_layer_eagle:
        raise UsageError("EAGLE is served with --enable-multi-layer-eagle only")
    if flags.dp_size > 1 and not flags.enable_dp_attention:
        raise UsageError(f"--dp-size {flags.dp_size} is served with --enable-dp-attention only")
    speculative = flags.speculative_algorithm is not None
    return EngineConfig(
        max_running_requests=flags.max_running_requests,
        dp_size=flags.dp_size,
        page_size=flags.page_size,
        context_length=flags.context_length,
        cuda_graph_max_bs=flags.cuda_graph_max_bs,
        speculative_num_steps=flags.speculative_num_steps if speculative else 0,
        speculative_eagle_topk=flags.speculative_eagle_topk,
        speculative_num_draft_tokens=flags.speculative_num_draft_tokens if speculative else 1,
        disable_overlap_schedule=flags.disable_overlap_schedule,
        max_mamba_cache_size=flags.max_mamba_cache_size,
        mamba_extra_buffer=flags.mamba_scheduler_strategy == "extra_buffer",
        pre_alloc_size=memory.pre_alloc_size if flags.disaggregation_mode == "decode" else None,
        mapping_access=memory.mapping_access,
        padded_writes=memory.padded_writes,
        padded_rows=memory.padded_rows,
        behind_hidden_states=memory.behind_hidden_states,
        concurrency=workload.concurrency,
        temperature=workload.temperature,
        seed=workload.seed,
    )


def measure(
    subject: str,
    pools: SubjectPools,
    scenario: Scenario,
    problems: Sequence[Problem],
    loaded: LoadedModel,
    settings: Settings,
    watch: Callable[[Tick], None] | None = None,
) -> Measurement:
    """Serve `problems` on `pools`. A crash of the subject or an interrupt is an ending, not an
    error: what was answered until then is in the measurement."""
    keep_freed_memory()
    config = engine_config(scenario.engine, scenario.memory, scenario.workload)
    seed = scenario.workload.seed if settings.seed is None else settings.seed
    requests = [_request(problem, scenario.workload, seed) for problem in problems]
    engine = Engine(config, loaded.model, pools, settings.memory, settings.device)
    started = time.perf_counter()
    ended, detail = _serve(engine, requests, problems, started, watch)
    seconds = time.perf_counter() - started
    ranks = len(engine.ranks)
    answers = tuple(
        _answer(problem, request, number % ranks, config.speculative)
        for number, (problem, request) in enumerate(zip(problems, requests, strict=True))
    )
    steps = sum(request.verify_steps for request in requests)
    accepted = sum(request.accepted for request in requests)
    return Measurement(
        subject=subject,
        ended=ended,
        detail=detail,
        asked=len(problems),
        answers=answers,
        accept_length=accepted / steps if steps and config.speculative else None,
        slots=_slot_use(engine.ranks, requests),
        memory=_memory_events(engine.ranks, settings.memory),
        seconds=seconds,
        tokens=engine.tokens,
        provenance=_provenance(loaded, settings, seed),
    )


def _serve(
    engine: Engine,
    requests: list[Request],
    problems: Sequence[Problem],
    started: float,
    watch: Callable[[Tick], None] | None,
) -> tuple[Ended, str]:
    expected = {str(problem.id): problem.answer for problem in problems}
    done = right = 0

    def on_progress(progress: Progress) -> None:
        nonlocal done, right
        done += len(progress.finished)
        right += sum(
            arithmetic.grade(arithmetic.decode(request.output), expected[request.id]) == "right"
            for request in progress.finished
        )
        if watch is not None:
            watch(Tick(done, right, progress.tokens, time.perf_counter() - started))

    try:
        engine.run(requests, on_progress)
    except IllegalAccessError as error:
        return Ended.CRASHED, f"illegal memory access: {error}"
    except (IndexError, MambaShortageError, SubjectFault) as error:
        return Ended.CRASHED, _crash(error)
    except OutOfRangeError as error:
        return Ended.STOPPED, str(error)
    except KeyboardInterrupt:
        return Ended.PARTIAL, f"interrupted after {done} of {len(requests)} questions"
    return Ended.MEASURED, ""


def _crash(error: BaseException) -> str:
    """The subject's own words, those of the cause where our adapter wraps it."""
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {str(cause).splitlines()[0]}"


def _request(problem: Problem, workload: Workload, seed: int) -> Request:
    return Request(
        id=str(problem.id),
        prompt=arithmetic.prompt_tokens(problem),
        max_new_tokens=workload.max_new_tokens,
        stop_token=arithmetic.EOS,
        noise_seed=seed * 1_000_003 + problem.id,
    )


def _answer(problem: Problem, request: Request, rank: int, speculative: bool) -> Answer:
    text = arithmetic.decode(request.output)
    if request.finished is None:
        outcome = Outcome.UNANSWERED
    else:
        outcome = Outcome(arithmetic.grade(text, problem.answer))
    return Answer(
        id=problem.id,
        prompt=problem.prompt,
        expected=problem.answer,
        text=text,
        outcome=outcome,
        rank=rank,
        slot=request.slot_held,
        finish=request.finished.value if request.finished else None,
        accept_length=(
            request.accepted / request.verify_steps
            if request.verify_steps and speculative
            else None
        ),
        tokens=tuple(request.output),
    )


def _slot_use(ranks: Sequence[Rank], requests: Sequence[Request]) -> SlotUse:
    last = max(rank.slots.last for rank in ranks)
    return SlotUse(
        last_slot=last,
        last_slot_used=all(rank.slots.last in rank.slots.used for rank in ranks),
        coverage=sum(rank.slots.coverage for rank in ranks) / len(ranks),
        requests_on_last_slot=sum(request.slot_held == last for request in requests),
        allocations=sum(rank.allocations for rank in ranks),
    )


def _memory_events(ranks: Sequence[Rank], mode: MemoryMode) -> MemoryEvents:
    if mode is MemoryMode.SILENT:
        return MemoryEvents(watched=False)
    merged: dict[tuple[str, int], ShortAccess] = {}
    for rank in ranks:
        for key, tally in rank.guard.tallies.items():
            known = merged.get(key)
            merged[key] = ShortAccess(
                buffer=tally.buffer,
                space=tally.space,
                rows=tally.rows,
                index=tally.index,
                hit=tuple(sorted({*tally.hit, *(known.hit if known else ())})),
                first_step=min(tally.first_step, known.first_step if known else tally.first_step),
                reads=tally.reads + (known.reads if known else 0),
                writes=tally.writes + (known.writes if known else 0),
            )
    guards = [rank.guard for rank in ranks]
    firsts = sorted((g.first for g in guards if g.first is not None), key=lambda a: a.step)
    offenders = {int(name) for guard in guards for name in guard.offenders}
    victims = {int(name) for guard in guards for name in guard.victims}
    return MemoryEvents(
        watched=True,
        reads=sum(guard.reads for guard in guards),
        writes=sum(guard.writes for guard in guards),
        buffers=tuple(merged[key] for key in sorted(merged)),
        first=str(firsts[0]) if firsts else None,
        offenders=tuple(sorted(offenders)),
        victims=tuple(sorted(victims)),
        padded_writes=sum(guard.padded_write_count for guard in guards),
        padded_targets=tuple(
            sorted(
                {
                    f"{write.space} {write.index} of {write.buffer}"
                    for guard in guards
                    for write in guard.padded_writes
                }
            )
        ),
        non_finite_padding=tuple(sorted({n for g in guards for n in g.non_finite_padding})),
        arena=_around(ranks, merged.values()),
    )


def _around(ranks: Sequence[Rank], accesses: Iterable[ShortAccess]) -> tuple[PlacedBuffer, ...]:
    """Buffers around those that were accessed out of range and those that were hit.

    Of one rank: the ranks build the same buffers in the same order.
    """
    names = {name for access in accesses for name in (access.buffer, *access.hit)}
    buffers = next((rank.arena.buffers for rank in ranks if rank.guard.tallies), [])
    places = [at for at, buffer in enumerate(buffers) if buffer.name in names]
    if not places:
        return ()
    around = buffers[max(0, min(places) - _SHOWN_BEFORE) : max(places) + 1 + _SHOWN_BEHIND]
    return tuple(PlacedBuffer(one.name, one.offset, one.size, one.rows) for one in around)


def _provenance(loaded: LoadedModel, settings: Settings, seed: int) -> dict[str, Any]:
    return {
        "model_sha256": loaded.sha256,
        "memory": settings.memory.value,
        "device": settings.device,
        "seed": seed,
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
