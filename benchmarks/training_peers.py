#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps, or forward passes, of a Llama-style model in PyTorch: in one process, as DTensor's parallelize_module shards it, and
sharded by hand after Megatron-LM. training_step.py and run_all.py run it; alone:

    python training_peers.py single --threads 2
    torchrun --nproc-per-node 2 training_peers.py dtensor
    torchrun --nproc-per-node 2 training_peers.py megatron

Prints one line of JSON: seconds of each step (forward, loss, backward, AdamW), and the losses; with --forward, those of the forward
pass alone, with gradients off."""

import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

import leaving
import short

LAYERS, DIM, HEADS, HIDDEN = 4, 512, 8, 1536
BATCH, LENGTH = 2, 256
LEARNING_RATE = 1e-4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.head_dim = DIM // HEADS
        for name in ("wq", "wk", "wv", "wo"):
            self.add_module(name, nn.Linear(DIM, DIM, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape

        def heads(y: Tensor) -> Tensor:  # as many as this rank has
            return y.view(batch, length, -1, self.head_dim).transpose(1, 2)

        y = F.scaled_dot_product_attention(heads(self.wq(x)), heads(self.wk(x)), heads(self.wv(x)), is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(DIM, HIDDEN, bias=False)
        self.w2 = nn.Linear(HIDDEN, DIM, bias=False)
        self.w3 = nn.Linear(DIM, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Decoder(nn.Module):
    """Blocks and a norm, from activations to activations (B×T×512, f32)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def build() -> tuple[Decoder, Tensor]:
    """The model and its input, the same in every process."""
    torch.manual_seed(0)
    return Decoder(), torch.randn(BATCH, LENGTH, DIM)


class Enter(torch.autograd.Function):
    """Into a tensor-parallel part: the identity; its gradient is the sum of what the ranks found."""

    @staticmethod
    def forward(context, x):
        return x

    @staticmethod
    def backward(context, gradient):
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient)
        return gradient


class Leave(torch.autograd.Function):
    """Out of it: the ranks' sum; its gradient is the identity."""

    @staticmethod
    def forward(context, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(context, gradient):
        return gradient


def shard_by_hand(model: Decoder) -> Decoder:
    """Each rank keeps its heads and its part of the hidden features; only Enter and Leave communicate."""
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def keep(linear: nn.Linear, dim: int):
        linear.weight = nn.Parameter(linear.weight.detach().chunk(ranks, dim)[rank].contiguous())

    for layer in model.layers:
        for part, columns, rows in ((layer.attention, ("wq", "wk", "wv"), "wo"),
                                    (layer.feed_forward, ("w1", "w3"), "w2")):
            for name in columns:
                keep(getattr(part, name), 0)
            keep(getattr(part, rows), 1)
            part.register_forward_pre_hook(lambda _, inputs: (Enter.apply(*inputs),))
            part.register_forward_hook(lambda _, inputs, output: Leave.apply(output))
    return model


def shard_by_dtensor(model: Decoder) -> Decoder:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {
        "layers.*.attention.w[qkv]": ColwiseParallel(), "layers.*.attention.wo": RowwiseParallel(),
        "layers.*.feed_forward.w[13]": ColwiseParallel(), "layers.*.feed_forward.w2": RowwiseParallel(),
    }
    return parallelize_module(model, init_device_mesh("cpu", (dist.get_world_size(),)), plan)


def measure_forward(model: Decoder, x: Tensor, steps: int, parallel: bool):
    """Seconds of each forward pass, and the mean square of its result."""
    seconds, losses = [], []
    with torch.no_grad():
        for _ in range(steps):
            if parallel:
                dist.barrier()
            start = time.perf_counter()
            y = model(x)
            seconds.append(time.perf_counter() - start)
            losses.append(y.square().mean().item())
    return seconds, losses


def measure(model: Decoder, x: Tensor, steps: int, parallel: bool):
    """Seconds and loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    seconds, losses = [], []
    for _ in range(steps):
        if parallel:
            dist.barrier()
        start = time.perf_counter()
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        losses.append(loss.item())
    return seconds, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["single", "dtensor", "megatron"])
    parser.add_argument("--threads", type=int, default=1, help="of each process (default: %(default)s)")
    parser.add_argument("--forward", action="store_true", help="forward passes instead of steps")
    parser.add_argument("--steps", type=int, default=15, help="(default: %(default)s)")
    short.add_option(parser, steps=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model, x = build()
    parallel = arguments.mode != "single"
    if parallel:
        dist.init_process_group("gloo")
        model = (shard_by_hand if arguments.mode == "megatron" else shard_by_dtensor)(model)
    timed = measure_forward if arguments.forward else measure
    seconds, losses = timed(model, x, arguments.steps, parallel)
    if not parallel or dist.get_rank() == 0:
        print(json.dumps({"seconds": seconds, "losses": losses}))
    if parallel:
        leaving.leave()


if __name__ == "__main__":
    main()
