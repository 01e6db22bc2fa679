#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check that the commands in IRByExample.md and Explain.md still print what the pages show.

In a ```console block a line that starts with '$ ' is a command; what it prints,
on both streams, follows. Commands run in a copy of docs/mlp; later pages find the files of earlier ones.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGES = [DOCS / "IRByExample.md", DOCS / "Explain.md"]


def run_block(block, folder, environment):
    """The block with what its commands print now."""
    lines = []
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)", block, flags=re.M):
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines += [f"$ {command}", *done.stdout.rstrip("\n").splitlines()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, default=DOCS.parent / "build/bin",
                        help="folder of the tools (default: %(default)s)")
    parser.add_argument("--update", action="store_true", help="write what is printed into the pages")
    arguments = parser.parse_args()
    path = [arguments.bin.resolve(), Path(sys.executable).parent, os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(map(str, path))}

    stale = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(DOCS / "mlp", folder, dirs_exist_ok=True)
        for page in PAGES:
            text = page.read_text()
            now = re.sub(r"(?<=^```console\n).*?(?=^```$)",
                         lambda match: run_block(match[0], folder, environment),
                         text, flags=re.M | re.S)
            if arguments.update:
                page.write_text(now)
            elif now != text:
                sys.stdout.writelines(difflib.unified_diff(
                    text.splitlines(True), now.splitlines(True), f"docs/{page.name}", "printed now"))
                stale.append(page.name)
    if stale:
        sys.exit(f"{', '.join(stale)} in docs/ show something else than the tools print; read the difference,"
                 " and update the pages with 'docs/examples.py --update'")


if __name__ == "__main__":
    main()
