"""Train the Mamba2-attention hybrid miniature.

    python -m poolbisect.models.train_hybrid --out poolbisect/models/weights/hybrid.safetensors

About ten minutes on one core (the shipped file: OMP_NUM_THREADS=1). The problem set's share of all
prompts (`arithmetic.is_held_out`) is never trained on. Afterwards it solves problems of that share
and prints how many of each kind are right. `training` names two environment variables that make it
faster.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from pathlib import Path

import torch
from torch import Tensor

from poolbisect.models import training
from poolbisect.models.hybrid import HybridConfig, HybridMiniature, MambaLayer, load
from poolbisect.tasks import arithmetic

LONGEST_ANSWER = 90
SMALLEST_STEP, LARGEST_STEP = 1e-3, 1e-1
LARGEST_DECAY_RATE = 16.0


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=3200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=24244)
    parser.add_argument("--problems", type=int, default=100, help="solved per kind afterwards")
    options = parser.parse_args(arguments)

    if options.steps:
        train(options.out, options.steps, options.batch, options.seed)
    report(load(options.out), options.problems)


def train(path: Path, steps: int, batch: int, seed: int) -> None:
    """Train for `steps` batches from scratch and write the safetensors file."""
    torch.manual_seed(seed)
    model = HybridMiniature(HybridConfig(vocab_size=arithmetic.VOCAB_SIZE))
    training.initialise(model)
    _initialise_recurrence(model)

    def loss_of(tokens: Tensor, targets: Tensor) -> Tensor:
        logits = model.logits(model.hidden_states(tokens[:, :-1]))
        return training.next_token_loss(logits, targets[:, 1:])

    data = training.batches(random.Random(seed), batch)
    training.optimise("hybrid", list(model.parameters()), data, steps, 2e-3, loss_of)
    training.save(model, model.config.as_dict(), path)


def report(model: HybridMiniature, count: int) -> None:
    """Print the share of `count` held-out problems solved, per number of operations and level."""
    kinds = itertools.product(
        (arithmetic.EASY, arithmetic.HARD), range(1, training.MOST_OPERATIONS + 1)
    )
    for level, operations in kinds if count else ():
        rng = random.Random(f"{level} {operations}")
        problems = list(arithmetic.draw_problems(rng, [(operations, level, count)]))
        answers = training.greedy_answers(
            lambda tokens: model.logits(model.hidden_states(tokens)), problems, LONGEST_ANSWER
        )
        right = sum(
            arithmetic.grade(answer, problem.answer) == "right"
            for answer, problem in zip(answers, problems, strict=True)
        )
        print(f"{level} {operations} {right / count:.3f}", file=sys.stdout, flush=True)


@torch.no_grad()
def _initialise_recurrence(model: HybridMiniature) -> None:
    """Step sizes log-uniform and decay rates uniform, as in the Mamba2 paper's code."""
    for layer in model.layers:
        if isinstance(layer, MambaLayer):
            mixer = layer.mamba
            low, high = math.log(SMALLEST_STEP), math.log(LARGEST_STEP)
            dt = torch.empty_like(mixer.dt_bias).uniform_(low, high).exp()
            mixer.dt_bias.copy_(dt.expm1().log())
            mixer.A_log.uniform_(1.0, LARGEST_DECAY_RATE).log_()


if __name__ == "__main__":
    main()
