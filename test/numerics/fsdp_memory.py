#!/usr/bin/env python3
"""What FSDP keeps on a rank: stacks of equal modules, of any depth, with few activations.

Parameters and the optimizer's state take 1/N of what they take on one rank. The arena, which the report predicts and the
artifact has, takes what activations do and at most twice a module's parameters, however many modules there are: the parameters, and
the buffer that they are gathered in, or their gradients are reduced in. With overlap it takes the next module's parameters
besides, and 1/N of all gradients. Without reshard_after_forward all parameters are whole between the passes. A module's parameters
are gathered by one collective for the forward pass, by one for the backward pass if they are resharded, and their gradients are
reduced by one.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

from ops import get_tool

DIM, HIDDEN, FLOAT = 64, 256, 4
BIAS = HIDDEN * FLOAT
MODULE = 2 * DIM * HIDDEN * FLOAT + BIAS
# What a module keeps for its backward pass.
ACTIVATIONS = 2 * HIDDEN * FLOAT
# The loss, scalars and constants, each with a cache line of its own.
OTHERS = 4096


def make_model(depth, rows):
    x, h = f"tensor<{rows}x{DIM}xf32>", f"tensor<{rows}x{HIDDEN}xf32>"
    up, down = f"tensor<{HIDDEN}x{DIM}xf32>", f"tensor<{DIM}x{HIDDEN}xf32>"
    text = f'func.func @main(%x: {x} {{tp.name = "x"}}) -> {x} {{\n'
    value = "%x"
    for i in range(depth):
        name = f"layers.{i}"
        text += f"""  %{i} = nn.module "{name}" class "MLP" ({value} as "x" at 0) {{
  ^bb0(%a: {x}):
    %w1 = nn.parameter "{name}.w1" : {up}
    %h = nn.linear %a, %w1 : ({x}, {up}) -> {h}
    %b = nn.parameter "{name}.b" : tensor<{HIDDEN}xf32>
    %z = nn.add %h, %b : ({h}, tensor<{HIDDEN}xf32>) -> {h}
    %r = nn.relu %z : {h}
    %w2 = nn.parameter "{name}.w2" : {down}
    %y = nn.linear %r, %w2 : ({h}, {down}) -> {x}
    nn.yield %y : {x}
  }} : ({x}) -> {x}
"""
        value = f"%{i}"
    return text + f"  return {value} : {x}\n}}\n"


def run(command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if process.returncode != 0:
        sys.exit(f"{pathlib.Path(command[0]).name} failed: {process.stderr.strip()}")
    return process.stdout


def measure(tools, folder, depth, ranks, reshard, options):
    """The bytes of rank 0's memory, by kind, and the numbers of collectives, by kind."""
    (folder / "model.mlir").write_text(make_model(depth, ranks))
    (folder / "plan.yaml").write_text(f"mesh: {{dp: {ranks}}}\n"
                                      f"data_parallel: {{dp: {{style: fsdp, reshard_after_forward: {reshard}}}}}\n")
    (folder / "train.yaml").write_text("{loss: mse, optimizer: AdamW}\n")
    report = folder / "report.json"
    run([get_tool(tools, "tp-opt"), folder / "model.mlir", "-o", folder / "ranks.mlir",
         f"--tp-parallelize=plan={folder}/plan.yaml train={folder}/train.yaml report={report} machine=cpu {options}"])
    report = json.loads(report.read_text())
    memory = report["prediction"]["by_class"][0]["memory"]
    run([get_tool(tools, "tp-compile"), folder / "ranks.mlir", "-o", folder / "train.tpx"])
    described = run([get_tool(tools, "tp-run"), folder / "train.tpx", "--describe"])
    if f"arena: {memory['arena']} bytes" not in described:
        sys.exit(f"the artifact's arena isn't the predicted one, of {memory['arena']} bytes: {described}")
    return memory, {kind: entry["count"] for kind, entry in report["totals"].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    options = parser.parse_args()
    failures = 0
    for ranks, reshard, overlap in itertools.product((4, 8), ("true", "false"), ("", "overlap")):
        for depth in (4, 8):
            with tempfile.TemporaryDirectory() as scratch:
                memory, counts = measure(options.tools, pathlib.Path(scratch), depth, ranks, reshard, overlap)
            expected = {"all_gather": 2 * depth if reshard == "true" else depth, "reduce_scatter": depth, "all_reduce": 1}
            kept = 3 * depth * MODULE // ranks + 8
            limit = (2 if reshard == "true" else depth + 1) * MODULE + depth * (ACTIVATIONS + BIAS) + OTHERS
            if overlap:
                limit += MODULE + depth * MODULE // ranks
            wrong = []
            if counts != expected:
                wrong.append(f"has collectives {counts}, must have {expected}")
            if memory["parameters"] != kept:
                wrong.append(f"keeps {memory['parameters']} bytes, must keep {kept}")
            if memory["arena"] > limit:
                wrong.append(f"has an arena of {memory['arena']} bytes, may have {limit}")
            for what in wrong:
                print(f"fsdp{ranks}, {depth} modules, reshard_after_forward: {reshard} {overlap}: {what}")
            failures += bool(wrong)
    print(f"{16 - failures} of 16 stacks keep what they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
