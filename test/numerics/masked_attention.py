#!/usr/bin/env python3
"""Attention with rows that see nothing, and embeddings' options, trained over ranks beside PyTorch: losses and parameters.

Decoders whose batch is padded at the left or right, with boolean and added masks, sliding windows and grouped heads, and
nn.MultiheadAttention. Every position counts in the loss, so that a NaN in a hidden row would reach all.
"""

import argparse
import pathlib
import sys
import tempfile

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sampling import take
from training import Case, check

DIM, HEADS, VOCABULARY, LENGTH = 16, 4, 12, 6


class Attention(nn.Module):
    def __init__(self, kind, groups):
        super().__init__()
        self.kind, self.groups = kind, groups
        size = DIM // HEADS
        self.wq, self.wo = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.wk, self.wv = nn.Linear(DIM, groups * size), nn.Linear(DIM, groups * size)

    def forward(self, x, mask):
        q, k, v = (y.view(*y.shape[:2], -1, DIM // HEADS).transpose(1, 2) for y in (self.wq(x), self.wk(x), self.wv(x)))
        # PyTorch's fused kernels lose the weights of a row that numbers hide in their backward pass.
        backends = [SDPBackend.MATH] if self.kind == "lowest" else [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
        with sdpa_kernel(backends):
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=self.groups != HEADS)
        return self.wo(y.transpose(1, 2).flatten(2))


class Torch(nn.Module):
    """PyTorch's module, of which a mask says true where it hides."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(DIM, HEADS, batch_first=True)

    def forward(self, x, seen, causal):
        return self.inner(x, x, x, key_padding_mask=~seen, attn_mask=~causal, need_weights=False)[0]


class Decoder(nn.Module):
    def __init__(self, kind, groups=HEADS, window=LENGTH, **embedding):
        super().__init__()
        self.kind, self.window = kind, window
        self.tok = nn.Embedding(VOCABULARY, DIM, **embedding)
        self.pos = nn.Embedding(LENGTH, DIM)
        self.attention = nn.ModuleList(Torch() if kind == "module" else Attention(kind, groups) for _ in range(2))
        self.output = nn.Linear(DIM, VOCABULARY)

    def forward(self, tokens):
        seen = tokens != 0
        i = torch.arange(LENGTH)
        causal = (i[None] <= i[:, None]) & (i[:, None] - i[None] < self.window)
        x = self.tok(tokens) + self.pos(i)
        mask = (causal & seen[:, None])[:, None]
        if self.kind == "added":
            mask = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        if self.kind == "lowest":
            mask = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
        for layer in self.attention:
            x = x + (layer(x, seen, causal) if self.kind == "module" else layer(x, mask))
        return self.output(x)


PLANS = {
    "one": "mesh: {tp: 1}\n",
    "tp2": "mesh: {tp: 2}\n",
    "tp4": "mesh: {tp: 4}\n",
    "dp2 x tp2": "mesh: {dp: 2, tp: 2}\ndata_parallel: {dp: fsdp}\n",
}
STYLES = """plan:
  attention.*.w[qkv]: ColwiseParallel
  attention.*.wo: RowwiseParallel
"""
MODULE_STYLES = """plan:
  attention.*.inner.out_proj: RowwiseParallel
"""
EMBEDDING_STYLES = "  tok: {style: RowwiseParallel, input_layouts: Replicate}\n"

MODELS = {
    "boolean": {"kind": "boolean"},
    "added": {"kind": "added"},
    "lowest": {"kind": "lowest"},
    "grouped": {"kind": "boolean", "groups": 2},
    "window": {"kind": "boolean", "window": 2},
    "module": {"kind": "module"},
    "padding row": {"kind": "boolean", "padding_idx": 3},
    "frequency": {"kind": "boolean", "padding_idx": 3, "scale_grad_by_freq": True},
}


def make_tokens(window):
    """Padded by zeros at the left; for a window also at the right, where it sees nothing but padding."""
    tokens = torch.randint(1, VOCABULARY, (4, LENGTH))
    for row, count in enumerate((0, 2, LENGTH, 4)):
        tokens[row, :count] = 0
    if window < LENGTH:
        tokens[1, 3:] = 0
    return tokens


def get_cases():
    for model_name, options in MODELS.items():
        for plan_name, plan in PLANS.items():
            for compute in ("f32", "bf16"):
                if compute == "bf16" and (plan_name not in ("tp2", "one") or options["kind"] == "lowest"):
                    continue
                groups = options.get("groups", HEADS)
                if plan_name == "tp4" and groups < 4:
                    continue
                torch.manual_seed(3)
                model = Decoder(**options)
                tokens = make_tokens(model.window)
                styles = MODULE_STYLES if options["kind"] == "module" else STYLES
                if "padding_idx" in options and "tp" in plan_name:
                    styles += EMBEDDING_STYLES
                train = {"loss": "cross_entropy", "optimizer": {"name": "SGD", "lr": 0.5, "momentum": 0.5}}
                if compute != "f32":
                    train["compute"] = compute
                yield Case(f"{model_name}, {plan_name}, {compute}", model, tokens, torch.randint(VOCABULARY, (4, LENGTH)),
                           plan + styles, train, lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.5),
                           lambda logits, target: nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()),
                           tolerance=0.04 if compute == "bf16" else 2e-4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    options = parser.parse_args()
    cases = take(case for case in get_cases() if options.filter in case.name)
    failures = proven = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = options.keep / case.name.replace(" ", "_") if options.keep else pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                proven += check(case, options.tools, folder)
            except AssertionError as error:
                failures += 1
                print(f"FAIL {case.name}: {error}", flush=True)
    print(f"{len(cases) - failures} of {len(cases)} trainings equal PyTorch's, {proven} proven by rules")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
