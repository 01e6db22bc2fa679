#!/usr/bin/env python3
"""Compile the per-rank programs of the examples for CUDA devices: every kernel becomes PTX and goes through ptxas.

Exits with 1 where one doesn't, and with 77 where there is no ptxas."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARCHITECTURES = "sm_80,sm_90,sm_100"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, required=True, help="folder of the tools")
    parser.add_argument("examples", type=Path, nargs="+", help="folders with files 'ranks.mlir'")
    arguments = parser.parse_args()
    failed = False
    for folder in arguments.examples:
        programs = sorted(folder.rglob("ranks.mlir"))
        if not programs:
            sys.exit(f"error: no 'ranks.mlir' in '{folder}'")
        for program in programs:
            with tempfile.NamedTemporaryFile(suffix=".tpx") as artifact:
                start = time.monotonic()
                process = subprocess.run([arguments.bin / "tp-compile", program, f"--target=cuda:{ARCHITECTURES}",
                                          "-o", artifact.name], capture_output=True, text=True)
                seconds = time.monotonic() - start
            if "no 'bin/ptxas'" in process.stderr:
                print("skipped: no ptxas; scripts/setup.sh installs it")
                sys.exit(77)
            print(process.stderr, end="")
            print(f"{program.relative_to(folder.parent)}: "
                  f"{'failed' if process.returncode else f'compiled in {seconds:.1f} s'}")
            failed |= process.returncode != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
