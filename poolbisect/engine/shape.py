"""What a rank must know of a model to give it memory, and what the engine asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from poolbisect.engine.graph_inputs import RowInputs
    from poolbisect.engine.rank import Rank


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a model's long-lived buffers; state shapes are those of one request and layer."""

    hidden_size: int
    attention_layers: int
    kv_heads: int
    head_dim: int
    mtp_layers: int = 0
    token_table: bool = False
    mamba_layers: int = 0
    conv_state: tuple[int, ...] = ()
    ssm_state: tuple[int, ...] = ()

    @property
    def bytes_per_mamba_slot(self) -> int:
        elements = 0
        for shape in (self.conv_state, self.ssm_state):
            size = 1
            for extent in shape:
                size *= extent
            elements += size
        return 4 * elements * self.mamba_layers


class ServedModel(Protocol):
    """A model's arithmetic over the ranks' memory."""

    @property
    def shape(self) -> ModelShape: ...

    def rotary_table(self, length: int) -> Tensor:
        """cos and sin of each position and pair, (length, head_dim / 2, 2)."""
        ...

    def target(self, parts: Sequence[tuple[Rank, RowInputs]]) -> tuple[Tensor, ...]:
        """Last hidden states before the final norm, per rank (rows, width, hidden)."""
        ...

    def target_logits(self, hidden: Tensor) -> Tensor: ...
