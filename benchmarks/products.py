#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products by weights on two ranks: bf16 beside f32, one row beside a plain read of the weights, and the memory that GPT-2 takes.

The products are those of MLPs, whose weights don't fit into caches. They take turns with what they are compared with, and a figure is
the median over the rounds of each round's median. Exits with 1 where a row misses its goal, or where results differ."""

import argparse
import json
import math
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import minilm_vs_torch
import short
import tp_tools
from gpt2 import model as gpt2

RANKS = 2
GOALS = {"bf16": 0.6, "one row": 1.15, "memory": 1.1}
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}  # relative to the largest value
MLP_PLAN = f"mesh: {{tp: {RANKS}}}\nplan:\n  layers.*.up: ColwiseParallel\n  layers.*.down: RowwiseParallel\n"
HEADER = struct.Struct("<8sIIQQII")  # tprt_artifact_header


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return self.down(self.up(x))


class Products(nn.Module):
    """f32 rows in and out, multiplied in another type."""

    def __init__(self, width, layers, dtype):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers)).to(dtype)
        self.dtype = dtype

    def forward(self, x):
        y = x.to(self.dtype)
        for layer in self.layers:
            y = layer(y)
        return y.to(torch.float32)


class LastToken(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = gpt2.build(config)

    def forward(self, ids):
        return self.model(ids)[:, -1]


def compile_model(module, inputs, plan, folder, arguments):
    tools = tp_tools.Tools(arguments.bin, folder, echo=False)
    tp_tools.save_exported(module, inputs, folder / "model.pt2")
    (folder / "plan.yaml").write_text(plan)
    return tools.import_model(folder / "model.pt2", inputs).compile(folder / "plan.yaml", folder)


class Rows:
    """So many rows times the weights of the MLPs."""

    def __init__(self, rows, dtype, arguments):
        torch.manual_seed(0)
        module = Products(arguments.width, arguments.layers, dtype).eval()
        inputs = {"x": torch.randn(rows, arguments.width)}
        self.bytes = sum(value.numel() * value.element_size() for value in module.parameters())
        name = str(dtype).removeprefix("torch.")
        self.artifact = compile_model(module, inputs, MLP_PLAN, arguments.out / f"{name}-{rows}", arguments)
        with torch.inference_mode():
            difference = tp_tools.relative_difference(self.artifact.run("--gemm=tiles"), module(**inputs).numpy())
        if not difference < TOLERANCE[dtype]:
            sys.exit(f"error: {rows} rows in {name} differ from PyTorch by {difference:.1e}")

    def measure(self, runs):
        self.artifact.run("--gemm=tiles", "--warmup", "2", "--repeat", str(runs))
        return self.artifact.executed["seconds"]["median"]


def read_plainly(buffer, runs):
    """Median seconds in which as many threads as ranks add up the buffer."""
    seconds = []
    for _ in range(runs + 2):
        start = time.perf_counter()
        buffer.sum()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


def print_row(name, unit, theirs, ours, goal):
    ratio = ours / theirs
    print(f"{name:<62} {theirs:>9.1f} {ours:>9.1f} {unit:<3} {ratio:>6.2f} {goal:>5}{'  missed' if ratio > goal else ''}", flush=True)
    return ratio > goal


def measure_products(arguments):
    works = {(rows, dtype): Rows(rows, dtype, arguments) for rows in (1, arguments.rows) for dtype in TOLERANCE}
    buffers = {dtype: torch.ones(works[1, dtype].bytes // 4) for dtype in TOLERANCE}
    times = {key: [] for key in works}
    reads = {dtype: [] for dtype in TOLERANCE}
    for _ in range(arguments.rounds):
        for key, work in works.items():
            times[key].append(work.measure(arguments.runs))
        for dtype, buffer in buffers.items():
            reads[dtype].append(read_plainly(buffer, arguments.runs))
    median = {key: statistics.median(values) * 1e3 for key, values in times.items()}
    missed = [print_row(f"bf16 beside f32, {arguments.rows} rows", "ms", median[arguments.rows, torch.float32],
                        median[arguments.rows, torch.bfloat16], GOALS["bf16"])]
    for dtype, values in reads.items():
        name = f"one row in {str(dtype).removeprefix('torch.')} beside a read of {works[1, dtype].bytes >> 20} MiB"
        missed.append(print_row(name, "ms", statistics.median(values) * 1e3, median[1, dtype], GOALS["one row"]))
    return missed


def count_shards(artifact):
    """Bytes of the distinct blocks of the parameters of an artifact."""
    content = artifact.read_bytes()
    size = HEADER.unpack_from(content)[3]
    total = 0
    for tensor in json.loads(content[HEADER.size:HEADER.size + size])["parameters"]:
        width = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2}.get(tensor["dtype"], 1)
        blocks = {json.dumps(block) for block in tensor["shards"]}
        total += sum(width * math.prod(sum(pieces[1::2]) for pieces in json.loads(block)) for block in blocks)
    return total


def measure_private(command):
    """The most private memory, in bytes, that a command has while it runs."""
    most = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            for line in status.read_text().splitlines():
                if line.startswith("RssAnon:"):
                    most = max(most, int(line.split()[1]) << 10)
            time.sleep(0.002)
    if process.returncode:
        sys.exit(f"error: tp-run failed with exit code {process.returncode}")
    return most


def measure_memory(arguments):
    """GPT-2 124M. Its replicated head shares the embedding's weight."""
    config = gpt2.Config(vocab_size=1000) if arguments.short else gpt2.Config(768, 12, 12, 50257, 1024)
    inputs = {"ids": torch.randint(0, config.vocab_size, (1, min(512, config.max_seq_len)))}
    plan = (ROOT / "examples/gpt2/plan.yaml").read_text().replace("  h.", "  model.h.")
    folder = arguments.out / "gpt2"
    model = LastToken(config).eval()
    artifact = compile_model(model, inputs, plan, folder, arguments)
    with torch.inference_mode():
        difference = tp_tools.relative_difference(artifact.run("--gemm=tiles"), model(**inputs).numpy())
    if not difference < TOLERANCE[torch.float32]:
        sys.exit(f"error: GPT-2 differs from PyTorch by {difference:.1e}")
    arenas = RANKS * artifact.executed["arena_bytes"]
    private = measure_private([Path(arguments.bin) / "tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors", "--input",
                               f"ids={folder / 'ids.npy'}", "--gemm=tiles", "--repeat", "3"])
    shards = count_shards(folder / "model.tpx")
    packed, copied = (artifact.executed[name] / 1e6 for name in ("packed_weight_bytes", "copied_weight_bytes"))
    missed = print_row("private memory of GPT-2, 512 tokens, beside shards and arenas", "MB", (shards + arenas) / 1e6, private / 1e6,
                       GOALS["memory"])
    print(f"  shards {shards / 1e6:.0f} MB, arenas {arenas / 1e6:.0f} MB; packed {packed:.0f} MB, copied {copied:.0f} MB")
    return [missed]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "products-benchmark")
    parser.add_argument("--only", choices=["products", "memory"], nargs="+", default=["products", "memory"])
    parser.add_argument("--width", type=int, default=1024, help="of the MLPs (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=8, help="MLPs (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=512, help="of the large products (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="runs of each side in a turn (default: %(default)s)")
    short.add_option(parser, width=64, layers=1, rows=16, rounds=1, runs=1)
    arguments = parser.parse_args()
    torch.set_num_threads(RANKS)
    minilm_vs_torch.print_environment()
    print(f"{'':<62} {'other':>9} {'tp-mlir':>9} {'':<3} {'ratio':>6} {'goal':>5}")
    missed = measure_products(arguments) if "products" in arguments.only else []
    if "memory" in arguments.only:
        missed += measure_memory(arguments)
    return any(missed) and not arguments.short


if __name__ == "__main__":
    sys.exit(main())
