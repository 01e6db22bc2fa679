"""Saves models that stop gradients: detach.py <directory>"""

import pathlib
import sys

import torch
from torch import nn


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.proj(torch.tanh(x)).relu()
        return y + self.proj(x)


class Ways(nn.Module):
    def forward(self, x):
        a = x.sin().detach()
        b = x.cos()
        b.detach_()
        c = x.exp().data
        torch.set_grad_enabled(False)
        d = x.tanh()
        torch.set_grad_enabled(True)
        e = x.sigmoid().requires_grad_(False)
        return a, b, c, d, e


class Traced(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x.tanh()
        return y + x.sin().detach()


class Written(nn.Module):
    def forward(self, x):
        y = x * 2
        with torch.no_grad():
            y.mul_(3)
        return y


class WrittenMask(nn.Module):
    def forward(self, ids):
        mask = (ids > 2).to(torch.float32)
        with torch.no_grad():
            mask.mul_(3)
            y = ids * mask
            y.add_(1)
        return y


directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
for model in (Scripted, Ways, Written, WrittenMask):
    torch.jit.script(model()).save(directory / f"{model.__name__}.pt")
torch.jit.trace(Traced(), torch.randn(2, 4)).save(directory / "Traced.pt")
