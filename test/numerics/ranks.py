# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranks of a report: a module of the Python package, without the rest of it, which needs the compiler."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tp_mlir"))
from rank_classes import Ranks  # noqa: E402, F401
