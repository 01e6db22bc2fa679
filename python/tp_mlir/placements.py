# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The placements of DTensor, without torch.distributed, and how a plan spells them.

PyTorch's own placements are understood as well: what counts is the class, not the package that it comes from.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .errors import PlanError


class Placement:
    """What one rank has of a tensor, along one mesh dimension."""


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """Split in blocks along dimension `dim`."""

    dim: int


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Whole on each rank."""


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """The reduction of the ranks' tensors: sum, avg, max, min or product."""

    reduce_op: str = "sum"


@dataclasses.dataclass(frozen=True)
class _StridedShard(Placement):
    """Divided into `split_factor` equal blocks along dimension `dim`, each of which is split."""

    dim: int
    split_factor: int = dataclasses.field(kw_only=True)


def is_from(value: Any, *packages: str) -> bool:
    """Whether the class of `value` is defined in one of `packages`."""
    module = type(value).__module__ + "."
    return any(module.startswith(package + ".") for package in packages)


def is_placement(value: Any) -> bool:
    """Whether `value` is a placement, one of PyTorch's or of this package; it needn't be one that a plan can have."""
    return any(base.__name__ == "Placement" for base in type(value).__mro__)


def spell(value: Any) -> str:
    """A placement as a plan has it.

    :raises PlanError: `value` is no placement, or one that describes the inside of PyTorch's computation."""
    name = type(value).__name__
    if is_from(value, "torch.distributed", "tp_mlir"):
        match name:
            case "Shard":
                return f"Shard({value.dim})"
            case "Replicate":
                return "Replicate"
            case "Partial":
                return f"Partial({value.reduce_op})"
            case "_StridedShard":
                return f"_StridedShard({value.dim}, split_factor={value.split_factor})"
    if is_placement(value):
        raise PlanError(f"the placement '{value!r}' can't be in a plan: '{name}' isn't Shard, Replicate, Partial or _StridedShard")
    raise PlanError(f"a placement is expected, such as Shard(0) or Replicate(); found {value!r}")
