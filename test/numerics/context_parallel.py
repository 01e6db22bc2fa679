#!/usr/bin/env python3
"""Context parallelism by every method beside single-device PyTorch: decoders with rotary positions and grouped heads, causal
and with masks, on 2 and 4 ranks and with tensor and data parallelism: logits, and losses and parameters after training steps.
"""

import argparse
import dataclasses
import pathlib
import sys
import tempfile

import numpy as np
import torch
from torch import nn

import training
from ops import get_tool
from sampling import take

DIM, HEADS, GROUPS, VOCABULARY, BATCH, LENGTH = 16, 4, 2, 12, 4, 8


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Attention(nn.Module):
    def __init__(self, heads, groups):
        super().__init__()
        self.size = DIM // heads
        self.grouped = heads != groups
        self.wq, self.wo = nn.Linear(DIM, DIM, bias=False), nn.Linear(DIM, DIM)
        self.wk, self.wv = (nn.Linear(DIM, groups * self.size, bias=False) for _ in range(2))

    def forward(self, x, cos, sin, mask):
        q, k, v = (y.view(*x.shape[:2], -1, self.size).transpose(1, 2) for y in (self.wq(x), self.wk(x), self.wv(x)))
        y = nn.functional.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, attn_mask=mask,
                                                       is_causal=mask is None, enable_gqa=self.grouped)
        return self.wo(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, heads, groups):
        super().__init__()
        self.attention = Attention(heads, groups)
        self.attention_norm, self.mlp_norm = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.w1, self.w2 = nn.Linear(DIM, 2 * DIM), nn.Linear(2 * DIM, DIM)

    def forward(self, x, *others):
        x = x + self.attention(self.attention_norm(x), *others)
        return x + self.w2(nn.functional.silu(self.w1(self.mlp_norm(x))))


class Decoder(nn.Module):
    """`mask`: causal, boolean (which also hides padding, tokens that are 0), or added."""

    def __init__(self, mask="causal", heads=HEADS, groups=GROUPS, length=LENGTH):
        super().__init__()
        self.mask, self.length, self.size = mask, length, DIM // heads
        self.tok = nn.Embedding(VOCABULARY, DIM)
        self.layers = nn.ModuleList(Layer(heads, groups) for _ in range(2))
        self.norm, self.output = nn.RMSNorm(DIM), nn.Linear(DIM, VOCABULARY, bias=False)

    def forward(self, tokens):
        i = torch.arange(self.length)
        frequencies = 100.0 ** (-torch.arange(0, self.size, 2) / self.size)
        angles = torch.outer(i.float(), frequencies).repeat(1, 2)
        mask = None
        if self.mask != "causal":
            mask = ((i[None] <= i[:, None]) & (tokens != 0)[:, None])[:, None]
            if self.mask == "added":
                mask = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        x = self.tok(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return self.output(self.norm(x))


STYLES = """plan:
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel
  layers.*.w1: ColwiseParallel
  layers.*.w2: RowwiseParallel
"""


@dataclasses.dataclass
class Plan:
    mesh: str
    styles: str = ""
    data: str = ""

    def print(self, method):
        return f"mesh: {{{self.mesh}}}\ncontext_parallel: {{cp: {method}}}\n{self.data}{self.styles}"


PLANS = {
    "cp2": Plan("cp: 2"),
    "cp4": Plan("cp: 4"),
    "cp2 x tp2": Plan("cp: 2, tp: 2", STYLES),
    "dp2 x cp2": Plan("dp: 2, cp: 2", data="data_parallel: {dp: fsdp}\n"),
}
METHODS = {"ring": "{method: ring}", "all_gather": "all_gather", "all_to_all": "{method: all_to_all, inputs: {x: 1}}", "cheapest": "{}"}
MODELS = {
    "causal": {},
    "heads": {"groups": HEADS},
    "boolean": {"mask": "boolean"},
    "added": {"mask": "added"},
    "uneven": {"length": LENGTH - 1},
}


def get_cases():
    for (model_name, options), (plan_name, plan), (method, text) in (
        (model, plan, method) for model in MODELS.items() for plan in PLANS.items() for method in METHODS.items()
    ):
        if model_name == "uneven" and method == "ring":
            continue  # an error
        torch.manual_seed(5)
        model = Decoder(**options)
        tokens = torch.randint(1, VOCABULARY, (BATCH, model.length))
        if model.mask != "causal":
            for row, count in enumerate((0, 2, 3, 1)):
                tokens[row, :count] = 0
        yield training.Case(
            f"{model_name}, {plan_name}, {method}", model, tokens, torch.randint(VOCABULARY, tokens.shape), plan.print(text),
            {"loss": "cross_entropy", "optimizer": {"name": "SGD", "lr": 0.5, "momentum": 0.5}},
            lambda parameters: torch.optim.SGD(parameters, lr=0.5, momentum=0.5),
            lambda logits, target: nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()))


def check_forward(case, tools, folder):
    """After training has imported the model: whether its logits, of the first weights, are proven, and equal PyTorch's."""
    tool = {name: get_tool(tools, name) for name in ("tp-opt", "tp-compile", "tp-run")}
    with torch.no_grad():
        expected = case.model(case.input).numpy()
    training.run(tool["tp-opt"], folder / "model.mlir", f"--tp-parallelize=plan={folder}/plan.yaml report={folder}/forward.json",
                 "-o", folder / "forward.mlir")
    proof = training.run(tool["tp-opt"], folder / "forward.mlir", "-o", "/dev/null",
                         f"--tp-verify-spmd=reference={folder}/model.mlir accept-tested")
    training.run(tool["tp-compile"], folder / "forward.mlir", "-o", folder / "forward.tpx")
    training.run(tool["tp-run"], folder / "forward.tpx", "--weights", folder / "trained.safetensors", "--input", f"x={folder}/x.npy",
                 "--output", folder / "logits.npy")
    difference = np.abs(np.load(folder / "logits.npy") - expected).max()
    if not difference <= 1e-3 * np.abs(expected).max():
        raise AssertionError(f"logits differ by {difference}")
    return "is proven" in proof


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    options = parser.parse_args()
    training.STEPS = 3
    cases = take(case for case in get_cases() if options.filter in case.name)
    failures = proven = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = options.keep / case.name.replace(" ", "_") if options.keep else pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                proven += training.check(case, options.tools, folder)
                # PyTorch's model has been trained as well.
                proven += check_forward(case, options.tools, folder)
            except AssertionError as error:
                failures += 1
                print(f"FAIL {case.name}: {error}", flush=True)
    print(f"{len(cases) - failures} of {len(cases)} decoders equal PyTorch's, {proven} of {2 * len(cases)} programs proven by rules")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
