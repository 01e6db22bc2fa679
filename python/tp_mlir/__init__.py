# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor parallelism for PyTorch models, compiled ahead of time."""

from tp_mlir._native import CompileError, Error, ExecutionError, InputError, __version__

__all__ = ["CompileError", "Error", "ExecutionError", "InputError", "__version__"]
