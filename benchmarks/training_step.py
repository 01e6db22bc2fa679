#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time the training step of a Llama-style model (4 layers, 2 × 256 tokens, AdamW, f32) over two ranks: tp-run beside
PyTorch DTensor and Megatron's scheme written by hand, both over gloo, and PyTorch in one process with two threads.

Each round runs all of them, one after the other. The table has the median over the rounds of each round's median; the
ratios are of these. Exits with 1 where the losses differ, or with --check where a ratio is above its goal."""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import short
import tp_tools
import training_peers
from minilm_vs_torch import print_environment

RANKS = 2
WARMUP = 3  # steps that don't count
TOLERANCE = 1e-4
PLAN = f"""mesh: {{tp: {RANKS}}}
plan:
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel
  layers.*.feed_forward.w[13]: ColwiseParallel
  layers.*.feed_forward.w2: RowwiseParallel
"""
TRAINING = f"""loss: {{name: mse}}
optimizer: {{name: AdamW, lr: {training_peers.LEARNING_RATE}}}
"""
NAMES = {
    "tp-mlir": f"tp-mlir, {RANKS} ranks",
    "dtensor": f"PyTorch DTensor, {RANKS} ranks",
    "megatron": f"Megatron's by hand, {RANKS} ranks",
    "single": f"PyTorch, 1 process, {RANKS} threads",
}
GOALS = {"dtensor": 0.8, "megatron": 1.0}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "training_step")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=12,
                        help=f"steps of each side in a turn, after {WARMUP} that don't count (default: %(default)s)")
    parser.add_argument("--check", action="store_true",
                        help="exit with 1 where a ratio is above "
                        + ", ".join(f"{goal} ({NAMES[name]})" for name, goal in GOALS.items()))
    short.add_option(parser, rounds=1, steps=1)
    return parser.parse_args()


def import_decoder(arguments):
    """The imported model, beside its plan."""
    model, x = training_peers.build()
    tools = tp_tools.Tools(arguments.bin, arguments.out, echo=False)
    tp_tools.save_torchscript(model, {"x": x}, tools.out / "model.pt")
    (tools.out / "plan.yaml").write_text(PLAN)
    return tools.import_model(tools.out / "model.pt", {"x": x})


def compile_step(imported):
    """The compiled step, and the options that give it its data: the loss is the mean square of the output, as its
    distance from zero."""
    tools = imported.tools
    x = np.load(tools.out / "x.npy", mmap_mode="r")
    (tools.out / "train.yaml").write_text(TRAINING)
    np.save(tools.out / "target.npy", np.zeros(x.shape, np.float32))
    step = imported.compile(tools.out / "plan.yaml", tools.out / "step", f"train={tools.out / 'train.yaml'}")
    return step, ["--data", f"x={tools.out / 'x.npy'}", "--data", f"target={tools.out / 'target.npy'}", "--no-shuffle"]


def run_ranks(step, data, steps):
    """Seconds and loss of each step, as tp-run measures them."""
    metrics = step.train(steps, *data)
    return {"seconds": [row["seconds"] for row in metrics], "losses": [row["loss"] for row in metrics]}


def run_peer(mode, steps, *options):
    """The same of PyTorch; `options` are training_peers.py's."""
    script = str(Path(training_peers.__file__))
    if mode == "single":
        command = [sys.executable, script, mode, "--threads", str(RANKS)]
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS),
                   "--master-addr", "127.0.0.1", "--master-port", str(port), script, mode]
    done = subprocess.run([*command, "--steps", str(steps), *options], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": str(RANKS if mode == "single" else 1)})
    if done.returncode:
        sys.exit(f"{done.stderr}error: {mode} failed with exit code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    arguments = parse_arguments()
    step, data = compile_step(import_decoder(arguments))
    print_environment()
    print(f"{training_peers.LAYERS} layers, {training_peers.BATCH} × {training_peers.LENGTH} tokens, AdamW, f32,"
          f" {arguments.rounds} rounds of {arguments.steps} steps", flush=True)
    steps = WARMUP + arguments.steps
    rounds = {name: [] for name in NAMES}
    for turn in range(arguments.rounds):
        losses = {}
        for name in NAMES:
            result = run_ranks(step, data, steps) if name == "tp-mlir" else run_peer(name, steps)
            rounds[name].append(statistics.median(result["seconds"][WARMUP:]))
            losses[name] = np.array(result["losses"])
        times = [f"{name} {values[-1] * 1e3:.1f} ms" for name, values in rounds.items()]
        print(f"round {turn + 1}: {', '.join(times)}", flush=True)
        wrong = [name for name in NAMES
                 if not tp_tools.relative_difference(losses[name], losses["single"]) <= TOLERANCE]
        if wrong:
            sys.exit(f"error: losses of {', '.join(wrong)} differ from PyTorch's by more than {TOLERANCE:.0e}")
    medians = {name: statistics.median(values) for name, values in rounds.items()}
    print(f"\n{'':<32} {'median ms':>10} {'min':>8} {'max':>8} {'tp-mlir is':>12} {'goal':>6}")
    missed = False
    for name, values in rounds.items():
        ratio = medians["tp-mlir"] / medians[name]
        goal = GOALS.get(name)
        missed |= goal is not None and ratio > goal
        print(f"{NAMES[name]:<32} {medians[name] * 1e3:>10.2f} {min(values) * 1e3:>8.2f} {max(values) * 1e3:>8.2f}"
              f" {ratio:>11.2f}× {f'{goal}×' if goal else '':>6}")
    sys.exit(1 if missed and arguments.check else 0)


if __name__ == "__main__":
    main()
