"""Saves scripted models in training mode that write buffers: buffers.py <directory>"""

import sys

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.norm = nn.BatchNorm2d(4, **options)

    def forward(self, x):
        return self.norm(x)


class Twice(Norm):
    def forward(self, x):
        return self.norm(self.norm(x))


directory = sys.argv[1]
for name, model in {"norm": Norm(momentum=0.25), "twice": Twice(), "cumulative": Norm(momentum=None)}.items():
    torch.jit.script(model.train()).save(f"{directory}/{name}.pt")
