# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exceptions of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import CompileError, Diagnostic, Error, ExecutionError, InputError

if TYPE_CHECKING:
    from .source import Place

__all__ = ["CaptureError", "CompileError", "Diagnostic", "Error", "ExecutionError", "InputError", "MeshError", "PlanError",
           "UnsupportedError"]


class PlanError(Error, ValueError):
    """A plan is wrong, or doesn't fit the model."""

    place: Place | None
    """Where the user's Python code has the entry."""
    entry: str | None
    """The entry's pattern."""
    diagnostics: list[Diagnostic]
    """What the compiler said, if it was the compiler that found the error."""

    def __init__(self, message: str, *, place: Place | None = None, entry: str | None = None,
                 diagnostics: list[Diagnostic] | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place
        self.entry = entry
        self.diagnostics = diagnostics or []


class MeshError(Error, ValueError):
    """A mesh is wrong, or can't be used here."""


class CaptureError(Error):
    """torch.export can't capture the module."""


class UnsupportedError(Error, NotImplementedError):
    """Something that PyTorch can and this package can't."""
