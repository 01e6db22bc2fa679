# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that are found instead of written."""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import UnsupportedError


def auto_plan(module: Any, device_mesh: Any = None, *, example_inputs: Any = None, memory_limit: str | int | None = None) -> NoReturn:
    """:raises UnsupportedError: always: the compiler chooses the placements that a plan leaves open, but makes no plan."""
    raise UnsupportedError("the compiler has no automatic plan. parallelize_module(model, mesh, 'auto') takes the tp_plan of a model of "
                           "transformers; for other models, write a plan, and ask model.explain() which entries communicate less")
