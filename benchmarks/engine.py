"""Throughput of the miniature engine, side by side with transformers, and how much is overhead.

    python benchmarks/engine.py [--questions 384] [--batch 8 --batch 32 --batch 128]

One process, the same base weights, the same prompts, greedy, as many requests at once on both
sides, for several batch sizes:

* transformers' `generate`, batch after batch, left-padded, its defaults otherwise;
* the engine without speculation;
* the engine with multi-layer EAGLE on two ranks, as the canary runs it, in silent mode;
* the same in guard mode: what watching costs.

The floor is a bare batched forward of the same modules over as many tokens as the engine's passes
computed (target and MTP layers, rejected drafts included, padded rows left out): no paging, no
scheduling, no sampling. What the engine takes beyond it is its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from rich.console import Console
from rich.table import Table

from poolbisect.engine.config import EngineConfig
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Request
from poolbisect.memory.guard import MemoryMode
from poolbisect.memory.host_heap import keep_freed_memory
from poolbisect.models.export import transformers_model
from poolbisect.models.llama import MimoMiniature
from poolbisect.models.loading import load_mimo
from poolbisect.pools.shipped import ShippedPools
from poolbisect.probes.miniature import engine_config
from poolbisect.scenario import load_scenario
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=384)
    parser.add_argument("--batch", type=int, action="append", help="default: 8, 32 and 128")
    options = parser.parse_args()
    keep_freed_memory()  # for all that follows, transformers included
    prompts = [
        arithmetic.prompt_tokens(problem) for problem in load_problems(NAME, options.questions)
    ]
    model = load_mimo()
    for batch in options.batch or (8, 32, 128):
        _side_by_side(model, prompts, batch)


def _side_by_side(model: MimoMiniature, prompts: list[list[int]], batch: int) -> None:
    scenario = load_scenario("mimo-canary")
    limit = scenario.workload.max_new_tokens
    config = engine_config(scenario.engine, scenario.memory, scenario.workload)
    config = replace(config, max_running_requests=batch)
    plain = replace(config, speculative_num_steps=0, speculative_num_draft_tokens=1)
    rows = []
    reference, spent = _timed(lambda: _transformers(model, prompts, limit, batch))
    rows.append(("transformers generate", sum(map(len, reference)), spent))
    computed = 0
    for label, setup, mode in (
        ("engine, no speculation", plain, MemoryMode.GUARD),
        ("engine, EAGLE, silent", config, MemoryMode.SILENT),
        ("engine, EAGLE, guard", config, MemoryMode.GUARD),
    ):
        requests, spent = _timed(lambda s=setup, m=mode: _engine(model, s, m, prompts, limit))
        rows.append((label, sum(len(request.output) for request in requests), spent))
        equal = sum(r.output == e for r, e in zip(requests, reference, strict=True))
        if equal < len(requests):
            print(f"{label}: only {equal} of {len(requests)} answers equal transformers'")
        computed = sum(len(r.prompt) + r.verify_steps * setup.tokens_per_step for r in requests)
    _, floor = _timed(lambda: _bare_forward(model, computed, batch))
    _print(rows, floor, computed, batch)


def _timed(work: Callable[[], object]):  # type: ignore[no-untyped-def]
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _transformers(
    model: MimoMiniature, prompts: list[list[int]], limit: int, size: int
) -> list[list[int]]:
    reference = transformers_model(model)
    answers: list[list[int]] = []
    for start in range(0, len(prompts), size):
        batch = prompts[start : start + size]
        width = max(map(len, batch))
        tokens = torch.full((len(batch), width), arithmetic.PAD)
        mask = torch.zeros_like(tokens)
        for row, prompt in enumerate(batch):
            tokens[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        with torch.inference_mode():
            output = reference.generate(
                tokens, attention_mask=mask, max_new_tokens=limit, do_sample=False,
                eos_token_id=arithmetic.EOS, pad_token_id=arithmetic.PAD,
            )  # fmt: skip
        for row in output[:, width:].tolist():
            end = row.index(arithmetic.EOS) if arithmetic.EOS in row else len(row)
            answers.append(row[:end])
    return answers


def _engine(
    model: MimoMiniature, config: EngineConfig, mode: MemoryMode, prompts: list[list[int]],
    limit: int,
) -> list[Request]:  # fmt: skip
    requests = [
        Request(str(number), prompt, limit, arithmetic.EOS) for number, prompt in enumerate(prompts)
    ]
    Engine(config, model, ShippedPools("corrected"), mode).run(requests)
    return requests


@torch.inference_mode()
def _bare_forward(model: MimoMiniature, tokens: int, size: int) -> None:
    width = 64
    for start in range(0, tokens, size * width):
        rows = min(size, -(-(tokens - start) // width))
        batch = torch.ones((rows, width), dtype=torch.int64)
        hidden = model.hidden_states(batch)
        model.logits(hidden)
        for depth in range(model.config.num_mtp_layers):
            model.mtp_logits(batch, hidden, depth)


def _print(rows: list[tuple[str, int, float]], floor: float, computed: int, batch: int) -> None:
    table = Table(f"{batch} at once", "tokens", "seconds", "tokens/s", "against transformers")
    base = rows[0][1] / rows[0][2]
    for label, tokens, spent in rows:
        speed = tokens / spent
        table.add_row(label, f"{tokens:,}", f"{spent:.2f}", f"{speed:,.0f}", f"{speed / base:.2f}x")
    Console().print(table)
    spent = rows[-1][2]
    print(
        f"Floor: a bare batched forward of the {computed:,} tokens computed takes {floor:.2f} s; "
        f"{1 - floor / spent:.0%} of the engine's {spent:.2f} s is not model arithmetic."
    )
    print(f"Guard against silent: {rows[-1][2] / rows[-2][2]:.2f}x the time.")


if __name__ == "__main__":
    main()
