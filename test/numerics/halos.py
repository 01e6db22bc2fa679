#!/usr/bin/env python3
"""Images, sound and video that are split in space, on several meshes beside PyTorch: convolutions and pooling exchange halos.

Each model is evaluated and trained with its input and its output split along the first spatial dimension, or along two. When
it is evaluated, nothing moves but halos, and as many bytes as its windows reach beyond the blocks.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn

import training
from images import BasicBlock
from ops import get_tool
from ranks import Ranks
from sampling import take


class Residual(nn.Sequential):
    """The beginning of a ResNet; its last blocks are of unequal sizes, or empty."""

    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 7, 2, padding=3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1),
                         BasicBlock(4, 4, 1), BasicBlock(4, 8, 2))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.down = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        self.up = nn.Upsample(scale_factor=2)
        self.transposed = nn.ConvTranspose2d(8, 4, 4, 2, padding=1)
        self.last = nn.Conv2d(16, 2, (5, 3), padding="same")

    def forward(self, x):
        x = self.first(x)
        y = self.down(x)
        return self.last(torch.cat([x, self.up(y), self.transposed(y)], 1))


class Sound(nn.Module):
    """Causal convolutions, whose windows reach over several blocks."""

    def __init__(self):
        super().__init__()
        self.pads = nn.ModuleList(nn.ConstantPad1d((2 * 2**i, 0), 0) for i in range(3))
        self.layers = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=2**i, groups=2 if i == 1 else 1) for i in range(3))
        self.last = nn.Conv1d(4, 4, 2, padding=0, bias=False)

    def forward(self, x):
        for pad, layer in zip(self.pads, self.layers):
            x = x + torch.tanh(layer(pad(x)))
        return self.last(x)


class Depthwise(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(4, 4, 5, padding=2, groups=4), nn.Conv2d(4, 8, 1), nn.GELU(),
                         nn.Conv2d(8, 4, 3, padding=(2, 1), dilation=(2, 1)))


class Video(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv3d(2, 4, 3, padding=1), nn.ReLU(), nn.AvgPool3d((2, 1, 1), (2, 1, 1)), nn.Conv3d(4, 2, (3, 1, 3), padding=(1, 0, 1)))


# Modules with windows.
WINDOWED = (nn.modules.conv._ConvNd, nn.ConstantPad1d, nn.MaxPool2d, nn.AvgPool2d, nn.AvgPool3d)

# The shape of an example's input, and the plans' meshes.
MODELS = {
    "Residual": (Residual, (2, 3, 64, 16)),
    "Residual, uneven": (Residual, (2, 3, 61, 9)),
    "UNet": (UNet, (2, 3, 64, 8)),
    "Sound": (Sound, (2, 4, 47)),
    "Depthwise": (Depthwise, (2, 4, 23, 6)),
    "Video": (Video, (1, 2, 16, 6, 5)),
}
# So small models would be gathered at the beginning, to save the time that collectives take to start.
OPTIONS = "latency-bytes=0"
LAYOUTS = {"2": ("{x: 2}", ["Shard(2)"]), "4": ("{x: 4}", ["Shard(2)"]), "2 x 2": ("{x: 2, y: 2}", ["Shard(2)", "Shard(3)"]),
           "4, of two dimensions": ("{x: 2, y: 2}", ["Shard(2)", "Shard(2)"])}


def get_plan(model, mesh, placements):
    """Splits the model's input and output, and those of each of its modules that have windows."""
    names = ["''"] + [name for name, module in model.named_modules() if isinstance(module, WINDOWED)]
    entries = []
    for dim, placement in zip("xy", placements):
        layouts = ", ".join(f"{key}: {placement}" for key in ("input_layouts", "desired_input_layouts", "output_layouts", "desired_output_layouts"))
        lines = "".join(f"      {name}: {{style: PrepareModuleInputOutput, {layouts}}}\n" for name in names)
        entries.append(f"  - mesh_dim: {dim}\n    plan:\n{lines}")
    return f"mesh: {mesh}\nparallelize:\n" + "".join(entries)


def get_cases():
    for name, (model, shape) in MODELS.items():
        for layout, (mesh, placements) in LAYOUTS.items():
            is_tried = name in ("Sound", "Video") or "of two" not in layout
            if is_tried and (len(shape) > 3 or "Shard(3)" not in placements):
                torch.manual_seed(0)
                made = model()
                yield f"{name}, over {layout}", layout, made, torch.randn(shape), get_plan(made, mesh, placements)


