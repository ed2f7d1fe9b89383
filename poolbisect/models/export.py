"""The base decoder in Hugging Face's form: for comparison, and for servers that load it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from poolbisect.errors import UsageError
from poolbisect.models.llama import LlamaConfig, MimoMiniature
from poolbisect.tasks import arithmetic

_SPECIAL = {arithmetic.PAD: "<pad>", arithmetic.BOS: "<s>", arithmetic.EOS: "</s>"}


def export_base_model(model: MimoMiniature, folder: Path) -> list[Path]:
    """Write the base model and its tokenizer to `folder`, as servers load them; the files.

    A tokenizer of one token a character, which puts BOS before each text.

    Raises:
        UsageError: the model has an n-gram embedding, which LlamaForCausalLM lacks; the folder
            holds other files, or cannot be written.
    """
    if model.config.ngram_embedding:
        raise UsageError("the n-gram miniature has no Hugging Face form; export mimo")
    documents = {
        "config.json": hugging_face_config(model.config),
        "generation_config.json": {
            "bos_token_id": arithmetic.BOS,
            "eos_token_id": arithmetic.EOS,
            "pad_token_id": arithmetic.PAD,
            "do_sample": False,
        },
        "tokenizer.json": tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": _SPECIAL[arithmetic.BOS],
            "eos_token": _SPECIAL[arithmetic.EOS],
            "pad_token": _SPECIAL[arithmetic.PAD],
            "model_max_length": model.config.max_position_embeddings,
            "clean_up_tokenization_spaces": False,
        },
    }
    weights = folder / "model.safetensors"
    files = [*(folder / name for name in documents), weights]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = sorted({path.name for path in folder.iterdir()} - {path.name for path in files})
        if foreign:
            raise UsageError(
                f"{folder} holds {foreign[0]}, which is not of an exported model; give an empty or "
                "a new folder"
            )
        for name, content in documents.items():
            text = json.dumps(content, indent=2) + "\n"
            (folder / name).write_text(text, encoding="utf-8")
        tensors = {name: value.contiguous() for name, value in base_weights(model).items()}
        save_file(tensors, weights, metadata={"format": "pt"})
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{folder}: the model cannot be written there ({reason})") from error
    return files


def tokenizer() -> dict[str, Any]:
    """The task's alphabet as a `tokenizer.json`; format of the Hugging Face tokenizers library."""
    bos = _SPECIAL[arithmetic.BOS]
    vocabulary = {text: id for id, text in _SPECIAL.items()}
    vocabulary |= {c: arithmetic.encode(c)[0] for c in arithmetic.ALPHABET}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": id,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for id, text in sorted(_SPECIAL.items())
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "."},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": bos, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [
                {"SpecialToken": {"id": bos, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}},
            ],
            "special_tokens": {bos: {"id": bos, "ids": [arithmetic.BOS], "tokens": [bos]}},
        },
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": vocabulary,
            "unk_token": _SPECIAL[arithmetic.PAD],
        },
    }


def base_weights(model: MimoMiniature) -> dict[str, Tensor]:
    """The base model's tensors under the names of LlamaForCausalLM; the MTP layers left out."""
    return {
        name: value for name, value in model.state_dict().items() if not name.startswith("mtp.")
    }


def hugging_face_config(config: LlamaConfig) -> dict[str, Any]:
    """The content of `config.json` for the base model."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "max_position_embeddings": config.max_position_embeddings,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.rms_norm_eps,
        "bos_token_id": arithmetic.BOS,
        "eos_token_id": arithmetic.EOS,
        "pad_token_id": arithmetic.PAD,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "float32",
    }


def transformers_model(model: MimoMiniature) -> Any:
    """The base model as `transformers.LlamaForCausalLM` (transformers must be installed)."""
    from transformers import LlamaConfig as TransformersConfig
    from transformers import LlamaForCausalLM

    settings = hugging_face_config(model.config)
    settings.pop("architectures")
    settings.pop("torch_dtype")
    reference = LlamaForCausalLM(TransformersConfig(**settings))
    reference.load_state_dict(base_weights(model))
    reference.train(False)
    return reference
