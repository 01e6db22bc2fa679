"""Saves programs of torch.export with constants that decide what is imported: constants.py <directory>"""

import pathlib
import sys

import torch
from torch import nn
from torch.export import export, save

import archive

directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)


class Bags(nn.Module):
    def __init__(self, offsets):
        super().__init__()
        self.offsets = offsets

    def forward(self, ids, weight):
        return nn.functional.embedding_bag(ids, weight, torch.tensor(self.offsets))


class Counted(nn.Module):
    """It writes a buffer that no state_dict has."""

    def __init__(self, values):
        super().__init__()
        self.register_buffer("count", torch.tensor(values), persistent=False)

    def forward(self, x):
        self.count.add_(1)
        return x * 2


class Flipped(nn.Module):
    def forward(self, x):
        return x.flip(0), x.diagonal(), x[[0, 0, 1]], x[[1, 2]], nn.functional.pad(x, (-1, 2), mode="circular")


class Scaled(nn.Module):
    def forward(self, x):
        return x * 2 + 1


x = torch.randn(4, 4)
ids = torch.zeros(6, dtype=torch.int64)
for name, offsets in {"early": [0, -2, 3], "late": [0, 100000000, 2], "past": [0, 10], "begun": [1, 3]}.items():
    save(export(Bags(offsets), (ids, torch.zeros(5, 4))), directory / f"{name}.pt2")
many = Bags([0] + [1] * 4096)
save(export(many, (torch.zeros(1024, dtype=torch.int64), torch.zeros(5, 4))), directory / "many.pt2")
for name, values in {
    "same": [3, 3, 3],
    "near": [2**53, 2**53 + 1, 2**53],
    "wide": [2**53 + 1] * 3,
    "zeros": [0.0, -0.0, 0.0],
}.items():
    save(export(Counted(values), (x,)), directory / f"{name}.pt2")
save(export(Flipped(), (x,)), directory / "flipped.pt2")
save(export(Scaled(), (x,)), directory / "scaled.pt2")


def change(name, function):
    """Changes what the program says about the product."""
    def change_tensor(program):
        function(program["graph_module"]["graph"]["tensor_values"]["mul"])

    archive.rewrite_program(directory / "scaled.pt2", directory / f"{name}.pt2", change_tensor)


change("type", lambda tensor: tensor.update(dtype=6))
change("sizes", lambda tensor: tensor.update(sizes=[{"as_int": 4}, {"as_int": 5}]))
change("rank", lambda tensor: tensor.update(sizes=[{"as_int": 4}]))
