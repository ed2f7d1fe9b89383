"""Train the MiMo miniature: first the base decoder, then its MTP layers on frozen hidden states.

    python -m poolbisect.models.train_mimo --out poolbisect/models/weights/mimo.safetensors

About 25 minutes on two cores. The problem set's share of all prompts (`arithmetic.is_held_out`) is
never trained on. `training` names two environment variables that make it faster.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from poolbisect.models import training
from poolbisect.models.llama import LlamaConfig, MimoMiniature
from poolbisect.tasks import arithmetic

PEAK_RATE = 2e-3
Loss = Callable[[Tensor, Tensor], Tensor]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base-steps", type=int, default=3600)
    parser.add_argument("--mtp-steps", type=int, default=900)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=24243)
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    model = MimoMiniature(LlamaConfig(vocab_size=arithmetic.VOCAB_SIZE))
    training.initialise(model)
    data = training.batches(random.Random(options.seed), options.batch)

    base_loss, mtp_loss = losses(model)
    base = base_parameters(model)
    training.optimise("base", base, data, options.base_steps, PEAK_RATE, base_loss)
    for parameter in base:
        parameter.requires_grad_(False)
    mtp = list(model.mtp.parameters())
    training.optimise("mtp", mtp, data, options.mtp_steps, PEAK_RATE, mtp_loss)
    training.save(model, model.config.as_dict(), options.out)


def base_parameters(model: MimoMiniature) -> list[nn.Parameter]:
    """Everything but the MTP layers."""
    return [p for name, p in model.named_parameters() if not name.startswith("mtp.")]


def losses(model: MimoMiniature) -> tuple[Loss, Loss]:
    """Loss of the base model, and of its MTP layers summed, of (tokens, targets)."""

    def base_loss(tokens: Tensor, targets: Tensor) -> Tensor:
        logits = model.logits(model.hidden_states(tokens[:, :-1]))
        return training.next_token_loss(logits, targets[:, 1:])

    def mtp_loss(tokens: Tensor, targets: Tensor) -> Tensor:
        with torch.no_grad():
            hidden = model.hidden_states(tokens)
        losses = [
            training.next_token_loss(
                model.mtp_logits(tokens[:, :-1], hidden, depth), targets[:, 2 + depth :]
            )
            for depth in range(model.config.num_mtp_layers)
        ]
        return torch.stack(losses).sum()

    return base_loss, mtp_loss


if __name__ == "__main__":
    main()
