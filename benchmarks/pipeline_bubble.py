#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bubble of a pipeline: training steps of a Llama-style model (4 layers, 2 × 256 tokens in a microbatch, AdamW, f32) in stages
over two ranks, with each schedule, by tp-run.

Each round runs all programs, one after the other. The table has the median over the rounds of each round's median step, and the share
of its time in which ranks wait for each other: predicted for a machine, by default this one as `tp-run --calibrate` describes it at
the start, and measured, recorded in a separate run. Without other loss of time, (n − 1) / (m + n − 1) of the time of 1F1B with n ranks
and m microbatches is waiting. All products are computed in tiles (`tp-run --gemm=tiles`). Exits with 1 if losses differ: all schedules
add up gradients in the same order.

    .venv/bin/python benchmarks/pipeline_bubble.py
"""

import argparse
import statistics
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import short
import tp_tools
import training_peers
from minilm_vs_torch import print_environment
from overlap import get_exposed
from training_step import RANKS, TRAINING

WARMUP = 1  # steps of a run that don't count
TOLERANCE = 1e-6  # of losses, relative
# By name: the schedule, and the number of stages per rank.
PROGRAMS = {
    "GPipe": ("GPipe", 1),
    "1F1B": ("1F1B", 1),
    "interleaved 1F1B": ("Interleaved1F1B", 2),
    "zero bubble": ("InterleavedZeroBubble", 1),
    "interleaved zero bubble": ("InterleavedZeroBubble", 2),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "pipeline_bubble")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=6,
                        help=f"steps of each program in a turn, after {WARMUP} that doesn't count (default: %(default)s)")
    parser.add_argument("--microbatches", type=int, default=4, help="of a step (default: %(default)s)")
    parser.add_argument("--machine", help="a description or preset; calibrated at the start by default")
    short.add_option(parser, rounds=1, steps=1, microbatches=2, machine="cpu")
    return parser.parse_args()


def compile_programs(arguments):
    """The programs by name, and the options that give them their data."""
    model, x = training_peers.build()
    tools = tp_tools.Tools(arguments.bin, arguments.out, echo=False)
    tp_tools.save_torchscript(model, {"x": x}, tools.out / "model.pt")
    imported = tools.import_model(tools.out / "model.pt", {"x": x})
    machine = arguments.machine
    if not machine:
        machine = tools.out / "machine.json"
        tools.call("tp-run", "--calibrate", machine)
    (tools.out / "train.yaml").write_text(TRAINING)
    batch = np.concatenate([x.numpy()] * arguments.microbatches)
    np.save(tools.out / "batch.npy", batch)
    np.save(tools.out / "target.npy", np.zeros_like(batch))
    programs = {}
    for name, (schedule, stages) in PROGRAMS.items():
        count = RANKS * stages
        split = ", ".join(f"layers.{training_peers.LAYERS * stage // count}" for stage in range(1, count))
        folder = tools.out / name.replace(" ", "-")
        folder.mkdir(exist_ok=True)
        path = folder / "plan.yaml"
        path.write_text(f"mesh: {{pp: {RANKS}}}\npipeline: {{pp: {{split: [{split}], schedule: {schedule}, "
                        f"microbatches: {arguments.microbatches}}}}}\n")
        programs[name] = imported.compile(path, folder, f"train={tools.out / 'train.yaml'}", f"machine={machine}")
    data = ["--data", f"x={tools.out / 'batch.npy'}", "--data", f"target={tools.out / 'target.npy'}", "--no-shuffle", "--gemm=tiles"]
    return programs, data


def get_predicted(program):
    """Seconds of a step, and the share in which ranks wait."""
    prediction = program.report["prediction"]
    waiting = statistics.mean(rank.prediction["waiting_seconds"] for rank in tp_tools.rank_classes.Ranks(program.report))
    return prediction["seconds"], waiting / prediction["seconds"]


def main():
    arguments = parse_arguments()
    programs, data = compile_programs(arguments)
    print_environment()
    print(f"{training_peers.LAYERS} layers over {RANKS} ranks, {arguments.microbatches} microbatches of {training_peers.BATCH} ×"
          f" {training_peers.LENGTH} tokens, AdamW, f32, {arguments.rounds} rounds of {arguments.steps} steps", flush=True)
    seconds = {name: [] for name in programs}
    shares = {name: [] for name in programs}
    for turn in range(arguments.rounds):
        losses = {}
        for name, program in programs.items():
            metrics = program.train(WARMUP + arguments.steps, *data)
            losses[name] = [row["loss"] for row in metrics]
            median = statistics.median(row["seconds"] for row in metrics[WARMUP:])
            seconds[name].append(median)
            _, waiting = get_exposed(program, data, arguments.steps)
            shares[name].append(waiting / median)
        print(f"round {turn + 1}: " + ", ".join(f"{name} {values[-1] * 1e3:.0f} ms" for name, values in seconds.items()), flush=True)
        wrong = [name for name in programs
                 if any(abs(a - b) > TOLERANCE * abs(a) for a, b in zip(losses["1F1B"], losses[name], strict=True))]
        if wrong:
            sys.exit(f"error: losses of {', '.join(wrong)} differ from those of 1F1B")
    print(f"\n{'':<24} {'predicted ms':>12} {'waiting':>8} {'measured ms':>12} {'waiting':>8} {'range':>10} {'beside 1F1B':>12}")
    for name, program in programs.items():
        predicted, share = get_predicted(program)
        measured = sorted(shares[name])
        ratio = statistics.median(b / a for a, b in zip(seconds["1F1B"], seconds[name]))
        span = f"{100 * measured[0]:.0f}–{100 * measured[-1]:.0f}%"
        print(f"{name:<24} {predicted * 1e3:>12.1f} {100 * share:>7.1f}% {statistics.median(seconds[name]) * 1e3:>12.1f}"
              f" {100 * statistics.median(measured):>7.1f}% {span:>10} {ratio:>11.2f}×")


if __name__ == "__main__":
    main()
