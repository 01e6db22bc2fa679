# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules for tests, with plans for two ranks."""

import torch
from torch import nn

import tp_mlir as tp

MESH = tp.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
PLAN = {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}


class MLP(nn.Module):
    def __init__(self, dim=8, hidden=16):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x, *, scale=1.0):
        return self.down(torch.relu(self.up(x))) * scale


class Nested(nn.Module):
    """Trees of tensors, numbers and None among arguments and results."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, batch, power=1, names=("x",)):
        x = sum(batch[name] for name in names)
        y = self.down(torch.relu(self.up(x))) ** power
        return {"y": y, "parts": [y[:1], (x, None)], "power": power}


class Normalized(nn.Module):
    """Buffers that a forward pass writes."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 16, bias=False)  # its gradient would be rounding errors
        self.norm = nn.BatchNorm1d(16)
        self.down = nn.Linear(16, 8)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return self.down(torch.relu(self.norm(self.up(x)))) + self.calls


def parallelize(module, **options):
    return tp.parallelize_module(module, MESH, PLAN, **options)


def make(kind, *args):
    torch.manual_seed(0)
    return kind(*args)
