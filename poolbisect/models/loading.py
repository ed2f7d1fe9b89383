"""Loading shipped weights: one safetensors file a model, its configuration in the metadata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from safetensors import safe_open
from torch import nn

from poolbisect.errors import UsageError
from poolbisect.models.hybrid import HybridConfig, HybridMiniature
from poolbisect.models.llama import LlamaConfig, MimoMiniature

M = TypeVar("M", bound=nn.Module)

MODELS = ("mimo", "ngram", "hybrid")
WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model and the SHA-256 of the file it came from."""

    model: nn.Module
    sha256: str


def load_mimo(path: Path = WEIGHTS / "mimo.safetensors") -> MimoMiniature:
    """The MiMo miniature, with n-gram embedding or without. UsageError as `load_model`."""
    return _read(path, lambda config: MimoMiniature(LlamaConfig(**config)))


def load_hybrid(path: Path = WEIGHTS / "hybrid.safetensors") -> HybridMiniature:
    """The Mamba2-attention hybrid. UsageError as `load_model`."""
    return _read(path, lambda config: HybridMiniature(HybridConfig(**config)))


def load_model(name: str) -> LoadedModel:
    """A shipped model by the name scenarios give it.

    UsageError when none has it, or when its file is missing or is not one of ours.
    """
    loaders: dict[str, Callable[[Path], nn.Module]] = {
        "mimo": load_mimo,
        "ngram": load_mimo,
        "hybrid": load_hybrid,
    }
    if name not in loaders:
        raise UsageError(f"no model is named {name!r}; there is {', '.join(loaders)}")
    path = WEIGHTS / f"{name}.safetensors"
    model = loaders[name](path)
    return LoadedModel(model, hashlib.sha256(path.read_bytes()).hexdigest())


def _read(path: Path, build: Callable[[dict[str, Any]], M]) -> M:
    try:
        with safe_open(path, framework="pt") as weights:
            model = build(json.loads((weights.metadata() or {})["config"]))
            model.load_state_dict({name: weights.get_tensor(name) for name in weights.keys()})  # noqa: SIM118
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such weights file") from error
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{path}: not the weights of a miniature ({reason})") from error
    return model.eval()
