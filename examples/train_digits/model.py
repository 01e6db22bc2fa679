# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small vision transformer for the 8×8 images of scikit-learn's digits."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    image: int = 8  # pixels on a side
    patch: int = 2
    dim: int = 64
    n_layers: int = 3
    n_heads: int = 4
    hidden_dim: int = 192
    classes: int = 10
    dropout: float = 0.1


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.head_dim = config.dim // config.n_heads
        self.query = nn.Linear(config.dim, config.dim)
        self.key = nn.Linear(config.dim, config.dim)
        self.value = nn.Linear(config.dim, config.dim)
        self.output = nn.Linear(config.dim, config.dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            project(x).view(batch, length, -1, self.head_dim).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        return self.output(y.transpose(1, 2).reshape(batch, length, -1))


class MLP(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.up = nn.Linear(config.dim, config.hidden_dim)
        self.down = nn.Linear(config.hidden_dim, config.dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.dim)
        self.attention = Attention(config)
        self.mlp_norm = nn.LayerNorm(config.dim)
        self.mlp = MLP(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        return x + self.dropout(self.mlp(self.mlp_norm(x)))


class ViT(nn.Module):
    """Maps images (B×8×8, f32) to logits (B×10)."""

    def __init__(self, config: Config):
        super().__init__()
        self.patch = config.patch
        self.side = config.image // config.patch  # patches on a side
        self.embedding = nn.Linear(config.patch**2, config.dim)
        self.position = nn.Parameter(0.5 * torch.randn(self.side**2, config.dim))
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList([Block(config) for _ in range(config.n_layers)])
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, config.classes)

    def forward(self, x: Tensor) -> Tensor:
        side, patch = self.side, self.patch
        x = x.view(-1, side, patch, side, patch).transpose(2, 3)
        x = self.embedding(x.reshape(-1, side**2, patch**2))
        x = self.dropout(x + self.position)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


def build(config: Config = Config(), seed: int = 0) -> ViT:
    """A model with random weights, the same for the same seed; in training mode, with dropout."""
    torch.manual_seed(seed)
    return ViT(config)
