"""The base decoder in Hugging Face's form: for comparison, and for servers that load it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from poolbisect.models.llama import LlamaConfig, MimoMiniature


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
