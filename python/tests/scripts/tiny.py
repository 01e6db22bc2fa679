# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models with the module names of those that scripts split."""

import torch
import torch.nn.functional as F
from torch import nn

DIM, HEADS, VOCABULARY, LENGTH = 32, 4, 64, 8


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_proj = nn.Linear(10, 32)
        self.relu = nn.ReLU()
        self.out_proj = nn.Linear(32, 6)

    def forward(self, x):
        return self.out_proj(self.relu(self.in_proj(x)))


class MLPModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 16)
        self.net2 = nn.Linear(16, 10)

    def forward(self, x):
        return self.net2(F.relu(self.net1(x)))


class Attention(nn.Module):
    """Views have -1 heads, as in torchtitan, so that they hold for whole and for local tensors."""

    def __init__(self, qk_norm=False, bias=False, kv_heads=HEADS):
        super().__init__()
        self.head_dim = DIM // HEADS
        self.repeats = HEADS // kv_heads
        self.wq = nn.Linear(DIM, DIM, bias=bias)
        self.wk = nn.Linear(DIM, kv_heads * self.head_dim, bias=bias)
        self.wv = nn.Linear(DIM, kv_heads * self.head_dim, bias=bias)
        self.wo = nn.Linear(DIM, DIM, bias=bias)
        self.q_norm = nn.RMSNorm(self.head_dim) if qk_norm else None
        self.k_norm = nn.RMSNorm(self.head_dim) if qk_norm else None

    def forward(self, x, freqs):
        batch, length, _ = x.shape
        q, k, v = (w(x).view(batch, length, -1, self.head_dim) for w in (self.wq, self.wk, self.wv))
        if self.q_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotate(q, freqs), rotate(k, freqs)
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        if self.repeats > 1:
            k, v = (torch.repeat_interleave(y, self.repeats, dim=1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(batch, length, -1))


def rotate(x, freqs):
    first, second = x.chunk(2, -1)
    cos, sin = freqs.cos()[:, None], freqs.sin()[:, None]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(DIM, 64, bias=False)
        self.w2 = nn.Linear(64, DIM, bias=False)
        self.w3 = nn.Linear(DIM, 64, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.attention_norm = nn.RMSNorm(DIM)
        self.attention = Attention(**options)
        self.ffn_norm = nn.RMSNorm(DIM)
        self.feed_forward = FeedForward()

    def forward(self, x, freqs):
        x = x + self.attention(self.attention_norm(x), freqs)
        return x + self.feed_forward(self.ffn_norm(x))


class Transformer(nn.Module):
    """A decoder as in torchtitan and in PyTorch's tutorials; `layers` is a list, or a ModuleDict with `as_dict`."""

    def __init__(self, layers=1, as_dict=False, **options):
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, DIM)
        blocks = [TransformerBlock(**options) for _ in range(layers)]
        self.layers = nn.ModuleDict({str(i): block for i, block in enumerate(blocks)}) if as_dict else nn.ModuleList(blocks)
        self.norm = nn.RMSNorm(DIM)
        self.output = nn.Linear(DIM, VOCABULARY, bias=False)
        positions = torch.arange(LENGTH)[:, None] / 10 ** torch.arange(DIM // HEADS // 2)
        self.register_buffer("freqs", positions, persistent=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers.values() if isinstance(self.layers, nn.ModuleDict) else self.layers:
            x = layer(x, self.freqs)
        return self.output(self.norm(x))


class GPTBlock(nn.Module):
    """nanoGPT's: query, key and value are one product."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(DIM, 3 * DIM), "c_proj": nn.Linear(DIM, DIM)})
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (y.view(batch, length, HEADS, -1).transpose(1, 2) for y in self.attn.c_attn(self.ln_1(x)).split(DIM, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, DIM)
        x = x + self.attn.c_proj(y)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """With tied embeddings."""

    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(VOCABULARY, DIM), "wpe": nn.Embedding(LENGTH, DIM),
                                          "h": nn.ModuleList([GPTBlock()]), "ln_f": nn.LayerNorm(DIM)})
        self.lm_head = nn.Linear(DIM, VOCABULARY, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, ids):
        x = self.transformer.wte(ids) + self.transformer.wpe(torch.arange(ids.shape[1]))
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM) for _ in range(4))

    def forward(self, x, context, *, mask=None):
        batch = x.shape[0]
        q, k, v = (w(y).view(batch, y.shape[1], -1, DIM // HEADS).transpose(1, 2)
                   for w, y in ((self.q, x), (self.k, context), (self.v, context)))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o(y.transpose(1, 2).flatten(2))


class EncoderDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(DIM, 64), nn.GELU(), nn.Linear(64, DIM))
        self.cross = CrossAttention()
        self.norm = nn.LayerNorm(DIM)

    def forward(self, x, context):
        return self.norm(x + self.cross(x, context=self.encoder(context)))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, 4, stride=4)
        self.block = GPTBlock()
        self.head = nn.Linear(DIM, 10)

    def forward(self, images):
        return self.head(self.block(self.patches(images).flatten(2).transpose(1, 2)).mean(1))


def make_tokens(batch=4):
    return torch.randint(0, VOCABULARY, (batch, LENGTH))
