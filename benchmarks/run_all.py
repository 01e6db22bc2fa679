#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every row of docs/Performance.md: time tp-mlir beside what one would otherwise use, and print each ratio with its goal.

Each round runs everything once, one after the other, so that all see the same machine; a figure is the median over the
rounds of each round's median. Nothing else should run meanwhile. Exits with 1 where a row misses its goal, or where results
differ. --docs writes the table into docs/Performance.md."""

import argparse
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "examples"))
import all_reduce
import minilm_vs_torch
import overhead
import short
import tp_tools
import training_peers
import training_step

RANKS = 2
BEGIN, END = "<!-- begin: run_all.py -->\n", "<!-- end: run_all.py -->\n"
MINILM = [(8, 128, 0.9), (1, 16, 0.4)]  # sentences, tokens, goal
TOLERANCE = 1e-4  # of losses and outputs, relative
PEERS = {"dtensor": "PyTorch DTensor over gloo, 2 ranks", "megatron": "Megatron's sharding by hand in PyTorch, 2 ranks",
         "single": "PyTorch eager, 1 process, 2 threads"}


@dataclass
class Row:
    """`ours` may take `goal` times what `peer` takes, or `goal` seconds where there is no ratio to hold."""
    work: str
    name: str
    ours: str
    peer: str
    goal: float
    is_absolute: bool = False


def get_rows(has_mpi):
    llama = f"Llama-style forward, {training_peers.LAYERS} layers, d {training_peers.DIM}, 2 × 256 tokens, 2 ranks"
    rows = [Row(llama, PEERS[mode], "forward", f"forward {mode}", goal)
            for mode, goal in (("dtensor", 0.65), ("megatron", 0.75), ("single", 0.95))]
    rows.append(Row(llama, "its GEMMs alone, OpenBLAS, 2 threads", "forward", "gemms", 1.15))
    rows += [Row("its training step, AdamW", PEERS[mode], "step", f"step {mode}", goal)
             for mode, goal in (("dtensor", 0.65), ("megatron", 0.8), ("single", 0.95))]
    rows += [Row(f"MiniLM, {batch} × {length} tokens, 2 ranks", "PyTorch eager, 2 threads", f"minilm {batch}",
                 f"minilm {batch} torch", goal) for batch, length, goal in MINILM]
    rows.append(Row("run-time overhead of an op beside the kernels", "DTensor's dispatch", "overhead",
                    "overhead dtensor", overhead.GOAL, is_absolute=True))
    for size in all_reduce.SIZES:
        work = f"all-reduce of {size >> 10} KiB, 2 ranks"
        rows.append(Row(work, "gloo", f"all-reduce {size} tp-mlir", f"all-reduce {size} gloo", all_reduce.GOALS["gloo"]))
        if has_mpi:
            rows.append(Row(work, "Open MPI", f"all-reduce {size} tp-mlir", f"all-reduce {size} Open MPI",
                            all_reduce.GOALS["Open MPI"]))
    return rows





class Llama:
    """The decoder of training_peers.py: its forward pass and its training step."""

    def __init__(self, folders):
        imported = training_step.import_decoder(folders)
        self.forward = imported.compile(folders.out / "plan.yaml", folders.out / "forward")
        self.step, self.data = training_step.compile_step(imported)

    def measure(self, runs, steps):
        y = self.forward.run("--warmup", "3", "--repeat", str(runs))
        times = {"forward": self.forward.executed["seconds"]["median"]}
        losses = {"forward": np.square(y).mean()}
        ours = training_step.run_ranks(self.step, self.data, training_step.WARMUP + steps)
        times["step"] = statistics.median(ours["seconds"][training_step.WARMUP:])
        for mode in PEERS:
            for what, number, options in (("forward", runs, ["--forward"]), ("step", steps, [])):
                peer = training_step.run_peer(mode, training_step.WARMUP + number, *options)
                times[f"{what} {mode}"] = statistics.median(peer["seconds"][training_step.WARMUP:])
                reference = losses["forward"] if what == "forward" else np.array(ours["losses"])
                if not tp_tools.relative_difference(np.array(peer["losses"][-1 if what == "forward" else slice(None)]),
                                                    np.array(reference)) <= TOLERANCE:
                    sys.exit(f"error: {what}: the results of {PEERS[mode]} and tp-mlir differ")
        return times


class MiniLM:
    """all-MiniLM-L6-v2 on one batch."""

    def __init__(self, folders, batch, length):
        out = folders.out / f"minilm-{batch}x{length}"
        self.encoder = minilm_vs_torch.model.build("sdpa")
        self.inputs, self.name = minilm_vs_torch.batch(batch, length), f"minilm {batch}"
        tools = tp_tools.Tools(folders.bin, out, echo=False)
        tp_tools.save_torchscript(self.encoder, self.inputs, out / "model.pt")
        imported = tools.import_model(out / "model.pt", self.inputs)
        self.artifact = imported.shard(ROOT / "examples/minilm/plan.yaml", RANKS)

    def measure(self, runs):
        times = {f"{self.name} torch": minilm_vs_torch.time_torch(self.encoder, self.inputs, runs),
                 self.name: minilm_vs_torch.time_ranks(self.artifact, runs)}
        with torch.inference_mode():
            expected = self.encoder(**self.inputs).numpy()
        if not tp_tools.relative_difference(np.load(self.artifact.folder / "y.npy"), expected) <= TOLERANCE:
            sys.exit(f"error: {self.name}: the results of PyTorch and tp-mlir differ")
        return times


def measure_gemms(runs):
    done = subprocess.run([sys.executable, HERE / "gemms.py", str(3 + runs)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return {"gemms": statistics.median(list(map(float, done.stdout.split()))[3:])}


def measure_all_reduces(programs):
    return {f"all-reduce {size} {name}": seconds for name in programs.names
            for size, seconds in programs.measure(name).items()}


def format_seconds(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def make_table(rows, times):
    """Markdown, and the rows that miss their goals."""
    lines = ["| work | compared with | tp-mlir | other | ratio | goal | met |", "|---|---|---|---|---|---|---|"]
    failed = []
    for row in rows:
        ours, peer = (statistics.median(times[name]) for name in (row.ours, row.peer))
        is_met = (ours if row.is_absolute else ours / peer) <= row.goal
        if not is_met:
            failed.append(row)
        ratio = ours / peer
        lines.append(f"| {row.work} | {row.name} | {format_seconds(ours)} | {format_seconds(peer)} |"
                     f" {f'{ratio:.2f}×' if ratio >= 0.01 else f'{ratio:.4f}×'} |"
                     f" {format_seconds(row.goal) if row.is_absolute else f'{row.goal}×'} |"
                     f" {'yes' if is_met else 'no'} |")
    return "\n".join(lines) + "\n", failed


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "run_all")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=20,
                        help="forward passes of each side in a turn (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10,
                        help="training steps of each side in a turn (default: %(default)s)")
    parser.add_argument("--docs", type=Path, nargs="?", const=ROOT / "docs/Performance.md",
                        help="write the table into this file (%(const)s)")
    short.add_option(parser, rounds=1, runs=1, steps=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(RANKS)
    minilm_vs_torch.print_environment()
    llama = Llama(arguments)
    encoders = [MiniLM(arguments, batch, length) for batch, length, _ in MINILM]
    operations = overhead.Overhead(arguments.out / "overhead", arguments.bin.resolve())
    reductions = all_reduce.AllReduce(arguments.bin.resolve().parent)
    if not reductions.has_mpi:
        print(f"note: {all_reduce.MISSING_MPI}")
    times = {}
    for turn in range(arguments.rounds):
        measured = llama.measure(arguments.runs, arguments.steps) | measure_gemms(arguments.runs)
        for encoder in encoders:
            measured |= encoder.measure(arguments.runs)
        measured |= {"overhead": operations.measure(), "overhead dtensor": operations.measure_dtensor()}
        measured |= measure_all_reduces(reductions)
        for name, seconds in measured.items():
            times.setdefault(name, []).append(seconds)
        print(f"round {turn + 1}: " + ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in measured.items()),
              flush=True)
    table, failed = make_table(get_rows(reductions.has_mpi), times)
    print("\n" + table)
    if arguments.docs:
        head, rest = arguments.docs.read_text().split(BEGIN)
        arguments.docs.write_text(head + BEGIN + table + END + rest.split(END)[1])
    for row in failed:
        print(f"error: {row.work} against {row.name} misses its goal", file=sys.stderr)
    return 1 if failed and not arguments.short else 0


if __name__ == "__main__":
    sys.exit(main())
