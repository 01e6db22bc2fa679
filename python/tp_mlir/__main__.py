# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools: `python -m tp_mlir tp-opt …`."""

import os
import pathlib
import sys

from tp_mlir import Error
from tp_mlir._torch import load_importer

FOLDER = pathlib.Path(__file__).parent / "bin"
TOOLS = {
    "tp-import": "a model of PyTorch → MLIR and safetensors",
    "tp-opt": "passes, as tp-parallelize",
    "tp-compile": "per-rank programs → an artifact",
    "tp-run": "runs an artifact",
    "tp-ckpt": "checkpoints of a training",
}


def run_import(arguments: list[str]) -> int:
    """tp-import is in the extension for the PyTorch of this process."""
    try:
        importer = load_importer()
    except Error as error:
        print(f"tp-import: error: {error}", file=sys.stderr)
        return 1
    return int(importer.run_tool(["tp-import", *arguments]))


def main() -> int:
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print("usage: python -m tp_mlir TOOL ARGUMENT…\n")
        print("\n".join(f"  {tool:12}{text}" for tool, text in TOOLS.items()))
        print("\n`TOOL --help` says more. Exit code 2: wrong usage.")
        return 0
    if name not in TOOLS:
        print(f"tp_mlir: error: no tool '{name}'; tools are {', '.join(TOOLS)}", file=sys.stderr)
        return 2
    if name == "tp-import":
        return run_import(arguments)
    sys.stdout.flush()
    os.execv(FOLDER / name, [name, *arguments])


if __name__ == "__main__":
    sys.exit(main())
