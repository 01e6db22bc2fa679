# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands, `tp-mlir run …`, and the tools, `tp-mlir tp-opt …`; also as `python -m tp_mlir`."""

import os
import signal
import sys

from tp_mlir import commands, tools
from tp_mlir._native import __version__

NAME = "tp-mlir"


def describe() -> str:
    def format_table(table: dict[str, str]) -> str:
        return "\n".join(f"  {name:12}{text}" for name, text in table.items())

    texts = {name: command.description for name, command in commands.COMMANDS.items()}
    return (f"usage: {NAME} COMMAND MODEL OPTION…\n       {NAME} TOOL ARGUMENT…\n\n"
            f"Commands, from a model to a result:\n{format_table(texts)}\n\nTools, for one step each:\n{format_table(tools.TOOLS)}\n\n"
            f"`{NAME} COMMAND --help` and `{NAME} TOOL --help` say more. Exit codes are those of the tools; 2: wrong usage.")


def execute(name: str, arguments: list[str]) -> int:
    if name in ("-h", "--help"):
        print(describe())
        return 0
    if name == "--version":
        print(f"{NAME} {__version__}")
        return 0
    if name in commands.COMMANDS:
        return commands.run(name, arguments)
    if name in tools.TOOLS:
        return tools.run(name, arguments)
    print(f"{NAME}: error: no command '{name}'; commands are {', '.join(commands.COMMANDS)}, and tools are {', '.join(tools.TOOLS)}",
          file=sys.stderr)
    return 2


def main() -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in other tools, of which this process becomes one
    if sys.stdout:
        sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # names of files needn't be text
    name, *arguments = sys.argv[1:] or ["--help"]
    try:
        try:
            code = execute(name, arguments)
        except SystemExit as end:  # argparse's
            code = int(end.code or 0)
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        print(f"{NAME}: error: can't write the output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python writes the rest when it ends
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
