#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time all-reduces of f32 in place over two ranks: the `local` backend of libtprt, gloo (torch.distributed) and Open MPI.

Each round runs all of them, one after the other; the table has the median over the rounds of the median time of a call. Open MPI
is left out where it isn't installed (Debian: openmpi-bin, libopenmpi-dev). Exits with 1 where a ratio is above its goal."""

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import leaving
import short

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
RANKS = 2
SIZES = {4 << 10: 3000, 2 << 20: 200}  # bytes, and calls in a round
GOALS = {"gloo": 0.3, "Open MPI": 0.7}
MISSING_MPI = "Open MPI isn't installed (Debian: openmpi-bin, libopenmpi-dev); its rows are left out"


def run(command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode:
        sys.exit(f"{done.stderr}error: '{Path(command[0]).name}' failed with exit code {done.returncode}")
    return done.stdout


class AllReduce:
    """The programs that are timed: ours of the build tree `build`, and Open MPI's, which is compiled there."""

    def __init__(self, build):
        folder = build.resolve() / "benchmarks"
        self.ours, self.mpi = folder / "tp-bench-all-reduce", folder / "all_reduce_mpi"
        if not self.ours.exists():
            sys.exit(f"error: there is no '{self.ours}': build the target tp-bench-all-reduce, or name another build tree")
        self.has_mpi = bool(shutil.which("mpicc") and shutil.which("mpirun"))
        if self.has_mpi:
            run(["mpicc", "-O2", HERE / "all_reduce_mpi.c", "-o", self.mpi])
        self.names = ["tp-mlir", "gloo"] + ["Open MPI"] * self.has_mpi

    def measure(self, name):
        """Seconds of a call, by size."""
        sizes = [str(number) for item in SIZES.items() for number in item]
        if name == "tp-mlir":
            output = run([self.ours, RANKS, *sizes])
        elif name == "Open MPI":
            root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
            output = run(["mpirun", *root, "-n", RANKS, self.mpi, *sizes])
        else:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            output = run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", RANKS,
                          "--master-addr", "127.0.0.1", "--master-port", port, __file__, "--gloo"], OMP_NUM_THREADS="1")
        return dict(zip(SIZES, map(float, output.split())))


def run_gloo():
    """One rank of gloo; prints as the other programs do."""
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    for size, calls in SIZES.items():
        data = torch.zeros(size // 4)
        calls //= 10  # it is slow
        seconds = []
        for call in range(-calls // 5, calls):
            start = time.perf_counter()
            dist.all_reduce(data)
            if call >= 0:
                seconds.append(time.perf_counter() - start)
        if dist.get_rank() == 0:
            print(f"{statistics.median(seconds):.9f}")
    leaving.leave()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build tree (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="turns (default: %(default)s)")
    parser.add_argument("--gloo", action="store_true", help=argparse.SUPPRESS)
    short.add_option(parser, rounds=1)
    arguments = parser.parse_args()
    if arguments.gloo:
        return run_gloo()
    programs = AllReduce(arguments.build)
    if not programs.has_mpi:
        print(f"note: {MISSING_MPI}")
    rounds = {name: [] for name in programs.names}
    for _ in range(arguments.rounds):
        for name in programs.names:
            rounds[name].append(programs.measure(name))
    missed = False
    print(f"{'bytes':>8}  {'':<10} {'median us':>10} {'min':>9} {'max':>9} {'tp-mlir is':>12} {'goal':>6}")
    for size in SIZES:
        ours = statistics.median(times[size] for times in rounds["tp-mlir"])
        for name, values in rounds.items():
            times = [value[size] for value in values]
            ratio, goal = ours / statistics.median(times), GOALS.get(name)
            missed |= goal is not None and ratio > goal
            print(f"{size:>8}  {name:<10} {statistics.median(times) * 1e6:>10.2f} {min(times) * 1e6:>9.2f}"
                  f" {max(times) * 1e6:>9.2f} {ratio:>11.2f}× {f'{goal}×' if goal else '':>6}")
    return 1 if missed and not arguments.short else 0


if __name__ == "__main__":
    sys.exit(main())
