# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers: the plans that they come with, and the caches that they return."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import PlanError, UnsupportedError
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


def register_caches() -> None:
    """Lets torch.export know the caches that models return, if transformers is in use."""
    if "transformers" in sys.modules:
        with contextlib.suppress(ImportError):  # transformers 4.50 and later have it
            from transformers.integrations.executorch import register_dynamic_cache_export_support
            register_dynamic_cache_export_support()  # type: ignore[no-untyped-call]


def check_caches(arguments: Mapping[str, Any]) -> None:
    """:raises UnsupportedError: an argument is a cache of transformers, which a call of the model would change."""
    if "transformers" in sys.modules:
        for name, value in arguments.items():
            if any(base.__module__ == "transformers.cache_utils" for base in type(value).__mro__):
                raise UnsupportedError(f"the argument {name} is a {type(value).__name__}, and a program can't change the caller's objects; call "
                                       "the model with use_cache=False, as in generate(ids, use_cache=False), or generate by tp-run "
                                       "--generate, which keeps keys and values")


def is_harmless(hook: Any) -> bool:
    """Whether a hook is one of transformers that a program doesn't need: it collects outputs of a model's own modules, or lets
    embeddings require gradients, for checkpoints."""
    module, name = getattr(hook, "__module__", None), getattr(hook, "__name__", None)
    return module == "transformers.utils.output_capturing" or (module, name) == ("transformers.modeling_utils", "make_inputs_require_grads")
