# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small Llama-style decoder in the form of torchtitan's: RMSNorm, rotary
embeddings, grouped-query attention, SwiGLU, causal logits."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    dim: int = 192
    n_layers: int = 2
    n_heads: int = 24
    n_kv_heads: int = 12  # fewer than n_heads: grouped-query attention
    hidden_dim: int = 384
    vocab_size: int = 480
    max_seq_len: int = 64
    rope_theta: float = 10000.0
    attention: str = "sdpa"  # or "eager", written out
    norm: str = "fused"  # nn.RMSNorm, or "composed", written out


class ComposedRMSNorm(nn.Module):
    """nn.RMSNorm in elementary ops, as many published models have it."""

    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (x.float() * scale).type_as(x) * self.weight


def make_norm(config: Config) -> nn.Module:
    if config.norm == "composed":
        return ComposedRMSNorm(config.dim)
    return nn.RMSNorm(config.dim, eps=1e-5)


def rotary_table(config: Config) -> tuple[Tensor, Tensor]:
    """cos and sin, each max_seq_len × head_dim, halves repeated."""
    head_dim = config.dim // config.n_heads
    frequency = config.rope_theta ** (-torch.arange(0, head_dim, 2) / head_dim)
    angle = torch.outer(torch.arange(config.max_seq_len), frequency).repeat(1, 2)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x (B×T×H×D) by the tables cos and sin (T×D)."""
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return x * cos.unsqueeze(1) + turned * sin.unsqueeze(1)


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.head_dim = config.dim // config.n_heads
        self.groups = config.n_heads // config.n_kv_heads
        self.eager = config.attention == "eager"
        kv_dim = config.n_kv_heads * self.head_dim
        self.wq = nn.Linear(config.dim, config.dim, bias=False)
        self.wk = nn.Linear(config.dim, kv_dim, bias=False)
        self.wv = nn.Linear(config.dim, kv_dim, bias=False)
        self.wo = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        # -1 heads: as many as the projection has on this rank.
        q = self.wq(x).view(batch, length, -1, self.head_dim)
        k = self.wk(x).view(batch, length, -1, self.head_dim)
        v = self.wv(x).view(batch, length, -1, self.head_dim)
        q = rotate(q, cos, sin).transpose(1, 2)
        k = rotate(k, cos, sin).transpose(1, 2)
        v = v.transpose(1, 2)
        if self.eager:
            y = self.written_out(q, k, v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).contiguous().view(batch, length, -1))

    def written_out(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = self.repeat(k), self.repeat(v)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        length = q.size(2)
        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
        return F.softmax(scores.float(), dim=-1).type_as(q) @ v

    def repeat(self, x: Tensor) -> Tensor:
        """Each key/value head once for every query head of its group."""
        batch, heads, length, dim = x.shape
        x = x[:, :, None].expand(batch, heads, self.groups, length, dim)
        return x.reshape(batch, heads * self.groups, length, dim)


class FeedForward(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.w1 = nn.Linear(config.dim, config.hidden_dim, bias=False)
        self.w2 = nn.Linear(config.hidden_dim, config.dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.hidden_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.ffn_norm = make_norm(config)
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        h = x + self.attention(self.attention_norm(x), cos, sin)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    """Maps token ids (B×T, int64) to logits (B×T×vocab_size, f32)."""

    def __init__(self, config: Config):
        super().__init__()
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList([Block(config) for _ in range(config.n_layers)])
        self.norm = make_norm(config)
        self.output = nn.Linear(config.dim, config.vocab_size, bias=False)
        cos, sin = rotary_table(config)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.size(1)
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x, self.cos[:length], self.sin[:length])
        return self.output(self.norm(x))


def build(config: Config = Config(), seed: int = 0) -> Llama:
    """A decoder with random weights, the same for the same seed."""
    torch.manual_seed(seed)
    return Llama(config).eval()
