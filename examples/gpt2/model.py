# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small GPT-2-style decoder: learned positions, LayerNorm before each block,
tanh GELU, and an output projection that shares its weight with the embedding."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    dim: int = 96
    n_layers: int = 2
    n_heads: int = 12
    vocab_size: int = 480
    max_seq_len: int = 64


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.head_dim = config.dim // config.n_heads
        self.query = nn.Linear(config.dim, config.dim)
        self.key = nn.Linear(config.dim, config.dim)
        self.value = nn.Linear(config.dim, config.dim)
        self.proj = nn.Linear(config.dim, config.dim)
        self.dropout = nn.Dropout(0.1)

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), -1, self.head_dim).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.dropout(self.proj(y.transpose(1, 2).reshape(x.size(0), x.size(1), -1)))


class MLP(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.fc = nn.Linear(config.dim, 4 * config.dim)
        self.gelu = nn.GELU(approximate="tanh")
        self.proj = nn.Linear(4 * config.dim, config.dim)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.proj(self.gelu(self.fc(x))))


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.dim)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.dim)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Maps token ids (B×T, int64) to logits (B×T×vocab_size, f32)."""

    def __init__(self, config: Config):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.dim)
        self.wpe = nn.Embedding(config.max_seq_len, config.dim)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layers)])
        self.ln_f = nn.LayerNorm(config.dim)
        self.lm_head = nn.Linear(config.dim, config.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        position = torch.arange(ids.size(1), device=ids.device)
        x = self.wte(ids) + self.wpe(position)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def build(config: Config = Config(), seed: int = 0) -> GPT2:
    """A decoder with random weights, the same for the same seed."""
    torch.manual_seed(seed)
    return GPT2(config).eval()
