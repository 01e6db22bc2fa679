# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The decoder of llama_graphs.py in PyTorch, parallelized by parallelize_module as torchtitan does, on a process group that
only pretends: one process sees the collectives of rank 0, on tensors without data.

    python dtensor_llama.py '{"layers": 2, "mesh": [["dp", 2], ["tp", 4]], "sequence": false}' …

prints one line of JSON per configuration: every collective with the bytes that a rank receives in it."""

import json
import math
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from llama_graphs import Config


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.head_dim = config.head_dim
        for name in ("wq", "wk", "wv", "wo"):
            setattr(self, name, nn.Linear(config.dim, config.dim, bias=False))

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q, k, v = (linear(x).view(batch, length, -1, self.head_dim) for linear in (self.wq, self.wk, self.wv))
        q, k, v = (y.transpose(1, 2) for y in (rotate(q, cos, sin), rotate(k, cos, sin), v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(out.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.w1 = nn.Linear(config.dim, config.hidden, bias=False)
        self.w3 = nn.Linear(config.dim, config.hidden, bias=False)
        self.w2 = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(config.dim, 1e-5), nn.RMSNorm(config.dim, 1e-5)
        self.attention, self.feed_forward = Attention(config), FeedForward(config)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.feed_forward(self.ffn_norm(x))


def get_plan(sequence):
    plan = {f"attention.w{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"feed_forward.w{name}": ColwiseParallel() for name in "13"}
    if not sequence:
        return plan | {"attention.wo": RowwiseParallel(), "feed_forward.w2": RowwiseParallel()}
    gather = {"input_layouts": (Shard(1), None, None), "desired_input_layouts": (Replicate(), None, None)}
    return plan | {
        "attention_norm": SequenceParallel(), "ffn_norm": SequenceParallel(),
        "attention": PrepareModuleInput(**gather),
        "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "attention.wo": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1), use_local_output=False)}


class CountBytes(TorchDispatchMode):
    """Collectives below DTensor, with what a rank of `group_size` receives."""

    def __init__(self, group_size):
        super().__init__()
        self.group_size, self.collectives = group_size, []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        name = function._opname
        if function.namespace == "_c10d_functional" and not name.startswith(("wait", "_wrap")):
            n, size = self.group_size, result.numel() * result.element_size()
            kind, received = {"all_reduce": ("all_reduce", 2 * (n - 1) * size // n),
                              "all_gather_into_tensor": ("all_gather", (n - 1) * size // n),
                              "reduce_scatter_tensor": ("reduce_scatter", (n - 1) * size),
                              "all_to_all_single": ("all_to_all", (n - 1) * size // n)}[name]
            self.collectives.append([kind, received])
        return result


def run(options):
    config = Config(**{**options, "mesh": tuple(map(tuple, options["mesh"]))})
    world = math.prod(size for _, size in config.mesh)
    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    mesh = init_device_mesh("cpu", tuple(size for _, size in config.mesh), mesh_dim_names=tuple(name for name, _ in config.mesh))
    tp = mesh[config.mesh[-1][0]]
    with torch.device("meta"):
        blocks = [Block(config) for _ in range(config.layers)]
        # The data-parallel dimension is DTensor's caller's: each of its ranks has a part of the batch.
        length = config.length // config.tp if config.sequence else config.length
        x = torch.empty(config.batch // config.dp, length, config.dim)
        table = torch.empty(config.length, 1, config.head_dim // 2)
    for block in blocks:
        parallelize_module(block, tp, get_plan(config.sequence))
    if config.sequence:
        x = DTensor.from_local(x, tp, [Shard(1)], run_check=False)
    with torch.no_grad(), CountBytes(config.tp) as counter:
        for block in blocks:
            x = block(x, table, table)
        if isinstance(x, DTensor):  # pending sums, if any
            x.redistribute(tp, [Shard(1)])
    dist.destroy_process_group()
    return {"layers": config.layers, "collectives": counter.collectives}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps(run(json.loads(argument))), flush=True)
