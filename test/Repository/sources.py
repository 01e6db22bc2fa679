# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the form of source files: that clang-format would change nothing, that each begins with a banner of one line
that has its name, and with its license, and that a line of a .td file begins at most one `let`.

usage: sources.py --clang-format PROGRAM
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LICENSE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
C_LIKE = (".h", ".cpp", ".c", ".cu", ".cuh")
# The tests' inputs are texts that tests have something to say about, line by line.
INPUTS = ("test/", "runtime/unittests/Inputs/", "runtime/unittests/Cuda/Inputs/")


def list_files():
    """The repository's files, relative to its root, without what is built."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith((".", "build")) and name != "__pycache__"]
        for name in names:
            yield str((pathlib.Path(folder) / name).relative_to(ROOT))


def find_header_problem(path):
    """What is wrong with the first lines of a file, or nothing."""
    lines = (ROOT / path).read_text().split("\n", 4)[:4]
    if path.startswith("benchmarks/") or path.endswith((".c", "tp-c/TPMLIR.h")):
        banner = None
    elif path.endswith((*C_LIKE, ".td")):
        banner = rf"//===- {re.escape(os.path.basename(path))} .*-(\*- (C\+\+|tablegen) -\*)?-*===//"
    else:
        banner = None
    if banner and (not re.fullmatch(banner, lines[0]) or len(lines[0]) != 80):
        return f"the first line isn't a banner of 80 columns with the file's name: {lines[0]}"
    if not any(LICENSE in line for line in lines[:2]):
        return f"neither of the first two lines has '{LICENSE}'"
    return None


def find_let_problems(path):
    """The lines of a .td file with a `let` that isn't their first word."""
    if not path.endswith(".td"):
        return
    text = (ROOT / path).read_text()
    # Strings, code and comments may have any words; their lines still count.
    text = re.sub(r'\[\{.*?\}\]|"(?:[^"\\\n]|\\.)*"|//[^\n]*', lambda part: "\n" * part[0].count("\n"), text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\S\s*\blet\s+\w+\s*=", line):
            yield f"{path}:{number}: a 'let' must begin its line"


def find_format_problems(program, paths):
    run = subprocess.run([program, "--dry-run", "-Werror", *paths], cwd=ROOT, capture_output=True, text=True)
    return re.findall(r"^(\S+?:\d+:\d+): error: .*clang-format", run.stderr, re.M) or ([run.stderr] if run.returncode else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clang-format", required=True)
    options = parser.parse_args()
    files = sorted(list_files())
    problems = []
    for path in files:
        is_source = path.endswith((*C_LIKE, ".td", ".py", ".sh", ".cmake")) or path.endswith("CMakeLists.txt")
        if is_source and not path.startswith(INPUTS):
            if problem := find_header_problem(path):
                problems.append(f"{path}:1: {problem}")
        problems += find_let_problems(path)
    formatted = [path for path in files if path.endswith(C_LIKE)]
    jobs = os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(find_format_problems, [options.clang_format] * jobs, [formatted[i::jobs] for i in range(jobs)]):
            problems += [f"{place}: clang-format would change this" for place in found]
    if len(formatted) < 300:
        problems.append(f"only {len(formatted)} files were found")
    print("\n".join(problems))
    print(f"{len(formatted)} files formatted, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
