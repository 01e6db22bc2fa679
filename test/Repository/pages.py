# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/examples.py, which runs what pages of the documentation show: each kind of mistake is found.

usage: pages.py [--cxx COMPILER]
"""

import argparse
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import examples

# A page, and a part of the problem that is found in it; none if the page is right.
CASES = [
    ("```console\n$ echo a\na\n$ echo b\nb\n```\n", None),
    ("```console\n$ echo a\nb\n```\n", "shows something else"),
    ("```console\n$ seq 5\n1\n…\n5\n```\n", None),
    ("```console\n$ seq 5\n…\n4\n```\n", "shows something else"),
    ("```console\n$ echo took 3 s\ntook … s\n```\n", None),
    ("```console\n$ false\n```\n", "exit code 1"),
    ("```console\n$ echo error; false\nerror\n```\n", None),
    ("```sh\nfalse\ntrue\n```\n", "exit code 1"),
    ("```sh skip=\"a reason\"\nfalse\n```\n", None),
    ("```sh ski=\"a reason\"\nfalse\n```\n", "unknown option"),
    ("```yaml file=a.yaml\nx: 1\n```\n\n```console\n$ cat a.yaml\nx: 1\n```\n", None),
    ("<!-- run\nfalse\n-->\n", "exit code 1"),
    ("    tp-opt model.mlir\n", "must be in a fence"),
    ("```sh from=LICENSE\nno such line\n```\n", "doesn't contain"),
    ("```cpp\nint i = x;\n```\n", "doesn't compile"),
    ("<!-- wrap\nint x = 0;\nSNIPPET\n-->\n\n```cpp\n#include <vector>\nint i = x;\n```\n", None),
    ("<!-- wrap\nSNIPPET\n-->\n", "no code follows"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cxx", default="clang++-22")
    arguments = parser.parse_args()
    options = SimpleNamespace(build=ROOT / "build", cxx=arguments.cxx, cc="cc", mlir=ROOT)
    failed = False
    for text, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "page.md"
            path.write_text(text)
            page = examples.Page(path, Path(folder), options)
            if page.run() != text:
                page.problems.append("shows something else")
        problems = "\n".join(page.problems)
        if (expected not in problems) if expected else problems:
            print(f"expected {expected or 'no problem'}, found {problems or 'none'} in\n{text}")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