def get_block(size, ranks, index):
    """The block of torch.chunk."""
    chunk = -(-size // ranks)
    return min(index * chunk, size), min((index + 1) * chunk, size)


def count_halo(size, count, stride, padding, extent, ranks):
    """The elements of a dimension that ranks receive, over all of them, for windows of `extent` elements."""
    received = 0
    for index in range(ranks):
        begin, end = get_block(size, ranks, index)
        first, last = get_block(count, ranks, index)
        if first < last:
            wanted = range(max(first * stride - padding, 0), min((last - 1) * stride - padding + extent, size))
            received += sum(not begin <= i < end for i in wanted)
    return received


def count_folded(size, count, stride, padding, extent, ranks):
    """The same for windows, `count` of them, that are added up to `size` elements."""
    received = 0
    for index in range(ranks):
        begin, end = get_block(count, ranks, index)
        first, last = get_block(size, ranks, index)
        reaches = lambda p: p * stride - padding < last and p * stride - padding + extent > first
        received += sum(reaches(p) and not begin <= p < end for p in range(count))
    return received


def count_bytes(model, x, ranks):
    """What a forward pass receives over `ranks` of the first spatial dimension, for convolutions and pooling."""
    total = 0

    def count(module, inputs, output):
        nonlocal total
        first = lambda value: value[0] if isinstance(value, tuple) else value
        # Each element of a padded tensor is a window.
        size, stride, padding = (first(getattr(module, name, 1)) for name in ("kernel_size", "stride", "padding"))
        extent = first(getattr(module, "dilation", 1)) * (size - 1) + 1
        if padding == "same":
            padding = (extent - 1) // 2
        rows, row = inputs[0].shape[2], inputs[0].numel() // inputs[0].shape[2]
        if getattr(module, "transposed", False):
            # The windows move, which hold the result's channels.
            row = row // inputs[0].shape[1] * output.shape[1] * np.prod(module.kernel_size)
            total += 4 * row * count_folded(output.shape[2], rows, stride, padding, extent, ranks)
        else:
            total += 4 * row * count_halo(rows, output.shape[2], stride, padding, extent, ranks)

    modules = [module for module in model.modules() if isinstance(module, WINDOWED)]
    hooks = [module.register_forward_hook(count) for module in modules]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return total


def evaluate(model, x, plan, tools, folder):
    tool = {name: get_tool(tools, name) for name in ("tp-import", "tp-opt", "tp-compile", "tp-run")}
    model = model.eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.jit.trace(model, x).save(folder / "model.pt")
        expected = model(x)
    (folder / "plan.yaml").write_text(plan)
    np.save(folder / "x.npy", x.numpy())
    shape = "x".join(map(str, x.shape))
    training.run(tool["tp-import"], folder / "model.pt", "--input", f"x={shape}xf32", "-o", folder / "model.mlir", "--weights", folder / "w")
    training.run(tool["tp-opt"], folder / "model.mlir", f"--tp-parallelize=plan={folder}/plan.yaml report={folder}/report.json {OPTIONS}",
                 "-o", folder / "ranks.mlir")
    proof = training.run(tool["tp-opt"], folder / "ranks.mlir", f"--tp-verify-spmd=reference={folder}/model.mlir", "-o", "/dev/null")
    training.run(tool["tp-compile"], folder / "ranks.mlir", "-o", folder / "model.tpx")
    training.run(tool["tp-run"], folder / "model.tpx", "--weights", folder / "w", "--allow-unused-weights", "--input", f"x={folder}/x.npy",
                 "--output", f"output={folder}/y.npy")
    difference = ((torch.from_numpy(np.load(folder / "y.npy")) - expected).abs().max() / expected.abs().max()).item()
    if not difference < 1e-5:
        raise AssertionError(f"differs by {difference}")
    if "is proven" not in proof:
        raise AssertionError(f"isn't proven: {proof}")
    return json.loads((folder / "report.json").read_text())


def check_report(report, model, x, layout):
    """Whether halos are all that moves, besides statistics. Otherwise less moves than all halos."""
    moved, ranks = {}, Ranks(report)
    for collective in report["collectives"]:
        moved[collective["kind"]] = moved.get(collective["kind"], 0) + ranks.sum(collective["bytes_by_class"])
    statistics = moved.pop("all_reduce", 0)
    if layout not in ("2", "4"):
        return False
    expected = count_bytes(model, x, int(layout))
    if moved.keys() <= {"halo"} and sum(moved.values()) != expected:
        raise AssertionError(f"halos are {moved} bytes, must be {expected}")
    if sum(moved.values()) > expected or statistics > 1000:
        raise AssertionError(f"moves {moved}, and {statistics} bytes of statistics; halos are {expected} bytes")
    return moved.keys() <= {"halo"}


def get_training(name, model, x, plan):
    target = torch.randn(model(x).shape)
    make = lambda parameters: torch.optim.SGD(parameters, lr=0.05)
    return training.Case(name, model, x, target, plan, {"loss": "mse", "optimizer": {"name": "SGD", "lr": 0.05}}, make, nn.functional.mse_loss,
                         tolerance=1e-3, passes=OPTIONS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files of trainings here")
    options = parser.parse_args()
    cases = [case for case in get_cases() if options.filter in case[0]]
    tried = take(cases)
    wrong = halos = 0
    for name, layout, model, x, plan in tried:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                report = evaluate(model, x, plan, options.tools, pathlib.Path(scratch))
                halos += check_report(report, model, x, layout)
            except AssertionError as error:
                wrong += 1
                print(f"FAIL {name}: {error}", flush=True)
    print(f"{len(tried) - wrong} of {len(tried)} models equal PyTorch's, {halos} move just their halos")
    trainings = [get_training(name, model.train(), x, plan)
                 for name, _, model, x, plan in take(case for case in cases if case[1] in ("4", "2 x 2"))]
    return training.check_all(trainings, options.tools, options.keep) or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
