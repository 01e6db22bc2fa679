#!/usr/bin/env python3
"""Stopped gradients train as in PyTorch: straight-through estimators, vector quantization, distillation, two branches.

Each model stops gradients by detach(), by torch.no_grad() in a scripted function or by torch.set_grad_enabled(). It is
trained on 1, 2 and 4 ranks; losses and parameters after some steps are PyTorch's, and every program is proven.
"""

import argparse
import pathlib
import sys
import tempfile

import torch
from torch import nn

from training import Case, check

PLANS = {
    "1 rank": "mesh: {tp: 1}\nplan: {PLAN}\n",
    "2 ranks": "mesh: {tp: 2}\nplan: {PLAN}\n",
    "4 ranks": "mesh: {dp: 2, tp: 2}\ndata_parallel: {dp: fsdp}\nplan: {PLAN}\n",
}


class Encoder(nn.Module):
    def __init__(self, dim: int = 8):
        super().__init__()
        self.up, self.down = nn.Linear(dim, 16), nn.Linear(16, dim)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


class Square(nn.Module):
    """The gradient is that of one factor."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x):
        y = self.encoder(x)
        return (y * y.detach()).sum()


class StraightThrough(nn.Module):
    """Activations are rounded forward, and not backward."""

    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), Encoder()

    def forward(self, x):
        h = self.encoder(x)
        rounded = torch.floor(h * 8.0 + 0.5) / 8.0
        h = h + (rounded - h).detach()
        return ((self.head(h) - x) ** 2).mean()


class Quantized(nn.Module):
    """VQ-VAE: the codebook follows the codes, the encoder commits to them, the decoder's gradient passes straight on."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Encoder()
        self.codes = nn.Embedding(6, 8)

    def forward(self, x):
        z = self.encoder(x)
        table = self.codes.weight
        distance = (z * z).sum(-1, keepdim=True) - 2.0 * (z @ table.t()) + (table * table).sum(-1)
        code = self.codes(distance.argmin(-1))
        loss = ((code - z.detach()) ** 2).mean() + 0.25 * ((z - code.detach()) ** 2).mean()
        out = self.decoder(z + (code - z).detach())
        return loss + ((out - x) ** 2).mean()


class Distilled(nn.Module):
    """The teacher's parameters would be trained but for no_grad."""

    def __init__(self):
        super().__init__()
        self.teacher, self.student = Encoder(), Encoder()

    def forward(self, x):
        with torch.no_grad():
            soft = torch.softmax(self.teacher(x), -1)
        logs = torch.log_softmax(self.student(x), -1)
        return -(soft * logs).sum(-1).mean()


class TwoBranches(nn.Module):
    """BYOL: each view's prediction is near the other view's target, which has no gradient."""

    def __init__(self):
        super().__init__()
        self.online, self.target, self.predictor = Encoder(), Encoder(), Encoder()

    def distance(self, p, t):
        p = p / (p * p).sum(-1, keepdim=True).sqrt()
        t = t / (t * t).sum(-1, keepdim=True).sqrt()
        return (2.0 - 2.0 * (p * t).sum(-1)).mean()

    def forward(self, x):
        other = x.flip(-1)
        first, second = self.predictor(self.online(x)), self.predictor(self.online(other))
        with torch.no_grad():
            first_target, second_target = self.target(x), self.target(other)
        return self.distance(first, second_target) + self.distance(second, first_target)


class Switched(nn.Module):
    """Gradients off, on again inside, in-place writes while they are off, data, detach_ and nesting."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        h = self.encoder(x)
        with torch.no_grad():
            mean = h.mean(0)
            with torch.no_grad():
                mean *= 0.5
            kept = mean + h
        torch.set_grad_enabled(False)
        shifted = h * self.scale
        torch.set_grad_enabled(True)
        shifted = shifted * self.scale
        flat = h * self.scale
        flat.detach_()
        return ((h - kept) ** 2).mean() + (shifted * flat).mean() + (h.data * self.scale).sum()


MODELS = [(Square, False), (StraightThrough, False), (Quantized, False), (Square, True), (StraightThrough, True),
          (Quantized, True), (Distilled, True), (TwoBranches, True), (Switched, True)]


def get_cases():
    for (kind, scripted), (ranks, plan) in ((m, p) for m in MODELS for p in PLANS.items()):
        torch.manual_seed(3)
        model = kind()
        entries = ", ".join(f"{name}.up: ColwiseParallel, {name}.down: RowwiseParallel"
                            for name, child in model.named_children() if isinstance(child, Encoder))
        options = {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.01}
        yield Case(f"{kind.__name__}, {'scripted' if scripted else 'traced'}, {ranks}", model, torch.randn(8, 8),
                   torch.zeros(()), plan.replace("PLAN", entries), {"loss": "output", "optimizer": {"name": "SGD"} | options},
                   lambda parameters: torch.optim.SGD(parameters, **options), lambda output, target: output,
                   scripted=scripted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    options = parser.parse_args()
    cases = [case for case in get_cases() if options.filter in case.name]
    failures = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                check(case, options.tools, pathlib.Path(scratch))
            except AssertionError as error:
                failures += 1
                print(f"FAIL {case.name}: {error}", flush=True)
    print(f"{len(cases) - failures} of {len(cases)} models with stopped gradients train as in PyTorch")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
