"""Train the MiMo miniature: first the base decoder, then its MTP layers on frozen hidden states.

    python -m poolbisect.models.train_mimo --out poolbisect/models/weights/mimo.safetensors

About 25 minutes on two cores. Problems of the shipped problem set never occur in the training
data: `arithmetic.is_held_out` divides all prompts into the two. On the CPU, run it with MALLOC_MMAP_THRESHOLD_=1073741824 and
MALLOC_TRIM_THRESHOLD_=2147483647: otherwise glibc returns and re-faults every large temporary.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from poolbisect.models.llama import LlamaConfig, MimoMiniature
from poolbisect.tasks import arithmetic

IGNORED = -100
MOST_OPERATIONS = 6
SORTED_TOGETHER = 16


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base-steps", type=int, default=3600)
    parser.add_argument("--mtp-steps", type=int, default=900)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=24243)
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    config = LlamaConfig(vocab_size=arithmetic.VOCAB_SIZE)
    model = MimoMiniature(config)
    _initialise(model)
    batches = _batches(random.Random(options.seed), options.batch)

    base = [p for name, p in model.named_parameters() if not name.startswith("mtp.")]
    _optimise("base", base, batches, options.base_steps, 2e-3, lambda t, y: _base_loss(model, t, y))
    save(model, options.out)
    for parameter in base:
        parameter.requires_grad_(False)
    _optimise(
        "mtp", list(model.mtp.parameters()), batches, options.mtp_steps, 2e-3,
        lambda t, y: _mtp_loss(model, t, y),
    )  # fmt: skip
    save(model, options.out)


def save(model: MimoMiniature, path: Path) -> None:
    """Write weights and configuration (in the file's metadata) as one safetensors file."""
    tensors = {name: value.detach().contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, path, metadata={"config": json.dumps(model.config.as_dict())})


def _initialise(model: MimoMiniature) -> None:
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.02 if "embed" in name else 0.05)


def _batches(rng: random.Random, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless (tokens, targets), each (size, length); prompt and padding are not targets.

    Several batches are drawn together and sorted by length, so that little of a batch is padding.
    """
    while True:
        rows = []
        while len(rows) < size * SORTED_TOGETHER:
            operations = rng.randrange(1, MOST_OPERATIONS + 1)
            level = rng.choice((arithmetic.EASY, arithmetic.HARD))
            problem = arithmetic.make_problem(rng, operations, level)
            if not arithmetic.is_held_out(problem.prompt):
                prompt = arithmetic.prompt_tokens(problem)
                answer = [*arithmetic.encode(problem.chain), arithmetic.EOS]
                rows.append((prompt + answer, len(prompt)))
        rows.sort(key=lambda row: len(row[0]))
        batches = [rows[at : at + size] for at in range(0, len(rows), size)]
        rng.shuffle(batches)
        yield from map(_padded, batches)


def _padded(rows: list[tuple[list[int], int]]) -> tuple[Tensor, Tensor]:
    length = max(len(row) for row, _ in rows)
    tokens = torch.full((len(rows), length), arithmetic.PAD)
    targets = torch.full((len(rows), length), IGNORED)
    for index, (row, start) in enumerate(rows):
        tokens[index, : len(row)] = torch.tensor(row)
        targets[index, start : len(row)] = tokens[index, start : len(row)]
    return tokens, targets


def _base_loss(model: MimoMiniature, tokens: Tensor, targets: Tensor) -> Tensor:
    logits = model.logits(model.hidden_states(tokens[:, :-1]))
    return F.cross_entropy(logits.flatten(0, 1).float(), targets[:, 1:].flatten())


def _mtp_loss(model: MimoMiniature, tokens: Tensor, targets: Tensor) -> Tensor:
    with torch.no_grad():
        hidden = model.hidden_states(tokens)
    losses = []
    for depth in range(model.config.num_mtp_layers):
        logits = model.mtp_logits(tokens[:, :-1], hidden, depth)
        wanted = targets[:, 2 + depth :]
        losses.append(F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten()))
    return torch.stack(losses).sum()


def _optimise(name, parameters, batches, steps, peak, loss_of):  # type: ignore[no-untyped-def]
    optimiser = torch.optim.AdamW(parameters, lr=peak, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=peak, total_steps=steps, pct_start=0.06, div_factor=20
    )
    started = time.perf_counter()
    for step in range(1, steps + 1):
        tokens, targets = next(batches)
        loss = loss_of(tokens, targets)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        schedule.step()
        if step % 50 == 0 or step == 1:
            spent = time.perf_counter() - started
            print(f"{name} {step}/{steps} loss {loss.item():.4f} {spent:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
