"""What the training commands share: batches of the arithmetic task, the optimiser loop, the file.

The optimiser loop prints the loss to stderr. On the CPU, train with
MALLOC_MMAP_THRESHOLD_=1073741824 and MALLOC_TRIM_THRESHOLD_=2147483647 set: otherwise glibc
returns and re-faults every large temporary.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from poolbisect.tasks import arithmetic

IGNORED = -100
MOST_OPERATIONS = 6
SORTED_TOGETHER = 16


def initialise(model: nn.Module) -> None:
    """Draw the matrices of a model; vectors keep what their modules set."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02 if "embed" in name else 0.05)


def batches(rng: random.Random, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless (tokens, targets), each (size, length); prompt and padding are not targets.

    No problem is held out. Several batches are drawn together and sorted by length, so that
    little of a batch is padding.
    """
    while True:
        rows: list[tuple[list[int], int]] = []
        while len(rows) < size * SORTED_TOGETHER:
            operations = rng.randrange(1, MOST_OPERATIONS + 1)
            level = rng.choice((arithmetic.EASY, arithmetic.HARD))
            problem = arithmetic.make_problem(rng, operations, level)
            if not arithmetic.is_held_out(problem.prompt):
                prompt = arithmetic.prompt_tokens(problem)
                answer = [*arithmetic.encode(problem.chain), arithmetic.EOS]
                rows.append((prompt + answer, len(prompt)))
        rows.sort(key=lambda row: len(row[0]))
        drawn = [rows[at : at + size] for at in range(0, len(rows), size)]
        rng.shuffle(drawn)
        yield from map(_padded, drawn)


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy of logits (batch, length, vocab) against targets (batch, length)."""
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED
    )


def optimise(
    name: str,
    parameters: Sequence[nn.Parameter],
    data: Iterator[tuple[Tensor, Tensor]],
    steps: int,
    peak: float,
    loss_of: Callable[[Tensor, Tensor], Tensor],
) -> None:
    """Minimise loss_of(tokens, targets) with AdamW; the rate rises to `peak`, then falls."""
    optimiser = torch.optim.AdamW(parameters, lr=peak, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=peak, total_steps=steps, pct_start=0.06, div_factor=20
    )
    started = time.perf_counter()
    for step in range(1, steps + 1):
        loss = loss_of(*next(data))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        schedule.step()
        if step % 50 == 0 or step in (1, steps):
            spent = time.perf_counter() - started
            print(f"{name} {step}/{steps} loss {loss.item():.4f} {spent:.0f} s", file=sys.stderr)


def save(model: nn.Module, config: Mapping[str, Any], path: Path) -> None:
    """Write weights and configuration (in the file's metadata) as one safetensors file."""
    tensors = {name: value.detach().contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, path, metadata={"format": "pt", "config": json.dumps(dict(config))})


@torch.inference_mode()
def greedy_answers(
    logits_of: Callable[[Tensor], Tensor], problems: Sequence[arithmetic.Problem], longest: int
) -> list[str]:
    """What a model writes to each problem, greedily, in at most `longest` tokens a problem.

    `logits_of` maps tokens (batch, length) to logits (batch, length, vocab). Every token is
    computed from the whole text again: slow, but it holds for any model and needs no cache.
    """
    rows = [arithmetic.prompt_tokens(problem) for problem in problems]
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.full((len(rows), int(lengths.max()) + longest), arithmetic.PAD)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = torch.tensor(row)
    starts, open_rows = lengths.clone(), torch.arange(len(rows))
    for _ in range(longest):
        ends = lengths[open_rows]
        logits = logits_of(tokens[open_rows, : int(ends.max())])
        chosen = logits[torch.arange(len(open_rows)), ends - 1].argmax(-1)
        tokens[open_rows, ends] = chosen
        lengths[open_rows] += 1
        open_rows = open_rows[chosen != arithmetic.EOS]
        if not len(open_rows):
            break
    return [
        arithmetic.decode(tokens[index, start:end].tolist())
        for index, (start, end) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True))
    ]


def _padded(rows: list[tuple[list[int], int]]) -> tuple[Tensor, Tensor]:
    length = max(len(row) for row, _ in rows)
    tokens = torch.full((len(rows), length), arithmetic.PAD)
    targets = torch.full((len(rows), length), IGNORED)
    for index, (row, start) in enumerate(rows):
        tokens[index, : len(row)] = torch.tensor(row)
        targets[index, start : len(row)] = tokens[index, start : len(row)]
    return tokens, targets
