#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time training steps of a Llama-style model (4 layers, 2 × 256 tokens, AdamW, f32) over two ranks, with collectives in place and
with collectives that run beside computation (`overlap`, and `chunks`), by tp-run.

Each round runs all programs, one after the other. The table has the median over the rounds of each round's median, and the time of
collectives per step and rank, recorded in a separate run: `exposed`, in which the rank does nothing else, and the part of it that is
`waiting`, until the last rank has arrived. With --noise a process takes one of the ranks' cores for 2 ms, the other one 8 ms later,
and so on, so that ranks have to wait for each other.

All products are computed in tiles (`tp-run --gemm=tiles`), so that both programs of a pair compute them in the same way. Their losses
are then equal bit for bit, except with `chunks`: a weight's gradient is the sum of the chunks' gradients, in their order, instead of
one sum over all tokens, and the relative difference of losses is below 1e-6. Exits with 1 if losses differ by more."""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import short
import tp_tools
import training_peers
from minilm_vs_torch import print_environment
from training_step import PLAN, RANKS, TRAINING, WARMUP

BUSY, IDLE = 2e-3, 8e-3  # seconds
DATA_PARALLEL = "mesh: {{dp: {ranks}}}\ndata_parallel: {{dp: {{style: {style}}}}}\n"
PLANS = {
    "fsdp": DATA_PARALLEL.format(ranks=RANKS, style="fsdp"),
    "ddp": DATA_PARALLEL.format(ranks=RANKS, style="ddp"),
    "tp": PLAN,
}
# What is compared: a plan, options of both sides, those of the side that overlaps, and by how much losses may differ, relative.
PROGRAMS = {
    "FSDP": ("fsdp", "", "overlap", 0),
    "DDP": ("ddp", "", "overlap", 0),
    "sequence parallel, 2 chunks": ("tp", "sequence-parallel", "overlap chunks=2", 1e-6),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "overlap")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=12,
                        help=f"steps of each program in a turn, after {WARMUP} that don't count (default: %(default)s)")
    parser.add_argument("--noise", action="store_true", help="take the ranks' cores in turn")
    short.add_option(parser, rounds=1, steps=1)
    return parser.parse_args()


def make_noise():
    cores = sorted(os.sched_getaffinity(0))[:RANKS]
    while True:
        for core in cores:
            os.sched_setaffinity(0, [core])
            end = time.perf_counter() + BUSY
            while time.perf_counter() < end:
                pass
            time.sleep(IDLE)


def compile_programs(arguments):
    """The programs, both sides of each, by name, and the options that give them their data."""
    model, x = training_peers.build()
    tools = tp_tools.Tools(arguments.bin, arguments.out, echo=False)
    tp_tools.save_torchscript(model, {"x": x}, tools.out / "model.pt")
    imported = tools.import_model(tools.out / "model.pt", {"x": x})
    (tools.out / "train.yaml").write_text(TRAINING)
    np.save(tools.out / "target.npy", np.zeros(tuple(x.shape), np.float32))
    programs = {}
    for name, (plan, both, overlapping, _) in PROGRAMS.items():
        path = tools.out / f"{plan}.yaml"
        path.write_text(PLANS[plan])
        for side, options in (("plain", both), ("overlap", f"{both} {overlapping}")):
            programs[name, side] = imported.compile(path, tools.out / f"{plan}-{side}",
                                                    f"train={tools.out / 'train.yaml'}", options)
    data = ["--data", f"x={tools.out / 'x.npy'}", "--data", f"target={tools.out / 'target.npy'}", "--no-shuffle",
            "--gemm=tiles"]
    return programs, data


def get_exposed(program, data, steps):
    """Seconds of collectives and of waiting in them, per step and rank, of a recorded run."""
    trace = program.folder / "trace.json"
    program.train(steps, *data, "--trace", trace)
    slices = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "collective"
              and event["ph"] == "X"]
    arrived = {}
    for event in slices:
        call = event["args"]["run"], event["args"]["id"]
        arrived[call] = max(arrived.get(call, 0), event["ts"])
    seconds = waiting = 0
    for event in slices:
        exposed = event["args"].get("waited_us", event["dur"])
        end = event["ts"] + event["dur"]
        begin = end - exposed
        seconds += exposed
        waiting += max(0, min(arrived[event["args"]["run"], event["args"]["id"]], end) - begin)
    return seconds * 1e-6 / steps / RANKS, waiting * 1e-6 / steps / RANKS


def main():
    arguments = parse_arguments()
    programs, data = compile_programs(arguments)
    print_environment()
    print(f"{training_peers.LAYERS} layers, {training_peers.BATCH} × {training_peers.LENGTH} tokens, AdamW, f32,"
          f" {arguments.rounds} rounds of {arguments.steps} steps", flush=True)
    noise = multiprocessing.Process(target=make_noise, daemon=True)
    if arguments.noise:
        noise.start()
    rounds = {key: [] for key in programs}
    exposed = {key: [] for key in programs}
    for turn in range(arguments.rounds):
        losses = {}
        for key, program in programs.items():
            metrics = program.train(WARMUP + arguments.steps, *data)
            rounds[key].append(statistics.median(row["seconds"] for row in metrics[WARMUP:]))
            losses[key] = [row["loss"] for row in metrics]
            exposed[key].append(get_exposed(program, data, arguments.steps))
        print(f"round {turn + 1}: " + ", ".join(f"{name} {side} {rounds[name, side][-1] * 1e3:.1f} ms"
                                                for name, side in programs), flush=True)
        wrong = [name for name, (*_, tolerance) in PROGRAMS.items()
                 if any(abs(a - b) > tolerance * abs(a) for a, b in zip(losses[name, "plain"], losses[name, "overlap"]))]
        if wrong:
            sys.exit(f"error: losses of {', '.join(wrong)} differ where collectives overlap")
    print(f"\n{'':<28} {'plain ms':>9} {'exposed':>8} {'waiting':>8} {'overlap ms':>11} {'exposed':>8} {'waiting':>8} {'ratio':>7}")
    for name in PROGRAMS:
        line = f"{name:<28}"
        for side, width in (("plain", 9), ("overlap", 11)):
            median = statistics.median(rounds[name, side])
            shares = [statistics.median(values) for values in zip(*exposed[name, side])]
            line += f" {median * 1e3:>{width}.1f}" + "".join(f" {share * 1e3:>8.1f}" for share in shares)
        ratio = statistics.median(b / a for a, b in zip(rounds[name, "plain"], rounds[name, "overlap"]))
        print(f"{line} {ratio:>6.2f}×")
    if arguments.noise:
        noise.terminate()


if __name__ == "__main__":
    main()
