"""Checks that the proof agrees with execution, for programs with random placements.

  proofs.py [--tools DIRECTORY] [--seed N] [--batches N] [--first N] [--graphs N] [--cases N] [--keep DIRECTORY]

The batches are those of sharded.py, over more meshes. tp-verify-spmd must prove each one by rules and block algebra
alone, and its execution must find the same. Exit code 1 when any fails.
"""

import random
import re
import sys
import tempfile
from pathlib import Path

import torch

import execution
import programs
import sharded

MESHES = sharded.MESHES + ((("tp", 8),), (("dp", 2), ("tp", 4)), (("tp", 5),))


def verify(batch, tools, directory):
    """Raises execution.Failure unless the batch is proven."""
    directory.mkdir(parents=True, exist_ok=True)
    model, ranks = directory / "model.mlir", directory / "ranks.mlir"
    model.write_text(programs.get_module(batch.mesh, batch.programs))
    execution.run([execution.get_tool(tools, "tp-opt"), model, *batch.passes(directory / "report.json"), "-o", ranks])
    output = execution.run([execution.get_tool(tools, "tp-opt"), ranks, "-o", "/dev/null",
                            f"--tp-verify-spmd=reference={model} always-execute"])
    if not re.search("' is proven for", output):
        raise execution.Failure(f"not proven: {output}")
    return bool(re.search("is executed for", output))


def main():
    parser = execution.get_parser(__doc__, batches=10)
    parser.add_argument("--graphs", type=int, default=12, help="random graphs a batch")
    parser.add_argument("--cases", type=int, default=12, help="single-op cases a batch")
    options = parser.parse_args()
    failures = count = executed = 0
    sharded.MESHES = MESHES
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.first, options.first + options.batches):
            source = random.Random(f"{options.seed}/{number}")
            generator = torch.Generator().manual_seed(source.getrandbits(60))
            batch = sharded.draw_batch(options, source, generator)
            count += len(batch.programs)
            try:
                executed += verify(batch, options.tools, (options.keep or Path(scratch)) / str(number))
            except execution.Failure as failure:
                failures += 1
                print(f"FAIL --seed {options.seed} --first {number} --batches 1: {failure}", flush=True)
    print(f"{options.batches - failures} of {options.batches} batches ({count} programs) are proven, {executed} executed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
