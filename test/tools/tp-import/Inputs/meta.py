"""Exports of models that were built on the meta device, beside the same from the CPU: meta.py <dir>"""

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DIRECTORY = Path(sys.argv[1])
SIZE, HEADS, WORDS, TOKENS = 16, 4, 24, 6
warnings.simplefilter("ignore")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(SIZE)
        self.qkv, self.out = nn.Linear(SIZE, 3 * SIZE), nn.Linear(SIZE, SIZE)
        self.register_buffer("scale", torch.full((SIZE,), 0.5))

    def forward(self, x, mask):
        split = lambda t: t.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        q, k, v = map(split, self.qkv(self.norm(x) * self.scale).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
        return x + torch.where(y > 0, self.out(y), y).relu()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, SIZE)
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(SIZE, WORDS)

    def forward(self, ids):
        x, places = self.words(ids), torch.arange(ids.shape[1], device=ids.device)
        mask = (places[None, :] <= places[:, None])[None, None] & torch.logical_not(ids == 0)[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x.index_select(1, places[-2:]))


class Unsaved(nn.Module):
    def __init__(self):
        super().__init__()
        self.tied = nn.Embedding(WORDS, SIZE)
        self.head = nn.Linear(SIZE, WORDS, bias=False)
        self.head.weight = self.tied.weight
        self.register_buffer("frequencies", torch.ones(SIZE), persistent=False)

    def forward(self, ids):
        return self.head(self.tied(ids) * self.frequencies)


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("angles", torch.ones(4, dtype=torch.complex64))

    def forward(self, x):
        return torch.view_as_real(self.angles * x)


def export(name, make, device, *inputs):
    with torch.device(device):
        torch.manual_seed(0)
        model = make().eval()
    inputs = tuple(x.to(device) for x in inputs)
    torch.export.save(torch.export.export(model, inputs), DIRECTORY / f"{name}.pt2")
    return model(*inputs)


DIRECTORY.mkdir(parents=True, exist_ok=True)
ids = torch.arange(2 * TOKENS).reshape(2, TOKENS) % WORDS
np.save(DIRECTORY / "ids.npy", ids.numpy())
np.save(DIRECTORY / "output.npy", export("cpu", Model, "cpu", ids).detach().numpy())
export("meta", Model, "meta", ids)
export("unsaved", Unsaved, "meta", ids)
export("complex", Complex, "meta", torch.ones(4))
