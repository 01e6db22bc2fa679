#!/usr/bin/env python3
"""What the backward pass computes again has the bits of what it would have kept: random decoders and stacks of MLPs, whichever
modules are computed again, on several meshes, in f32 and bf16. Losses and trained weights are compared bit for bit."""

import argparse
import dataclasses
import json
import pathlib
import random
import re
import sys
import tempfile
import warnings

import numpy as np
import safetensors.torch
import torch

from ops import get_tool
from training import MESHES, Case, Dropped, Stack, get_decoder, run

STEPS = 4
# Of a decoder's modules; `*` is any text without a dot.
PATTERNS = [["layers.*"], ["layers.0"], ["layers.*.attention"], ["layers.*.feed_forward", "norm"],
            ["layers.*.feed_forward.w1", "layers.*.attention_norm", "tok"], ["layers.*.ffn_norm", "layers.*.attention.wo"], ["layers.*", "norm", "output"]]
STACK_PATTERNS = [["layers.*"], ["layers.1"], ["layers.*.in_proj"], ["layers.*.out_proj", "layers.0"]]


def get_cases(first, count):
    for seed in range(first, first + count):
        draw = random.Random(seed)
        if seed % 3 == 2:
            torch.manual_seed(seed)
            mesh, text = draw.choice(list(MESHES.items()))
            text = text.replace("DATA", draw.choice(["fsdp", "ddp"]))
            text += "plan: {layers.*.in_proj: ColwiseParallel, layers.*.out_proj: RowwiseParallel}\n" if "tp" in mesh else ""
            model = Dropped() if draw.random() < 0.5 else Stack(16)
            case = Case(f"stack {seed} {mesh}", model, torch.randn(8, 16), torch.randn(8, 16), text,
                        {"loss": "mse", "optimizer": {"name": "AdamW", "lr": 0.01}}, None, None)
            patterns = STACK_PATTERNS
        else:
            case = get_decoder(seed)
            patterns = PATTERNS
        train = {key: value for key, value in case.train.items() if key != "checkpoint"}
        if draw.random() < 0.4:
            train["compute"] = "bf16"
        if draw.random() < 0.4:
            train["accumulate"] = draw.choice([2, 3])
        name = f"{case.name} {train.get('compute', 'f32')} accumulate {train.get('accumulate', 1)}"
        yield dataclasses.replace(case, train=train, name=name), patterns


def train(case, patterns, tool, folder):
    """The losses, and the trained weights, where modules of `patterns` are computed again."""
    folder.mkdir()
    (folder / "train.yaml").write_text(json.dumps(case.train | {"checkpoint": patterns}))
    options = f"plan={folder.parent}/plan.yaml train={folder}/train.yaml {case.passes}"
    run(tool["tp-opt"], folder.parent / "model.mlir", f"--tp-parallelize={options}", "-o", folder / "ranks.mlir")
    run(tool["tp-compile"], folder / "ranks.mlir", "-o", folder / "model.tpx")
    run(tool["tp-run"], folder / "model.tpx", "--weights", folder.parent / "model.safetensors",
        "--data", f"x={folder.parent}/x.npy", "--data", f"target={folder.parent}/target.npy", "--steps", STEPS, "--no-shuffle",
        "--allow-unused-weights", "--metrics", folder / "metrics.jsonl", "--output-weights", folder / "trained.safetensors")
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return losses, safetensors.torch.load_file(folder / "trained.safetensors"), (folder / "ranks.mlir").read_text()


def get_placements(program):
    """How the parameters are split: the search may choose other placements, where the plan leaves them open, for a program that
    moves more when it computes again. Sums then have other orders."""
    return set(re.findall(r'nn.parameter "([^"]+)" .*?tp.sharding = (#tp.sharding<.*?>)', program))


def check(case, patterns, tool, folder):
    """How many programs compute something again in the same placements; raises AssertionError where the bits differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(case.model, case.input, check_trace=False).save(folder / "model.pt")
    (folder / "plan.yaml").write_text(case.plan)
    for name, examples in (("x", case.input), ("target", case.target)):  # of as many batches as a step has
        batches = [examples.roll(i, 0).numpy() for i in range(case.train.get("accumulate", 1))]
        np.save(folder / f"{name}.npy", np.concatenate(batches))
    shape = "x".join(map(str, case.input.shape)) + "x" + ("i64" if case.input.dtype == torch.int64 else "f32")
    run(tool["tp-import"], folder / "model.pt", "--input", f"x={shape}", "-o", folder / "model.mlir",
        "--weights", folder / "model.safetensors")
    losses, weights, kept = train(case, [], tool, folder / "kept")
    again = 0
    for i, pattern in enumerate(patterns):
        other_losses, other_weights, program = train(case, pattern, tool, folder / f"again{i}")
        if get_placements(program) != get_placements(kept):
            continue
        again += "nn.recompute" in program
        if losses != other_losses:
            raise AssertionError(f"{pattern}: losses {other_losses}, not {losses}")
        for name, weight in weights.items():
            if not torch.equal(weight, other_weights[name]):
                difference = (weight - other_weights[name]).abs().max().item()
                raise AssertionError(f"{pattern}: {name} differs by {difference}")
    return again


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--models", type=int, default=12, help="so many random models")
    parser.add_argument("--patterns", type=int, default=100, help="so many choices of modules of each, drawn")
    options = parser.parse_args()
    tool = {name: get_tool(options.tools, name) for name in ("tp-import", "tp-opt", "tp-compile", "tp-run")}
    failures = programs = again = 0
    for seed, (case, patterns) in enumerate(get_cases(options.first, options.models), options.first):
        chosen = random.Random(seed).sample(patterns, min(options.patterns, len(patterns)))
        programs += len(chosen)
        with tempfile.TemporaryDirectory() as scratch:
            try:
                again += check(case, chosen, tool, pathlib.Path(scratch))
            except AssertionError as error:
                failures += 1
                print(f"FAIL {case.name}: {error}", flush=True)
    print(f"{options.models - failures} of {options.models} models train alike, bit for bit, in {programs} programs, of which {again} "
          "compute something again")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
