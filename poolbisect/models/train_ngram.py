"""Train the n-gram variant of the MiMo miniature, starting from the miniature's own weights.

    python -m poolbisect.models.train_ngram --out poolbisect/models/weights/ngram.safetensors

About 6 minutes on two cores. At the start half of every token's embedding moves to the pairs it
ends, which changes no output; training then gives pairs a meaning of their own. The MTP layers
are trained again at the end. `training` names two environment variables that make it faster.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path

import torch

from poolbisect.models import training
from poolbisect.models.llama import MimoMiniature
from poolbisect.models.loading import load_mimo
from poolbisect.models.train_mimo import base_parameters, losses

PEAK_RATE = 5e-4


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base-steps", type=int, default=600)
    parser.add_argument("--mtp-steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=24439)
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    model = with_ngrams(load_mimo())
    data = training.batches(random.Random(options.seed), options.batch)
    base_loss, mtp_loss = losses(model)
    base = base_parameters(model)
    training.optimise("base", base, data, options.base_steps, PEAK_RATE, base_loss)
    for parameter in base:
        parameter.requires_grad_(False)
    mtp = list(model.mtp.parameters())
    training.optimise("mtp", mtp, data, options.mtp_steps, PEAK_RATE, mtp_loss)
    training.save(model, model.config.as_dict(), options.out)


@torch.no_grad()
def with_ngrams(plain: MimoMiniature) -> MimoMiniature:
    """A copy of `plain` whose base model computes the same from tokens and pairs, half each."""
    model = MimoMiniature(replace(plain.config, ngram_embedding=True))
    model.load_state_dict(plain.state_dict(), strict=False)
    half = plain.model.embed_tokens.weight / 2
    model.model.embed_tokens.weight.copy_(half)
    model.model.embed_ngrams.weight.copy_(half.repeat(len(half), 1))
    return model


if __name__ == "__main__":
    main()
