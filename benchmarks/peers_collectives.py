#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives and bytes of a Llama-style decoder: ours beside Shardy's, PyTorch DTensor's and Megatron's.

All shard one model (llama_graphs.py) over 8 ranks, as one tensor-parallel dimension and as 2 x 4 with data parallelism,
with and without sequence parallelism, 1 to 64 layers, forward. Bytes are what a rank receives, by the formulas of
docs/Artifact.md for all of them. Writes the table into docs/Comparison.md; exits with 1, and says where, when ours has
more collectives or bytes than any of the others.

    python3 -m venv build/peers && build/peers/bin/pip install -r requirements-peers.txt
    .venv/bin/python benchmarks/peers_collectives.py
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import short
from llama_graphs import Config, get_module

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LAYERS = (1, 2, 4, 8, 16, 32, 64)
MESHES = ((("tp", 8),), (("dp", 2), ("tp", 4)))
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def run(command):
    process = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if process.returncode:
        sys.exit(f"error: {Path(command[0]).name} failed with exit code {process.returncode}")
    return process.stdout


def get_ours(tp_opt, config):
    with tempfile.TemporaryDirectory() as folder:
        model, report = Path(folder) / "model.mlir", Path(folder) / "report.json"
        model.write_text(get_module(config))
        run([tp_opt, model, f"--tp-parallelize=report={report}", "-o", "/dev/null"])
        return [(item["kind"], item["bytes_per_rank"]) for item in json.loads(report.read_text())["collectives"]]


def get_megatron(config):
    """Shoeybi et al. (2019): an all-reduce after attention and one after the MLP. Korthikanti et al. (2022), with sequence
    parallelism: an all-gather before each of them and a reduce-scatter after."""
    size = 4 * config.batch // config.dp * config.length * config.dim
    part = (config.tp - 1) * size // config.tp
    if config.sequence:
        return [("all_gather", part), ("reduce_scatter", part)] * 2 * config.layers
    return [("all_reduce", 2 * part)] * 2 * config.layers


def get_peer(python, script, configs):
    """What `script` says of each configuration, all of them in one process."""
    arguments = [json.dumps({"layers": c.layers, "mesh": c.mesh, "sequence": c.sequence}) for c in configs]
    lines = run([python, HERE / script, *arguments]).splitlines()
    return [[tuple(item) for item in json.loads(line)["collectives"]] for line in lines if line.startswith("{")]


def sum_up(collectives):
    return len(collectives), sum(size for _, size in collectives)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tp-opt", type=Path, default=ROOT / "build/bin/tp-opt")
    parser.add_argument("--jax-python", type=Path, default=ROOT / "build/peers/bin/python",
                        help="the Python with requirements-peers.txt (default: %(default)s)")
    parser.add_argument("--torch-python", type=Path, default=sys.executable, help="the Python with PyTorch")
    parser.add_argument("--layers", type=int, nargs="+", default=LAYERS)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/Comparison.md", help="where the table goes")
    short.add_option(parser, layers=[1])
    arguments = parser.parse_args()

    configs = [Config(layers, mesh, sequence)
               for mesh, sequence, layers in itertools.product(MESHES, (False, True), arguments.layers)]
    systems = {"tp-mlir": [get_ours(arguments.tp_opt, config) for config in configs],
               "Shardy": get_peer(arguments.jax_python, "shardy_llama.py", configs),
               "DTensor": get_peer(arguments.torch_python, "dtensor_llama.py", configs),
               "Megatron": [get_megatron(config) for config in configs]}

    lines = ["| mesh | sequence parallel | layers | " + " | ".join(systems) + " |", "|---|---|---|" + "---|" * len(systems)]
    worse = []
    for i, config in enumerate(configs):
        cells = {name: sum_up(results[i]) for name, results in systems.items()}
        mesh = " × ".join(f"{name} {size}" for name, size in config.mesh)
        lines.append(f"| {mesh} | {'yes' if config.sequence else 'no'} | {config.layers} | " + " | ".join(
            f"{count}, {size / 2**20:.2f} MiB" for count, size in cells.values()) + " |")
        ours = cells.pop("tp-mlir")
        for name, (count, size) in cells.items():
            if ours[0] > count or ours[1] > size:
                worse.append(f"{mesh}, sequence={config.sequence}, {config.layers} layers: ours has {ours[0]} collectives and"
                             f" {ours[1]} bytes, {name} {count} and {size}")
    print("\n".join(lines))
    text = arguments.docs.read_text()
    head, rest = text.split(BEGIN)
    arguments.docs.write_text(head + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1])
    for line in worse:
        print(f"error: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
