#!/usr/bin/env python3
"""Convolutions with bias in bf16 and f16: the errors, against f64, aren't larger than those of PyTorch in the same type."""

import copy
import pathlib
import sys
import tempfile
import warnings

import torch
from torch import nn

from exported import run
from ops import load, save

CHANNELS, SIZE = 32, 12
MAX_RATIO = 1.1  # of the roots of the mean squares; a second rounding makes it 1.4
LAYERS = {
    "plain": nn.Conv2d(CHANNELS, 64, 3), "pointwise": nn.Conv2d(CHANNELS, 64, 1), "grouped": nn.Conv2d(CHANNELS, 64, 3, groups=4),
    "multiplied": nn.Conv2d(CHANNELS, 64, 3, groups=CHANNELS), "depthwise": nn.Conv2d(CHANNELS, CHANNELS, 3, groups=CHANNELS),
    "activated": nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, groups=CHANNELS), nn.ReLU()),
    "transposed": nn.ConvTranspose2d(CHANNELS, 16, 3, stride=2), "patches": nn.ConvTranspose2d(CHANNELS, 16, 2, stride=2),
    "transposed_groups": nn.ConvTranspose2d(CHANNELS, 16, 3, stride=2, groups=4),
}


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict(LAYERS)

    def forward(self, x):
        return {name: layer(x) for name, layer in self.layers.items()}


def check(folder, name, dtype):
    folder.mkdir()
    model, x = Layers().to(dtype).eval(), torch.randn(2, CHANNELS, SIZE, SIZE).to(dtype)
    with torch.no_grad():
        theirs, exact = model(x), copy.deepcopy(model).double()(x.double())
        torch.export.save(torch.export.export(model, (x,)), folder / "model.pt2")
    save(folder / "x.npy", x)
    run("tp-import", folder / "model.pt2", "-o", folder / "model.mlir", "--weights", folder / "model.safetensors")
    (folder / "plan.yaml").write_text("mesh: {tp: 2}\nplan: {layers.*.weight: [Shard(0)]}\n")
    run("tp-opt", folder / "model.mlir", f"--tp-parallelize=plan={folder / 'plan.yaml'}", "-o", folder / "ranks.mlir")
    run("tp-compile", folder / "ranks.mlir", "-o", folder / "model.tpx")
    outputs = [flag for key in LAYERS for flag in ("--output", f"{key}={folder / key}.npy")]
    run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors", "--input", f"x={folder}/x.npy", *outputs)
    for key in LAYERS:
        ours = load(folder / f"{key}.npy", dtype)
        ratio = ((ours.double() - exact[key]).square().mean() / (theirs[key].double() - exact[key]).square().mean()).sqrt().item()
        if not ratio < MAX_RATIO:
            raise AssertionError(f"{key} in {name}: {ratio:.2f} times PyTorch's error")
    print(f"{name}: {len(LAYERS)} layers are as accurate as PyTorch's")


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        for name, dtype in ("bf16", torch.bfloat16), ("f16", torch.float16):
            check(pathlib.Path(temporary) / name, name, dtype)


if __name__ == "__main__":
    sys.exit(main())
