"""Saves a model as it is trained, with dropout, a frozen parameter and a buffer: training.py <file>"""

import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4, padding_idx=-1)
        self.dropout = nn.Dropout(0.25)
        self.proj = nn.Linear(4, 3)
        self.proj.bias.requires_grad_(False)
        self.register_buffer("scale", torch.full((3,), 2.0))

    def forward(self, ids):
        return self.proj(self.dropout(self.embed(ids))) * self.scale


torch.jit.trace(Model().train(), torch.zeros(2, 5, dtype=torch.int64), check_trace=False).save(sys.argv[1])
