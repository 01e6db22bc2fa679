#!/usr/bin/env python3
"""Equal layers, which are compiled once: deep models infer and train as PyTorch does, with the layers as functions. The layers may
alternate, be split unevenly, be on one rank, or have dropouts, each with random numbers of its own."""

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

DIM, HEADS, LENGTH, BATCH, SEED = 16, 4, 6, 4, 3
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
    "dropouts": ("{dp: 2, tp: 2}\ndata_parallel: {dp: ddp}", [(nn.RMSNorm, nn.functional.silu)], {"seed": SEED}, ""),
    "overlapped": ("{dp: 2, tp: 2}\ndata_parallel: {dp: fsdp}", [(nn.RMSNorm, nn.functional.silu)], {}, "overlap"),
}


def draw_uniform(count, counter, seed, stream):
    """What nn.random_uniform gives for the indices below `count`: 24 bits of the first word of Philox-4x32-10."""
    low = np.uint64(0xFFFFFFFF)
    index = np.arange(count, dtype=np.uint64)
    c, keys = [index, index * 0, index * 0 + np.uint64(counter), index * 0], [seed, stream]
    for _ in range(10):
        p = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [p[1] >> np.uint64(32) ^ c[1] ^ np.uint64(keys[0]), p[1] & low, p[0] >> np.uint64(32) ^ c[3] ^ np.uint64(keys[1]), p[0] & low]
        keys = [(key + step) % 2**32 for key, step in zip(keys, (0x9E3779B9, 0xBB67AE85))]
    return (c[0] >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)


class Dropout(nn.Module):
    """PyTorch's dropout for an import. Otherwise it has the numbers that a program has for its dropout number `stream`."""

    def __init__(self, p, stream):
        super().__init__()
        self.p, self.stream, self.step = p, stream, 0

    def forward(self, x):
        if torch.jit.is_tracing() or torch.compiler.is_exporting():
            return nn.functional.dropout(x, self.p, True)
        kept = torch.from_numpy(draw_uniform(x.numel(), self.step, SEED, self.stream).reshape(x.shape)) >= self.p
        self.step += 1
        return torch.where(kept, x / (1 - self.p), 0)


class Block(nn.Module):
    def __init__(self, norm, act, number, dropout):
        super().__init__()
        self.dropouts = nn.ModuleList(Dropout(0.25, 2 * number + i) if dropout else nn.Identity() for i in range(2))
        self.attention_norm, self.ffn_norm = norm(DIM), norm(DIM)
        self.attention = Attention(DIM, HEADS, HEADS, False)
        self.feed_forward = FeedForward(DIM, 32, True, act)

    def forward(self, x):
        x = x + self.dropouts[0](self.attention(self.attention_norm(x)))
        return x + self.dropouts[1](self.feed_forward(self.ffn_norm(x)))


def get_case(name, layers):
    mesh, kinds, train, passes = CASES[name]
    torch.manual_seed(0)
    model = nn.Sequential()
    model.layers = nn.Sequential(*(Block(*kinds[i % len(kinds)], i, name == "dropouts") for i in range(layers)))
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
    if case.name != "dropouts":  # only a step can have them
        with torch.no_grad():
            np.save(folder / "y.npy", case.model(case.input).numpy())
    training.check(case, tools, folder)
    if case.name == "dropouts":
        return 0, count_calls(tool, folder / "ranks.mlir")
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
