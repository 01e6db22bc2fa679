# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The extensions that import models. LibTorch's C++ interface differs between minor versions of PyTorch, so there is one
extension for each that the package supports."""

import importlib
import pathlib
import types

from tp_mlir._native import Error

PREFIX = "_torch_import_"


def list_versions() -> list[str]:
    """The versions of PyTorch that the package has an extension for, as in ["2.8", "2.13"]."""
    files = pathlib.Path(__file__).parent.glob(f"{PREFIX}*.so")
    versions = {tuple(map(int, file.name.removeprefix(PREFIX).split(".")[0].split("_"))) for file in files}
    return [f"{major}.{minor}" for major, minor in sorted(versions)]


def load_importer() -> types.ModuleType:
    """The extension for the PyTorch of this process."""
    known = f"this package is for PyTorch {', '.join(list_versions())}"
    try:
        import torch
    except ImportError as error:
        raise Error(f"importing a model needs PyTorch; {known}: {error}") from error
    major, minor = torch.__version__.split(".")[:2]
    if f"{major}.{minor}" not in list_versions():
        raise Error(f"PyTorch {torch.__version__} can't be used to import a model; {known}")
    try:
        return importlib.import_module(f"tp_mlir.{PREFIX}{major}_{minor}")
    except ImportError as error:
        raise Error(f"the extension for PyTorch {major}.{minor} can't be loaded: {error}") from error
