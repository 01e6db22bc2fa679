# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that each module in the lit tests that parses prints and parses again as the same, as text and as bytecode.

A file's modules are what '// -----' and the '//--- NAME' lines of split-file separate. A module that doesn't parse, or
doesn't verify, is left out if a command of its file expects an error, and is a problem if not.

usage: roundtrip.py --bin FOLDER
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def find_modules(path):
    """Pieces of a test file that are IR. Those of a '.test' file are what split-file separates."""
    parts = re.split(r"^(?://|#)--- (\S+)$", path.read_text(), flags=re.M)
    pieces = [parts[0]] * (path.suffix == ".mlir") + [body for name, body in zip(parts[1::2], parts[2::2]) if name.endswith(".mlir")]
    modules = [module for piece in pieces for module in re.split(r"^// -----.*$", piece, flags=re.M)]
    return [module for module in modules if re.search(r"^\s*[^/\s]", module, re.M)]


def expects_error(path):
    """Whether a command of the file does."""
    return re.search(r"^.*(?:RUN|DEFINE):.*(?:\bnot\b|verify-diagnostics)", path.read_text(), re.M) is not None


def run(tool, module, *options):
    return subprocess.run([tool, "-", "-o", os.devnull, *options], input=module, capture_output=True, text=True)


def check(tool, path):
    """How many modules went round, and what is wrong."""
    modules = find_modules(path)
    # All at once, where all are valid.
    if modules and run(tool, "\n// -----\n".join(modules), "--split-input-file", "--verify-roundtrip").returncode == 0:
        return len(modules), []
    count, problems = 0, []
    for module in modules:
        parsed = run(tool, module)
        if parsed.returncode != 0:
            if not expects_error(path):
                problems.append(f"{path.relative_to(ROOT)}: {parsed.stderr[:2000]}\nof\n{module[:2000]}")
            continue
        count += 1
        result = run(tool, module, "--verify-roundtrip")
        if result.returncode != 0:
            problems.append(f"{path.relative_to(ROOT)}: {result.stderr[:2000]}\nof\n{module[:2000]}")
    return count, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    tool = os.path.join(parser.parse_args().bin, "tp-opt")
    paths = sorted(path for pattern in ("*.mlir", "*.test") for path in ROOT.rglob(pattern) if "Fuzz" not in path.parts)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: check(tool, path), paths))
    count = sum(number for number, _ in results)
    problems = [problem for _, found in results for problem in found]
    print("\n\n".join(problems))
    print(f"{count} modules of {len(paths)} files, {len(problems)} problems")
    return 1 if problems or count < 450 else 0


if __name__ == "__main__":
    sys.exit(main())
