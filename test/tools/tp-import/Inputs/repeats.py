"""Exports attention whose mask the model computes for each sequence of a batch, from positions and from the sequence's number.

usage: repeats.py FOLDER
"""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

FOLDER = Path(sys.argv[1])


class Masked(nn.Module):
    """Causal attention; with `varies`, sequence i doesn't see the first i % 3 tokens."""

    def __init__(self, varies):
        super().__init__()
        self.varies = varies
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        batch, length = x.shape[:2]
        positions = torch.arange(length, device=x.device)[None].expand(batch, -1)
        sequences = torch.arange(batch, device=x.device)
        rows = positions[sequences[:, None, None, None], torch.arange(length, device=x.device)[None, None, :, None]]
        columns = positions[sequences[:, None, None, None], torch.arange(length, device=x.device)[None, None, None, :]]
        mask = (columns <= rows) & torch.ones((), dtype=torch.bool, device=x.device)
        if self.varies:
            mask = mask & ((columns >= sequences[:, None, None, None] % 3) | (columns == rows))
        heads = x.unflatten(2, (2, 4)).transpose(1, 2)
        return self.out(nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask).transpose(1, 2).flatten(2))


class Viewed(nn.Module):
    """A view of a constant that PyTorch has without repeats: with them, its strides allow no such view."""

    def forward(self, x):
        batch, length = x.shape[:2]
        numbers = torch.zeros(batch, length, dtype=torch.long, device=x.device) + torch.arange(batch, device=x.device)[:, None]
        numbers = (numbers[:, None] + torch.zeros(1, 3, 1, dtype=torch.long, device=x.device)).transpose(0, 1).contiguous()
        return x.sum() + numbers.view(3, -1).to(x.dtype)


def export(name, model, x):
    torch.export.save(torch.export.export(model.eval(), (x,)), FOLDER / f"{name}.pt2")


FOLDER.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
for name, model in (("same", Masked(False)), ("varying", Masked(True)), ("viewed", Viewed())):
    x = torch.randn(5, 7, 8)
    export(name, model, x)
    np.save(FOLDER / f"{name}-x.npy", x.numpy())
    np.save(FOLDER / f"{name}-y.npy", model(x).detach().numpy())

# Each tensor of the masks' size would take 2 GiB.
with torch.device("meta"):
    export("large", Masked(False), torch.zeros(2048, 1024, 8))
subprocess.run(["tp-import", FOLDER / "large.pt2", "-o", FOLDER / "large.mlir"], check=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
assert most < 1 << 30, f"importing a large batch takes {most} bytes"
