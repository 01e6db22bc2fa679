# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The extension that imports models, which is built for one version of PyTorch's C++ library."""

import importlib
import types

from tp_mlir._native import Error


def load_importer() -> types.ModuleType:
    """The extension module for the PyTorch of this process."""
    try:
        import torch
    except ImportError as error:
        raise Error(f"importing a model needs PyTorch 2.8 or later: {error}") from error
    try:
        return importlib.import_module("tp_mlir._torch_import")
    except ImportError as error:
        raise Error(f"the importer doesn't fit PyTorch {torch.__version__}: {error}") from error
