"""Saves a model whose submodule uses its arguments in another order: traced as it is, by tp_trace.py, and scripted.

traced.py <folder of tp_trace.py> <directory>"""

import pathlib
import sys
import warnings

import torch
from torch import nn

sys.path.insert(0, sys.argv[1])
import tp_trace
from mix import Mix


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = Mix()

    def forward(self, a, b):
        return self.mix(a, 2.0, z=b, y=a, unused=b + 1) + self.mix(b, 2.0, a, a, b)


directory = pathlib.Path(sys.argv[2])
directory.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")
model, example = Model(), (torch.randn(2, 4), torch.randn(2, 4))
torch.jit.trace(model, example).save(directory / "plain.pt")
traced = tp_trace.save(model, example, directory / "ordered.pt")
assert torch.equal(traced(*example), model(*example)) and "forward" not in vars(model.mix)
torch.jit.script(model).save(directory / "scripted.pt")
