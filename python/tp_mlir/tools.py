# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package's tools, as programs."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys

from ._native import Error
from ._torch import load_importer

_FOLDER = pathlib.Path(__file__).parent / "bin"
TOOLS = {
    "tp-import": "a model of PyTorch → MLIR and safetensors",
    "tp-opt": "passes, as tp-parallelize",
    "tp-compile": "per-rank programs → an artifact",
    "tp-run": "runs an artifact",
    "tp-ckpt": "checkpoints of a training",
}


def find(name: str) -> pathlib.Path | None:
    """The program of a tool. A wheel has none for tp-import, which is a part of the extension for the user's PyTorch."""
    path = _FOLDER / name
    return path if path.exists() else None


def run(name: str, arguments: list[str]) -> int:
    """Makes this process the tool, or returns its exit code."""
    if name == "tp-import":
        try:
            importer = load_importer()
        except Error as error:
            print(f"tp-import: error: {error}", file=sys.stderr)
            return 1
        return int(importer.run_tool([name, *arguments]))
    sys.stdout.flush()
    os.execv(_FOLDER / name, [name, *arguments])


def list_files(name: str) -> list[pathlib.Path]:
    """The files that a tool consists of, to see whether it is another one."""
    if found := find(name):
        return [found]
    extensions = sorted(_FOLDER.parent.glob("*.so"))
    torch = importlib.util.find_spec("torch")
    return extensions + ([pathlib.Path(torch.origin).with_name("version.py")] if torch and torch.origin else [])


def get_command(name: str) -> list[str]:
    """The beginning of a command line that runs a tool."""
    found = find(name)
    return [str(found)] if found else [sys.executable, "-m", "tp_mlir", name]
