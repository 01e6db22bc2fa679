#!/usr/bin/env python3
"""A decoder's block for a batch of one sequence computes what PyTorch does, on the host and on the fake device: all tokens at once, and
one token with a cache. Its residuals, rotary positions and norms of one row are the forms that fusion knows.

  decoder_block.py FOLDER    # of the fake device's libraries
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ops import load, save

DIM, HEADS, KV_HEADS, HEAD, HIDDEN, TOKENS, CONTEXT = 64, 4, 2, 16, 96, 24, 40


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(DIM, eps=1e-5), nn.RMSNorm(DIM, eps=1e-5)
        self.wq = nn.Linear(DIM, HEADS * HEAD)
        self.wk, self.wv = nn.Linear(DIM, KV_HEADS * HEAD, bias=False), nn.Linear(DIM, KV_HEADS * HEAD, bias=False)
        self.wo = nn.Linear(HEADS * HEAD, DIM)
        self.w1, self.w3 = nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(DIM, HIDDEN, bias=False)
        self.w2 = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x, cos, sin, keys=None, values=None):
        batch, length, _ = x.shape
        h = self.attention_norm(x)
        q, k, v = (w(h).view(batch, length, -1, HEAD).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        cache, is_prompt = (k, v) if keys is None else (keys, values), keys is None
        y = F.scaled_dot_product_attention(q, *cache, is_causal=is_prompt, enable_gqa=True)
        h = x + self.wo(y.transpose(1, 2).contiguous().view(batch, length, -1))
        n = self.ffn_norm(h)
        return h + self.w2(F.silu(self.w1(n)) * self.w3(n)), k, v


def run(*command, **options):
    process = subprocess.run([shutil.which(command[0]), *map(str, command[1:])], capture_output=True, text=True, **options)
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed with {process.returncode}:\n{process.stderr[-4000:]}")


def check(name, shapes, dtype, tolerance, folder, fake_cuda):
    module = Block().to(dtype).eval()
    inputs = {key: torch.randn(shape).to(dtype) for key, shape in shapes.items()}
    with torch.no_grad():
        torch.jit.trace(module, tuple(inputs.values()), check_trace=False).save(folder / "model.pt")
        expected = module(*inputs.values())
    types = [word for key, value in inputs.items()
             for word in ("--input", f"{key}={'x'.join(map(str, value.shape))}x{'bf16' if dtype == torch.bfloat16 else 'f32'}")]
    run("tp-import", folder / "model.pt", *types, "-o", folder / "model.mlir", "--weights", folder / "model.safetensors")
    for key, value in inputs.items():
        save(folder / f"{key}.npy", value)
    for device, options, environment in (("host", [], os.environ), ("fake device", ["--target=cuda:emulated"],
                                                                    dict(os.environ, LD_LIBRARY_PATH=fake_cuda))):
        run("tp-compile", folder / "model.mlir", *options, "-o", folder / "model.tpx")
        run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors",
            *(word for key in inputs for word in ("--input", f"{key}={folder / key}.npy")),
            *(word for i in range(3) for word in ("--output", f"output{i}={folder}/{i}.npy")), env=environment)
        for i, value in enumerate(expected):
            actual = load(folder / f"{i}.npy", dtype)
            np.testing.assert_allclose(actual.float(), value.float(), rtol=tolerance, atol=tolerance, err_msg=f"{name}, {device}, {i}")
        print(f"{name}, {dtype}: the {device} computes what PyTorch does")


def main(fake_cuda):
    torch.manual_seed(0)
    positions, cache = (TOKENS, HEAD), (1, KV_HEADS, CONTEXT, HEAD)
    prompt = {"x": (1, TOKENS, DIM), "cos": positions, "sin": positions}
    token = {"x": (1, 1, DIM), "cos": (1, HEAD), "sin": (1, HEAD), "keys": cache, "values": cache}
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 4e-2)):
        for name, shapes in (("all tokens", prompt), ("one token", token)):
            with tempfile.TemporaryDirectory() as folder:
                check(name, shapes, dtype, tolerance, pathlib.Path(folder), fake_cuda)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
