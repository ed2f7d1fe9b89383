"""From a model to its arithmetic over the ranks' memory, by the model's class."""

from __future__ import annotations

from functools import singledispatch

from torch import nn

from poolbisect.engine.forward import Forward
from poolbisect.engine.hybrid_forward import HybridForward
from poolbisect.engine.shape import ServedModel
from poolbisect.models.hybrid import HybridMiniature
from poolbisect.models.llama import MimoMiniature


@singledispatch
def serve(model: nn.Module, device: str) -> ServedModel:
    """The arithmetic of `model` on `device`. TypeError for a model the engine cannot serve."""
    raise TypeError(f"the engine cannot serve a {model.__class__.__name__}")


@serve.register
def _(model: MimoMiniature, device: str) -> ServedModel:
    return Forward(model, device)


@serve.register
def _(model: HybridMiniature, device: str) -> ServedModel:
    return HybridForward(model, device)
