# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks a wheel: its size, that it finds its libraries in itself, that it needs no other but those that every machine has,
and its licenses. Prints the platform that it is for, from the newest version of the C library that it needs.

usage: check.py WHEEL
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

from assemble import EXPECTED, list_needed

MAX_BYTES = 60_000_000


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_file(file, present):
    """The problems of a program or library."""
    for name in list_needed(file):
        if not EXPECTED.match(name) and name not in present:
            yield f"{file.name} needs {name}, which isn't in the wheel"
    for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", file)):
        if not all(part.startswith("$ORIGIN") for part in path.split(":")):
            yield f"{file.name} looks for libraries in {path}"


def main():
    wheel = pathlib.Path(sys.argv[1])
    problems = []
    if wheel.stat().st_size > MAX_BYTES:
        problems.append(f"the wheel has {wheel.stat().st_size} bytes, more than {MAX_BYTES}")
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        package = pathlib.Path(folder, "tp_mlir")
        files = [*package.glob("*.so"), *package.glob("bin/*"), *package.glob("lib/*")]
        present = {file.name for file in package.glob("lib/*")}
        for file in files:
            problems += check_file(file, present)
        versions = re.findall(r"\bGLIBC_2\.(\d+)", "".join(run("objdump", "-T", file) for file in files))
        licensed = {file.stem for file in package.glob("licenses/*.txt")}
        for name in ("LLVM-and-MLIR", "OpenBLAS", "Nettle", "nanobind", "Chart.js", "dagre", "tp-mlir"):
            if name not in licensed:
                problems.append(f"the license of {name} is missing")
    for problem in problems:
        print(f"{wheel.name}: error: {problem}", file=sys.stderr)
    print(f"manylinux_2_{max(map(int, versions))}_x86_64")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
