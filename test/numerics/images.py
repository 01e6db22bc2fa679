#!/usr/bin/env python3
"""Models of images on several meshes beside PyTorch: a ResNet of basic blocks, as in torchvision, and a vision transformer.

Each is evaluated, and trained for some steps (training.py). Batch norm in training mode takes its statistics from the whole
batch, on whatever ranks its parts are; its running statistics are compared as well.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn

import training
from ops import get_tool
from sampling import take


class BasicBlock(nn.Module):
    def __init__(self, channels, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or channels != planes:
            self.downsample = nn.Sequential(nn.Conv2d(channels, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(width, width, 1))
        self.layer2 = nn.Sequential(BasicBlock(width, 2 * width, 2), BasicBlock(2 * width, 2 * width, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(x, 1))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (w(x).view(b, t, self.heads, d // self.heads).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        return self.wo(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))


class Encoder(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.down(nn.functional.gelu(self.up(self.ln_2(x))))


class ViT(nn.Module):
    def __init__(self, dim=16, heads=4, size=16, patch=4, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim))
        self.layers = nn.ModuleList(Encoder(dim, heads) for _ in range(2))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


# Output channels split in one convolution, input channels in the next one.
SPLIT = """
  layer*.*.conv1.weight: Shard(0)
  layer*.*.bn1.weight: Shard(0)
  layer*.*.bn1.bias: Shard(0)
  layer*.*.bn1.running_*: Shard(0)
  layer*.*.conv2.weight: Shard(1)
  fc: ColwiseParallel
"""
TRANSFORMER = """
  patches.weight: Shard(0)
  patches.bias: Shard(0)
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel
  layers.*.up: ColwiseParallel
  layers.*.down: RowwiseParallel
"""


def get_plans(layers):
    return {
        "tp2": f"mesh: {{tp: 2}}\nplan:{layers}",
        "ddp2": "mesh: {dp: 2}\ndata_parallel: {dp: ddp}\n",
        "fsdp2 x tp2": f"mesh: {{dp: 2, tp: 2}}\ndata_parallel: {{dp: fsdp}}\nplan:{layers}",
    }


MODELS = {"ResNet": (ResNet, get_plans(SPLIT)), "ViT": (ViT, get_plans(TRANSFORMER))}


def get_trainings():
    optimizer = {"name": "SGD", "lr": 0.02, "momentum": 0.9}
    make = lambda parameters: torch.optim.SGD(parameters, lr=0.02, momentum=0.9)
    for name, (model, plans) in MODELS.items():
        for mesh, plan in plans.items():
            torch.manual_seed(1)
            yield training.Case(f"{name}, {mesh}", model(), torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,)), plan,
                                {"loss": "cross_entropy", "optimizer": optimizer}, make, nn.functional.cross_entropy, tolerance=1e-3)
    # Each batch has its own statistics, and the running ones go from one to the next.
    torch.manual_seed(2)
    yield training.Case("ResNet, accumulated", ResNet(), torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,)), "mesh: {dp: 1}\ndata_parallel: {dp: ddp}\n",
                        {"loss": "cross_entropy", "optimizer": optimizer, "accumulate": 2}, make,
                        nn.functional.cross_entropy, tolerance=1e-3, batches=2)


def evaluate(name, mesh, tools, folder):
    """The largest difference from PyTorch's results, by the largest of these."""
    tool = {name: get_tool(tools, name) for name in ("tp-import", "tp-opt", "tp-compile", "tp-run")}
    make, plans = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    x = torch.randn(4, 3, 16, 16)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.jit.trace(model, x).save(folder / "model.pt")
        expected = model(x)
    (folder / "plan.yaml").write_text(plans[mesh])
    np.save(folder / "x.npy", x.numpy())
    for command in (
        [tool["tp-import"], folder / "model.pt", "--input", "x=4x3x16x16xf32", "-o", folder / "model.mlir", "--weights", folder / "w"],
        [tool["tp-opt"], folder / "model.mlir", f"--tp-parallelize=plan={folder}/plan.yaml", "-o", folder / "ranks.mlir"],
        [tool["tp-opt"], folder / "ranks.mlir", f"--tp-verify-spmd=reference={folder}/model.mlir accept-tested", "-o", "/dev/null"],
        [tool["tp-compile"], folder / "ranks.mlir", "-o", folder / "model.tpx"],
        [tool["tp-run"], folder / "model.tpx", "--weights", folder / "w", "--allow-unused-weights", "--input", f"x={folder}/x.npy",
         "--output", f"output={folder}/y.npy"],
    ):
        training.run(*command)
    return ((torch.from_numpy(np.load(folder / "y.npy")) - expected).abs().max() / expected.abs().max()).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files of trainings here")
    options = parser.parse_args()
    wrong = 0
    cases = take((name, mesh) for name, (_, plans) in MODELS.items() for mesh in plans if options.filter in f"{name}, {mesh}")
    for name, mesh in cases:
        with tempfile.TemporaryDirectory() as scratch:
            difference = evaluate(name, mesh, options.tools, pathlib.Path(scratch))
        if not difference < 1e-5:
            wrong += 1
            print(f"FAIL {name}, {mesh}: differs by {difference}")
    print(f"{len(cases) - wrong} of {len(cases)} models equal PyTorch's")
    trainings = take(case for case in get_trainings() if options.filter in case.name)
    return training.check_all(trainings, options.tools, options.keep) or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
