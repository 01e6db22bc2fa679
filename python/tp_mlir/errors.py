# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exceptions of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._native import CompileError, Diagnostic, Error, ExecutionError, InputError

if TYPE_CHECKING:
    from .source import Place

__all__ = ["CaptureError", "CompileError", "Diagnostic", "Error", "ExecutionError", "InputError", "MeshError", "PlanError",
           "UnsupportedError", "WeightError"]


class _Located(RuntimeError):
    """An error about a plan or a module. Of these attributes, those are None that don't apply, or aren't known."""

    place: Place | None
    """The file, line and column of the user's Python code: of the plan's entry, the call, or the line in a forward."""
    entry: str | None
    """The pattern of the plan's entry."""
    fqn: str | None
    """The FQN of the module or the parameter, from the module that is compiled or that the call is for; '' is that module."""

    def __init__(self, message: str, *, place: Place | None = None, entry: str | None = None, fqn: str | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place
        self.entry = entry
        self.fqn = fqn


class PlanError(_Located, Error, ValueError):
    """A plan is wrong, or doesn't fit the model."""

    diagnostics: list[Diagnostic]
    """What the compiler said, if it was the compiler that found the error."""

    def __init__(self, message: str, *, diagnostics: list[Diagnostic] | None = None, **where: Any) -> None:
        super().__init__(message, **where)
        self.diagnostics = diagnostics or []


class MeshError(_Located, Error, ValueError):
    """A mesh is wrong, or can't be used here."""


class CaptureError(_Located, Error):
    """torch.export can't capture the module."""


class WeightError(_Located, InputError):
    """A program can't read a parameter or a buffer of the module."""


class UnsupportedError(_Located, Error, NotImplementedError):
    """Something that PyTorch can and this package can't."""
