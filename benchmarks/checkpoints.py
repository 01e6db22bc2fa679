#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time the steps of a training over two ranks while a checkpoint is written beside them (`--checkpoint-async`), and what a
checkpoint makes the training wait, with the option and without it.

The model is a chain of square linear layers, trained with AdamW in f32, so a checkpoint has three times the bytes of its weights. Each
round trains with both kinds of checkpoints, one after the other. A step counts as one beside which a checkpoint is written if
the checkpoint's temporary folder was there for at least half of the step's time, and as one without if it wasn't there at all; the
ratio is that of the medians, of the same trainings. The wait for a checkpoint is the time between two steps. Exits with 1
where a training's losses differ from the other's, or with --check where the ratio is above its goal."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import short

ROOT = Path(__file__).resolve().parent.parent
RANKS = 2
GOAL = 1.1
LOOK = 2e-3  # seconds between looks at the folder and the metrics
KINDS = {"beside": ["--checkpoint-async"], "between": []}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="folder of the tools (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "build/examples/checkpoints",
                        help="folder for all files that are made (default: %(default)s)")
    parser.add_argument("--width", type=int, default=1024, help="of the layers (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=16, help="(default: %(default)s)")
    parser.add_argument("--rows", type=int, default=16, help="of a batch (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=90, help="of a training (default: %(default)s)")
    parser.add_argument("--every", type=int, default=30, help="steps between checkpoints (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help=f"exit with 1 where the ratio is above {GOAL}")
    short.add_option(parser, width=64, layers=4, rows=8, rounds=1, steps=12, every=4)
    return parser.parse_args()


def write_model(arguments):
    """The model, its plan and its data, in the folder."""
    x, weight = (f"tensor<{rows}x{arguments.width}xf32>" for rows in (arguments.rows, arguments.width))
    lines = [f'func.func @main(%h0: {x} {{tp.name = "x"}}) -> {x} {{']
    plan = [f"mesh: {{tp: {RANKS}}}", "plan:"]
    for i in range(arguments.layers):
        style = "RowwiseParallel" if i % 2 else "ColwiseParallel"
        plan.append(f"  layers.{i}: {style}")
        lines.append(f"""  %h{i + 1} = nn.module "layers.{i}" class "Linear" (%h{i} as "input" at 0) {{
  ^bb0(%a: {x}):
    %w = nn.parameter "layers.{i}.weight" : {weight}
    %y = nn.linear %a, %w : ({x}, {weight}) -> {x}
    nn.yield %y : {x}
  }} : ({x}) -> {x}""")
    lines += [f"  return %h{arguments.layers} : {x}", "}", ""]
    (arguments.out / "model.mlir").write_text("\n".join(lines))
    (arguments.out / "plan.yaml").write_text("\n".join(plan) + "\n")
    (arguments.out / "train.yaml").write_text("loss: mse\noptimizer: {name: AdamW, lr: 0.0001}\n")
    numbers = np.random.default_rng(0)
    for name in ("x", "target"):
        np.save(arguments.out / f"{name}.npy", numbers.standard_normal((arguments.rows, arguments.width)).astype(np.float32))


def call(arguments, *command):
    process = subprocess.run([arguments.bin / command[0], *command[1:]], cwd=arguments.out, capture_output=True, text=True)
    if process.returncode:
        sys.exit(process.stderr)


def train(arguments, kind):
    """Trains once. The losses, the steps' seconds with a checkpoint beside them and without, and the seconds between steps at
    each checkpoint."""
    run = arguments.out / "run"
    metrics = arguments.out / "metrics.jsonl"
    shutil.rmtree(run, ignore_errors=True)
    metrics.unlink(missing_ok=True)
    process = subprocess.Popen(
        [arguments.bin / "tp-run", "train.tpx", "--random", "1", "--data", "x=x.npy", "--data", "target=target.npy",
         "--steps", str(arguments.steps), "--checkpoint-dir", "run", "--checkpoint-every", str(arguments.every),
         "--checkpoint-keep", "1", "--resume", "never", "--metrics", "metrics.jsonl", "--quiet", *KINDS[kind]],
        cwd=arguments.out, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    writes, begun = [], None  # when a temporary folder of a checkpoint was there
    ends, read = [], 0  # when each step ended
    while True:
        is_over = process.poll() is not None
        now = time.monotonic()
        is_written = run.exists() and any(".tmp-" in name for name in os.listdir(run))
        if is_written and begun is None:
            begun = now
        elif not is_written and begun is not None:
            writes.append((begun, now))
            begun = None
        if metrics.exists() and metrics.stat().st_size > read:
            with open(metrics) as file:
                file.seek(read)
                text = file.read()
            ends += [now] * text.count("\n")
            read += len(text)
        if is_over:
            break
        time.sleep(LOOK)
    if process.returncode:
        sys.exit(process.stderr.read())
    steps = [json.loads(line) for line in metrics.read_text().splitlines()]
    spans = [(end - step["seconds"], end) for step, end in zip(steps, ends)]
    beside, alone, waits = [], [], []
    for number, (begin, end) in enumerate(spans, 1):
        if number <= 2:  # the first ones allocate memory
            continue
        seconds = steps[number - 1]["seconds"]
        covered = sum(max(0, min(end, last) - max(begin, first)) for first, last in writes)
        if covered >= seconds / 2:
            beside.append(seconds)
        elif covered == 0:
            alone.append(seconds)
        if (number - 1) % arguments.every == 0:
            waits.append(begin - spans[number - 2][1])
    return [step["loss"] for step in steps], beside, alone, waits


def format_median(seconds):
    return f"{statistics.median(seconds) * 1e3:.1f} ms (of {len(seconds)})" if seconds else "none were seen"


def main():
    arguments = parse_arguments()
    arguments.bin, arguments.out = arguments.bin.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_model(arguments)
    call(arguments, "tp-opt", "model.mlir", "--tp-parallelize=plan=plan.yaml train=train.yaml", "-o", "ranks.mlir")
    call(arguments, "tp-compile", "ranks.mlir", "-o", "train.tpx")
    print(f"{arguments.layers} layers of width {arguments.width}, {arguments.rows} rows, AdamW, f32, {RANKS} ranks; checkpoints of "
          f"{3 * 4e-6 * arguments.layers * arguments.width ** 2:.1f} MB; {arguments.rounds} rounds of {arguments.steps} steps",
          flush=True)
    found = {kind: ([], [], []) for kind in KINDS}
    losses = {}
    for _ in range(arguments.rounds):
        for kind in KINDS:
            loss, *seconds = train(arguments, kind)
            if losses.setdefault("first", loss) != loss:
                sys.exit("error: the losses differ")
            for all_seconds, more in zip(found[kind], seconds):
                all_seconds += more
    beside, alone, waits = found["beside"]
    print(f"a step without a checkpoint: {format_median(alone)}")
    print(f"a step beside which one is written: {format_median(beside)}")
    print(f"the wait for a checkpoint beside the steps: {format_median(waits)}")
    print(f"the wait for one between the steps: {format_median(found['between'][2])}")
    if not beside or not alone:
        if not arguments.short:
            sys.exit("error: no step was as long as it had to be; give larger layers or fewer rows")
        return
    ratio = statistics.median(beside) / statistics.median(alone)
    print(f"a step beside which one is written takes {ratio:.2f} times as long (goal: {GOAL})")
    if arguments.check and ratio > GOAL:
        sys.exit(1)


if __name__ == "__main__":
    main()
