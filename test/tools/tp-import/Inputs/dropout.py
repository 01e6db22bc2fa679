"""Saves models with dropout, with attention that has it, and with layers that are skipped at random: dropout.py <directory>"""

import pathlib
import sys

import torch
from torch import nn


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.25)
        self.proj = nn.Linear(4, 3)

    def forward(self, x):
        return self.proj(self.dropout(x))


class Attention(nn.Module):
    """Two query heads share one head of keys and values."""

    def forward(self, q, k, v):
        dropout = 0.5 if self.training else 0.0
        return nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True, enable_gqa=True)


class Masked(nn.Module):
    def forward(self, q, mask):
        return nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask, dropout_p=0.5)


class Layerdrop(nn.Module):
    """Draws, as wav2vec2 does, a number that only training uses."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 3)

    def forward(self, x):
        skips = torch.rand([])
        return x if self.training and skips < 0.1 else self.proj(x)


directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
for model in (Dropped, Attention, Masked):
    torch.jit.script(model()).save(directory / f"{model.__name__}.pt")
layerdrop = torch.export.export(Layerdrop().eval(), (torch.randn(2, 4),), strict=True)
torch.export.save(layerdrop, directory / "Layerdrop.pt2")
