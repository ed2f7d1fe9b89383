"""The smallest description of a mamba model that upstream's hybrid pools can be built from.

The pools are asked for slots and mappings only, so one layer with a state of a few bytes will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

_CONV_DIM, _CONV_WINDOW = 2, 1


class ConvStateShape(tuple[int, ...]):
    """The shape of the convolution state, for every era's pools.

    Early ones append it to the leading dimensions of one tensor and compare its items; later ones
    iterate over a list of shapes, of which this is the only one.
    """

    def __iter__(self) -> Iterator[Any]:
        yield tuple(tuple.__getitem__(self, slice(None)))


@dataclass(frozen=True, slots=True)
class _Shapes:
    conv: ConvStateShape
    temporal: tuple[int, int, int]
    conv_kernel: int = _CONV_WINDOW + 1


@dataclass(frozen=True, slots=True)
class _Dtypes:
    conv: torch.dtype = torch.float32
    temporal: torch.dtype = torch.float32


@dataclass(frozen=True, slots=True)
class MambaParameters:
    """What upstream calls the cache parameters of a model, for a model of one tiny layer."""

    layers: tuple[int, ...] = (0,)
    shape: _Shapes = _Shapes(ConvStateShape((_CONV_DIM, _CONV_WINDOW)), (1, 1, 1))
    dtype: _Dtypes = _Dtypes()
    is_kda: bool = False
