#!/usr/bin/env python3
"""Equal layers, which are compiled once: deep models infer and train as PyTorch does, with the layers as functions. The layers may
alternate, be split unevenly, or be on one rank."""

import argparse
import pathlib
import re
import sys
import tempfile

import numpy as np
import torch
from torch import nn

import training
from ops import get_tool
from training import Attention, Case, FeedForward, run

DIM, HEADS, LENGTH, BATCH = 16, 4, 6, 4
PLAN = """plan:
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel
  layers.*.feed_forward.w[13]: ColwiseParallel
  layers.*.feed_forward.w2: RowwiseParallel
"""
# By name: the mesh, the norms and activations of layers, which repeat, and options of the training file and of tp-parallelize.
CASES = {
    "one rank": ("{tp: 1}", [(nn.RMSNorm, nn.functional.silu)], {}, ""),
    "two ranks": ("{tp: 2}", [(nn.RMSNorm, nn.functional.silu)], {}, ""),
    "uneven": ("{tp: 3}", [(nn.LayerNorm, nn.functional.gelu)], {"clip_grad_norm": 1.0}, ""),
    "alternating": ("{tp: 2}", [(nn.LayerNorm, torch.relu), (nn.RMSNorm, torch.tanh)], {}, ""),
    "recomputed": ("{dp: 2, tp: 2}\ndata_parallel: {dp: fsdp}", [(nn.RMSNorm, nn.functional.silu)], {"checkpoint": ["layers.*"]}, ""),
    "overlapped": ("{dp: 2, tp: 2}\ndata_parallel: {dp: fsdp}", [(nn.RMSNorm, nn.functional.silu)], {}, "overlap"),
}


class Block(nn.Module):
    def __init__(self, norm, act):
        super().__init__()
        self.attention_norm, self.ffn_norm = norm(DIM), norm(DIM)
        self.attention = Attention(DIM, HEADS, HEADS, False)
        self.feed_forward = FeedForward(DIM, 32, True, act)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


def get_case(name, layers):
    mesh, kinds, train, passes = CASES[name]
    torch.manual_seed(0)
    model = nn.Sequential()
    model.layers = nn.Sequential(*(Block(*kinds[i % len(kinds)]) for i in range(layers)))
    x, target = torch.randn(BATCH, LENGTH, DIM), torch.randn(BATCH, LENGTH, DIM)
    options = {"lr": 0.01, "eps": 1e-3}
    return Case(name, model, x, target, f"mesh: {mesh}\n{PLAN}", {"loss": "mse", "optimizer": {"name": "AdamW", **options}} | train,
                lambda parameters: torch.optim.AdamW(parameters, **options), nn.functional.mse_loss, passes=passes)


def count_calls(tool, ranks):
    """Of functions of layers, in all programs."""
    text = ranks.with_suffix(".llvm.mlir")
    run(tool["tp-compile"], ranks, "--emit=mlir", "-o", text)
    return len(re.findall(r"llvm\.call @layer\w*_call\(", text.read_text()))


def check(case, tool, tools, folder):
    """The numbers of calls in the forward pass and in the training step; raises AssertionError where results differ."""
    with torch.no_grad():
        np.save(folder / "y.npy", case.model(case.input).numpy())
    training.check(case, tools, folder)
    ranks = folder / "forward.mlir"
    run(tool["tp-opt"], folder / "model.mlir", f"--tp-parallelize=plan={folder}/plan.yaml", "-o", ranks)
    run(tool["tp-compile"], ranks, "-o", folder / "forward.tpx")
    run(tool["tp-run"], folder / "forward.tpx", "--weights", folder / "model.safetensors", "--input", f"x={folder}/x.npy",
        "--expect", folder / "y.npy", "--rtol", "1e-5", "--atol", "1e-5", "--allow-unused-weights")
    return count_calls(tool, ranks), count_calls(tool, folder / "ranks.mlir")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    options = parser.parse_args()
    tool = {name: get_tool(options.tools, name) for name in ("tp-opt", "tp-compile", "tp-run")}
    failures = 0
    for name in CASES:
        if options.filter not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                forward, step = check(get_case(name, options.layers), tool, options.tools, pathlib.Path(folder))
                print(f"{name}: {forward} calls in the forward pass, {step} in the step", flush=True)
            except AssertionError as error:
                failures += 1
                print(f"FAIL {name}: {error}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
