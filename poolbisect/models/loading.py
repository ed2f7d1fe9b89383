"""Loading shipped weights: one safetensors file a model, its configuration in the metadata."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open

from poolbisect.errors import UsageError
from poolbisect.models.llama import LlamaConfig, MimoMiniature

WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model and the SHA-256 of the file it came from."""

    model: MimoMiniature
    sha256: str


def load_mimo(path: Path = WEIGHTS / "mimo.safetensors") -> LoadedModel:
    """The MiMo miniature. UsageError when the file is missing or is not one of ours."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        with safe_open(path, framework="pt") as weights:
            config = LlamaConfig(**json.loads((weights.metadata() or {})["config"]))
            tensors = {name: weights.get_tensor(name) for name in weights.keys()}  # noqa: SIM118
        model = MimoMiniature(config)
        model.load_state_dict(tensors)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such weights file") from error
    except Exception as error:
        raise UsageError(f"{path}: not the weights of a MiMo miniature ({error})") from error
    return LoadedModel(model, digest)


def load_model(name: str) -> LoadedModel:
    """A shipped model by the name scenarios give it. UsageError when none has it."""
    loaders = {"mimo": load_mimo}
    if name not in loaders:
        raise UsageError(f"no model is named {name!r}; there is {', '.join(loaders)}")
    return loaders[name]()
