# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls, gradients and training on meshes of some number of ranks: in one process as a module, and as a script under torchrun.

usage: ranks.py NUMBER_OF_RANKS FOLDER

Each process writes its results to FOLDER/RANK.pt.
"""

import os
import pathlib
import sys
import tempfile

import torch
from torch.distributed.device_mesh import init_device_mesh

import tp_mlir as tp
from tp_mlir.mesh import read_mesh

sys.path.append(str(pathlib.Path(__file__).parent / "scripts"))
from networks import MLP, PLAN, Normalized  # noqa: E402
from tiny import Transformer, make_tokens  # noqa: E402

X = torch.linspace(-1, 1, 32).view(4, 8)
BLOCKS = {
    "tok_embeddings": tp.RowwiseParallel(input_layouts=tp.Replicate()),
    "layers.*.attention.w[qkv]": tp.ColwiseParallel(),
    "layers.*.attention.wo": tp.RowwiseParallel(output_layouts=tp.Shard(1)),
    "layers.*.attention_norm": tp.SequenceParallel(),
    "layers.*.ffn_norm": tp.SequenceParallel(),
    "layers.*.feed_forward.w[13]": tp.ColwiseParallel(),
    "layers.*.feed_forward.w2": tp.RowwiseParallel(),
    "output": tp.ColwiseParallel(output_layouts=tp.Shard(-1)),
}


def make(kind, *args, **options):
    """The same in all processes, whatever their seeds are."""
    torch.manual_seed(0)
    module = kind(*args, **options)
    torch.manual_seed(int(os.environ.get("RANK", "0")))
    return module


def init_mesh(*sizes):
    return tp.init_device_mesh("cpu", sizes, mesh_dim_names=("dp", "tp")[-len(sizes):])


def call(ranks):
    with torch.no_grad():
        for dtype in (torch.float32, torch.bfloat16):
            yield tp.parallelize_module(make(MLP).to(dtype), init_mesh(ranks), PLAN)(X.to(dtype))
        # Blocks of different sizes, and some without elements.
        yield tp.parallelize_module(make(MLP, 7, 5), init_mesh(ranks), PLAN)(X[:3, :7])
        model = tp.parallelize_module(make(Transformer), init_mesh(ranks), BLOCKS)
        yield model(make(make_tokens))
        yield torch.tensor(list(model.report.count().values()))
        turned = tp.DeviceMesh("cpu", list(reversed(range(ranks))))  # its ranks are in another order
        yield tp.parallelize_module(make(MLP, 7, 5), turned, PLAN)(X[:3, :7])
        # Results of which each rank holds a block, for two shapes of inputs.
        split = tp.parallelize_module(make(MLP), init_mesh(ranks), {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel(
            output_layouts=tp.Shard(0))}, example_inputs=[X, X[:3]])
        yield from map(split, (X, X[:3], X))


def update_buffers(ranks):
    model = tp.parallelize_module(make(Normalized), init_mesh(ranks), PLAN)
    with torch.no_grad():
        for x in (X, X[:3]):
            yield model(x)
    yield from model.buffers()


def differentiate(ranks):
    model, x = tp.parallelize_module(make(MLP), init_mesh(ranks), PLAN), X.clone().requires_grad_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    yield x.grad
    yield from (parameter.grad for parameter in model.parameters())
    yield from model.parameters()


def train(ranks):
    mesh = init_mesh(2, ranks // 2)
    model = tp.parallelize_module(make(Transformer), mesh["tp"], BLOCKS)
    tp.fully_shard(model, mesh=mesh["dp"])
    yield from train_transformer(model, clip_grad_norm=1.0)
    with torch.no_grad():
        yield model(make(make_tokens))


def train_fsdp(ranks):
    mesh = tp.init_device_mesh("cpu", (ranks,), mesh_dim_names=("dp",))
    model = make(Transformer)
    for block in model.layers:
        tp.fully_shard(block, mesh=mesh)
    yield from train_transformer(tp.fully_shard(model, mesh=mesh), update_module=False)


def train_transformer(model, **options):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = tp.train_step(model, loss="cross_entropy", optimizer=optimizer, **options)
    tokens = make(make_tokens)
    yield torch.tensor([step(tokens, target=tokens.roll(1, 1)).loss for _ in range(20)])
    yield from model.state_dict().values()
    yield from (value for state in optimizer.state_dict()["state"].values() for value in state.values())


def save_and_load(ranks):
    model = tp.parallelize_module(make(MLP), init_mesh(ranks), PLAN, example_inputs=X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(pathlib.Path(folder, "saved.tpx"))
        yield tp.load(pathlib.Path(folder, "saved.tpx"))(X)


def run(ranks):
    """The results by case."""
    cases = [call, differentiate, train_fsdp, *([update_buffers, save_and_load] if ranks == 2 else [train])]
    return {case.__name__: [tensor.detach().clone() for tensor in case(ranks)] for case in cases}


def check_positions(ranks):
    """A mesh says where this process is in it, as PyTorch's does."""
    theirs = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("dp", "tp"))
    for mesh in init_mesh(2, ranks // 2), read_mesh(theirs):
        assert (mesh.get_rank(), mesh.get_coordinate()) == (theirs.get_rank(), list(theirs.get_coordinate()))
        assert [mesh.get_local_rank(dim) for dim in ("dp", "tp", 1)] == [theirs.get_local_rank(dim) for dim in ("dp", "tp", 1)]
        assert mesh["tp"].get_local_rank() == theirs["tp"].get_local_rank()
        assert mesh._flatten().get_local_rank() == mesh.get_rank()
    turned = tp.DeviceMesh("cpu", [[3, 1], [2, 0]] if ranks == 4 else [[1, 0]], mesh_dim_names=("dp", "tp"))
    assert turned.get_coordinate() == ([[1, 1], [0, 1], [1, 0], [0, 0]] if ranks == 4 else [[0, 1], [0, 0]])[turned.get_rank()]


if __name__ == "__main__":
    results = run(int(sys.argv[1]))
    check_positions(int(sys.argv[1]))
    torch.save(results, pathlib.Path(sys.argv[2], f"{torch.distributed.get_rank()}.pt"))
