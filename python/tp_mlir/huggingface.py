# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plans that models of transformers come with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import PlanError
from .plan import join
from .source import Place

if TYPE_CHECKING:
    import torch


def find_plan(module: torch.nn.Module, place: Place) -> dict[str, str]:
    """The tp_plan of `module`, or of the outermost model of transformers inside it.

    :raises PlanError: there is none."""
    for fqn, inner in module.named_modules():
        plan = getattr(inner, "tp_plan", None) or getattr(inner, "_tp_plan", None)
        if plan and isinstance(plan, dict):
            return {join(fqn, key): style for key, style in plan.items()}
    raise PlanError(f"the plan 'auto' is the tp_plan of a model of transformers, and {type(module).__name__} has none; write a plan as "
                    "a map of modules to styles", place=place)
