# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DTensors in and out of this package, against PyTorch's own computation with them; a script under torchrun.

usage: dtensor_ranks.py FOLDER CASE…

Each process checks the results of the cases, functions below, and then writes what the last one returns to FOLDER/RANK.
"""

import contextlib
import json
import os
import pathlib
import sys
import unittest
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.utils import _pytree as pytree

import tp_mlir as tp
from tp_mlir import processes

sys.path.append(str(pathlib.Path(__file__).parent / "scripts"))
from networks import MLP, Normalized  # noqa: E402
from tiny import Transformer, make_tokens  # noqa: E402

TEST = unittest.TestCase()
PLAN = {"up": ColwiseParallel(), "down": RowwiseParallel()}
BLOCKS = {
    "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    "layers.0.attention_norm": SequenceParallel(),
    "layers.0.ffn_norm": SequenceParallel(),
    "layers.0.attention": PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None)),
    "layers.0.attention.wq": ColwiseParallel(),
    "layers.0.attention.wk": ColwiseParallel(),
    "layers.0.attention.wv": ColwiseParallel(),
    "layers.0.attention.wo": RowwiseParallel(output_layouts=Shard(1)),
    "layers.0.feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
    "layers.0.feed_forward.w1": ColwiseParallel(),
    "layers.0.feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
    "layers.0.feed_forward.w3": ColwiseParallel(),
}
X = torch.linspace(-1, 1, 32).view(4, 8)


def make(kind, *args, **options):
    """The same in all processes."""
    torch.manual_seed(0)
    return kind(*args, **options)


def init_mesh(*sizes):
    return init_device_mesh("cpu", sizes, mesh_dim_names=("dp", "tp")[-len(sizes):])


def get_size():
    return dist.get_world_size()


def assert_close(found, expected, tolerance=1e-5):
    if isinstance(found, DTensor):
        found = found.full_tensor()
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def get_weights(module):
    return module.__dict__["_tp_mlir"].get_last().bundle.weights


@contextlib.contextmanager
def counting():
    """Notes the collectives that this process calls in it: those of PyTorch, and those between this package's ranks, which have
    threads of their own."""
    found, call = [], processes._Groups.call

    def note(groups, ranks, collective):
        found.append("between ranks")
        return call(groups, ranks, collective)

    processes._Groups.call = note
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            yield found
    finally:
        processes._Groups.call = call
    found += [event.name for event in profile.events() if "c10d" in event.name and "wait_tensor" not in event.name]


@contextlib.contextmanager
def without_collectives():
    with counting() as found:
        yield
    TEST.assertEqual(found, [])


@contextlib.contextmanager
def without_tensors(limit):
    """Fails if PyTorch allocates a tensor of `limit` bytes or more in it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        yield
    sizes = [event.nbytes() for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    TEST.assertTrue(sizes)
    TEST.assertLess(max(sizes), limit)


def measure_peak():
    """The most memory that this process has had since the last call, in bytes."""
    text = pathlib.Path("/proc/self/status").read_text()
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    return 1024 * next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM"))


def check_call(module, expected, *inputs):
    with torch.no_grad():
        assert_close(module(*inputs), expected)


def make_mlp(mesh, *sizes):
    return parallelize_module(make(MLP, *sizes), mesh, PLAN)


# ---- In: calls


def calls():
    """The DTensors of PyTorch's functions are taken as they are, and their placements are the plan."""
    mesh = init_mesh(get_size())
    sizes_of_inputs = {(8, 16): X, (7, 5): X[:3, :7]}  # the latter in blocks of different sizes, and some without elements
    for sizes, x in sizes_of_inputs.items():
        expected = make(MLP, *sizes)(x).detach()
        model = make_mlp(mesh, *sizes)
        if sizes == (8, 16):
            check_call(model, expected, x)  # PyTorch's own, which needs blocks of one size
        with without_collectives():
            TEST.assertIs(tp.parallelize_module(model, example_inputs=x), model)
        check_call(model, expected, x)
        check_blocks(model)
        path = get_folder() / f"saved-{dist.get_rank()}.tpx"
        model.save(path)  # whole weights
        check_call(tp.load(path), expected, x)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2)
        plain = make(MLP, *sizes)
        with torch.no_grad():
            for parameter in plain.parameters():
                parameter.mul_(2)
            plain.up.bias.add_(1)
            model.up.bias.to_local().add_(1)  # of which only the block knows
        check_call(model, plain(x).detach(), x)


def check_blocks(module, weights=None):
    """The session reads the blocks of DTensors where they are: none was redistributed."""
    weights = weights or get_weights(module)
    values, blocks = weights._split(weights.pushed.tensors)
    split = {name: tensor for name, tensor in module.named_parameters() if isinstance(tensor, DTensor) and not tensor.placements[0].is_replicate()}
    if get_size() > 1:
        TEST.assertLessEqual(split.keys(), blocks.keys())
    for name, block in (blocks | values).items():
        tensor = module.get_parameter(name)
        local = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
        TEST.assertEqual((block.data_ptr(), block.shape), (local.data_ptr(), local.shape), name)
        TEST.assertEqual(block.shape, weights._shardings[name].local_shape)


def ways_to_make():
    """distribute_tensor, distribute_module, a submesh, an unnamed mesh, an explicit plan, and checkpoints."""
    expected = make(MLP)(X).detach()
    mesh = init_mesh(get_size())
    model = make(MLP)
    for name, dim in ("up.weight", 0), ("up.bias", 0), ("down.weight", 1):
        replace(model, name, distribute_tensor(model.get_parameter(name), mesh, [Shard(dim)]))
    check_call(tp.parallelize_module(model), expected, X)
    TEST.assertEqual(tp.parallelize_module(model, {"tp": get_size()}), model)

    def split(name, module, mesh):
        if name:
            dim = int(name == "down")
            for key, parameter in list(module.named_parameters()):
                placement = Shard(dim) if parameter.ndim > dim else Replicate()
                module.register_parameter(key, torch.nn.Parameter(distribute_tensor(parameter, mesh, [placement])))

    model = distribute_module(make(MLP), mesh, split)
    with without_collectives():
        tp.parallelize_module(model, mesh, {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}, src_data_rank=0, example_inputs=X)
    check_call(model, expected, X)
    check_blocks(model)
    dcp.save(model.state_dict(), checkpoint_id=get_folder() / "model")
    loaded = make_mlp(mesh)
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.zero_()
    state = loaded.state_dict()
    dcp.load(state, checkpoint_id=get_folder() / "model")
    check_call(tp.parallelize_module(loaded), expected, X)
    if get_size() == 4:
        root = init_mesh(2, 2)
        model = make_mlp(root["tp"])  # whole along 'dp'
        with without_collectives():
            tp.parallelize_module(model, example_inputs=X)
        check_call(model, expected, X)
        model = make_mlp(root["tp"])
        with root["tp"]:
            tp.parallelize_module(model, parallelize_plan=PLAN)
        tp.fully_shard(model, mesh=root["dp"])  # whose blocks are parts of those of the DTensors
        check_call(model, expected, X)
        flat = make_mlp(root._flatten("all"))
        check_call(tp.parallelize_module(flat), expected, X)
        TEST.assertEqual([parameter.placements for parameter in flat.report.parameters if parameter.name == "up.weight"], [("Shard(0)", "Shard(0)")])


def replace(module, name, tensor):
    owner, _, key = name.rpartition(".")
    module.get_submodule(owner).register_parameter(key, torch.nn.Parameter(tensor))


def redistributions():
    """A plan that wants other placements: blocks go from rank to rank, and nothing is gathered."""
    mesh = init_mesh(get_size())
    model = make(MLP)
    for name, dim in ("up.weight", 1), ("down.weight", 0):
        replace(model, name, distribute_tensor(model.get_parameter(name), mesh, [Shard(dim)]))
    with counting() as found:
        tp.parallelize_module(model, mesh, {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}, src_data_rank=None, example_inputs=X)
    TEST.assertEqual([name for name in found if name == "between ranks"], ["between ranks"] * 2 if get_size() > 1 else [])
    TEST.assertFalse([name for name in found if "gather" in name or "reduce" in name])
    check_call(model, make(MLP)(X).detach(), X)
    # Changes, and a buffer that a forward writes.
    norm = make(Normalized)
    plain = make(Normalized)
    replace(norm, "up.weight", distribute_tensor(norm.up.weight, mesh, [Shard(1)]))
    norm.norm.running_mean = distribute_tensor(norm.norm.running_mean, mesh, [Shard(0)])
    norm.norm.running_var = distribute_tensor(norm.norm.running_var, mesh, [Replicate()])
    tp.parallelize_module(norm, mesh, {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()})
    for x in X, -X:
        with torch.no_grad():
            assert_close(norm(x), plain(x))
            norm.up.weight.mul_(1.5)
            plain.up.weight.mul_(1.5)
        for name, buffer in plain.named_buffers():
            assert_close(norm.get_buffer(name), buffer)


def gradients():
    """backward gives the DTensors their gradients, as blocks."""
    mesh = init_mesh(get_size())
    for sizes, x in ((8, 16), X), ((7, 5), X[:3, :7]):
        model, theirs, plain = tp.parallelize_module(make_mlp(mesh, *sizes)), make_mlp(mesh, *sizes), make(MLP, *sizes)
        modules = [model, plain] + [theirs] * (sizes == (8, 16))  # PyTorch's own needs blocks of one size
        for module in modules:
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
            for _ in range(5):
                optimizer.zero_grad()
                module(x).square().mean().backward()
                optimizer.step()
        for module in modules:
            for mine, other in zip(module.parameters(), plain.parameters()):
                assert_close(mine.detach(), other.detach(), 1e-4)
                assert_close(mine.grad, other.grad, 1e-4)
        for parameter in model.parameters():
            TEST.assertEqual((parameter.grad.placements, parameter.grad.device_mesh), (parameter.placements, mesh))
    # The blocks of gradients aren't gathered: what the ranks exchange is what the program's report says.
    model = tp.parallelize_module(make_mlp(mesh))
    loss = model(X).square().mean()
    loss.backward()
    (backward,) = model.__dict__["_tp_mlir"].get_last().backward.values()
    run = backward._executable.bundle.weights.session.last_run
    TEST.assertEqual(sum(count.bytes for count in run.counts[dist.get_rank()]), sum(
        item["bytes_by_rank"][dist.get_rank()] for item in json.loads(backward._executable.bundle.artifact.manifest)["programs"][0]["collectives"]))


# ---- In and out: training


def train(step_of, count=5):
    tokens = make(make_tokens)
    return [step_of(tokens, tokens.roll(1, 1)) for _ in range(count)]


def make_eager(module, **options):
    """A step of PyTorch's own."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, **options)

    def step(tokens, target):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(tokens).flatten(0, 1), target.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, optimizer


def make_step(module, **options):
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    step = tp.train_step(module, loss="cross_entropy", optimizer=optimizer, **options)
    return step, lambda tokens, target: step(tokens, target=target).loss, optimizer


def check_state(module, optimizer, plain, plain_optimizer):
    for (name, mine), other in zip(module.state_dict().items(), plain.state_dict().values(), strict=True):
        assert_close(mine, other, 1e-4)
        TEST.assertIsInstance(mine, DTensor, name)
    mine, other = optimizer.state_dict()["state"], plain_optimizer.state_dict()["state"]
    TEST.assertEqual(mine.keys(), other.keys())
    for key, values in other.items():
        for name, value in values.items():
            assert_close(mine[key][name], value, 1e-4)
            if name != "step":
                TEST.assertIsInstance(mine[key][name], DTensor)
                parameter = optimizer.param_groups[0]["params"][key]
                TEST.assertEqual((mine[key][name].placements, mine[key][name].device_mesh), (parameter.placements, parameter.device_mesh))


def make_transformer(size):
    """With all parameters distributed, by tensor parallelism, and with two dimensions by FSDP, too."""
    if size == 1:
        mesh = init_mesh(1)
        return parallelize_module(make(Transformer), mesh, BLOCKS)
    model = make(Transformer)
    if size == 4:
        mesh = init_mesh(2, 2)
        parallelize_module(model, mesh["tp"], BLOCKS)
        for block in model.layers:
            fully_shard(block, mesh=mesh["dp"])
        return fully_shard(model, mesh=mesh["dp"])
    return parallelize_module(model, init_mesh(size), BLOCKS)


def training_in():
    plain = make(Transformer)
    eager, plain_optimizer = make_eager(plain)
    expected = train(eager)
    if get_size() < 4:  # an eager FSDP needs a batch for each rank
        theirs, _ = make_eager(make_transformer(get_size()), foreach=False)
        assert_close(torch.tensor(train(theirs)), torch.tensor(expected), 1e-4)
    model = make_transformer(get_size())
    kinds = {name: (tensor.placements, tensor.device_mesh) for name, tensor in model.named_parameters() if isinstance(tensor, DTensor)}
    tokens = make(make_tokens)
    with without_collectives():
        step = tp.train_step(model, loss="cross_entropy", optimizer=torch.optim.AdamW(model.parameters(), lr=1e-2), example_inputs=tokens)
    found = train(lambda *args: step(args[0], target=args[1]).loss)
    assert_close(torch.tensor(found), torch.tensor(expected), 1e-4)
    with without_collectives():  # the module and the optimizer have the new values
        model.state_dict()
        step.optimizer.state_dict()
    for name, kind in kinds.items():
        tensor = model.get_parameter(name)
        TEST.assertEqual((tensor.placements, tensor.device_mesh), kind)
    distributed = tp.distribute(model)
    TEST.assertIs(distributed, model)
    check_state(model, step.optimizer, plain, plain_optimizer)


def training_fsdp():
    """PyTorch's fully_shard alone, with its own steps on a part of the batch in each process."""
    mesh = init_device_mesh("cpu", (get_size(),), mesh_dim_names=("dp",))

    def shard(model):
        for block in model.layers:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    theirs = shard(make(Transformer))
    eager, their_optimizer = make_eager(theirs)
    own = train(lambda tokens, target: eager(tokens.chunk(get_size())[dist.get_rank()], target.chunk(get_size())[dist.get_rank()]))
    losses = torch.tensor(own) / get_size()
    dist.all_reduce(losses)
    model = shard(make(Transformer))
    step, run, optimizer = make_step(model)
    found = train(run)
    check_blocks(model, step.loaded.bundle.weights)
    assert_close(torch.tensor(found), losses, 1e-4)
    for mine, other in zip(model.state_dict().values(), theirs.state_dict().values(), strict=True):
        TEST.assertEqual(mine.placements, other.placements)
        assert_close(mine, other.full_tensor(), 1e-4)
    for mine, other in zip(optimizer.state_dict()["state"].values(), their_optimizer.state_dict()["state"].values(), strict=True):
        assert_close(mine["exp_avg_sq"], other["exp_avg_sq"].full_tensor(), 1e-4)


def training_out():
    """Plain parameters become DTensors after some steps, and are saved and loaded without a gather."""
    plain = make(Transformer)
    eager, plain_optimizer = make_eager(plain)
    expected = train(eager, 5)
    for update_module in True, False:
        model = make(Transformer)
        if get_size() == 4:
            mesh = tp.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
            tp.fully_shard(tp.parallelize_module(model, mesh["tp"], BLOCKS), mesh=mesh["dp"])
        else:
            tp.parallelize_module(model, tp.init_device_mesh("cpu", (get_size(),)), BLOCKS)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        step = tp.train_step(model, loss="cross_entropy", optimizer=optimizer, update_module=update_module)
        found = train(lambda *args: step(args[0], target=args[1]).loss, 2)
        with without_collectives():
            tp.distribute(model)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        for tensor in pytree.tree_leaves([state["model"], [dict(values, step=None) for values in state["optimizer"]["state"].values()]]):
            TEST.assertIsInstance(tensor, (DTensor, type(None)))
        _, states = get_state_dict(model, optimizer)
        TEST.assertEqual(len(states["state"]), len(list(model.parameters())))
        dcp.save(state, checkpoint_id=get_folder() / f"training-{update_module}")
        compiled = step.executables
        found += train(lambda *args: step(args[0], target=args[1]).loss, 3)
        TEST.assertEqual(step.executables, compiled)  # not again
        assert_close(torch.tensor(found), torch.tensor(expected), 1e-4)
        check_state(model, optimizer, plain, plain_optimizer)
        # Back to the second step.
        dcp.load(state, checkpoint_id=get_folder() / f"training-{update_module}")
        optimizer.load_state_dict(state["optimizer"])
        assert_close(torch.tensor(train(lambda *args: step(args[0], target=args[1]).loss, 3)), torch.tensor(expected[2:]), 1e-4)
        check_state(model, optimizer, plain, plain_optimizer)


# ---- Out: calls


def out_of_calls():
    mesh = init_mesh(get_size())
    for sizes, x in ((8, 16), X), ((7, 5), X[:3, :7]):
        model = tp.parallelize_module(make(MLP, *sizes), mesh, PLAN)
        expected, whole = make(MLP, *sizes)(x).detach(), dict(make(MLP, *sizes).named_parameters())
        check_call(model, expected, x)
        with without_collectives():
            TEST.assertIs(tp.distribute(model), model)
            TEST.assertIs(tp.distribute(model), model)  # nothing is left to do
        theirs = make_mlp(mesh, *sizes)
        for name, parameter in model.named_parameters():
            TEST.assertIsInstance(parameter, torch.nn.Parameter)
            TEST.assertEqual(parameter.device_mesh, mesh)
            TEST.assertEqual(parameter.placements, theirs.get_parameter(name).placements)
            torch.testing.assert_close(parameter.to_local(), theirs.get_parameter(name).to_local())
            assert_close(parameter.detach(), whole[name].detach())
        check_call(model, expected, x)
        check_blocks(model)
    # A fused weight, of which each rank has a part of each of four segments: a _StridedShard.
    model = tp.parallelize_module(make(MLP), mesh, {"up.weight": [tp._StridedShard(0, split_factor=4)]})
    check_call(model, make(MLP)(X).detach(), X)
    tp.distribute(model)
    check_call(model, make(MLP)(X).detach(), X)
    assert_close(model.up.weight.detach(), make(MLP).up.weight.detach())
    # Tied parameters stay tied.
    tied = torch.nn.Sequential(make(torch.nn.Linear, 8, 8), torch.nn.ReLU(), make(torch.nn.Linear, 8, 8))
    tied[2].weight = tied[0].weight
    tp.parallelize_module(tied, mesh, {"0": tp.ColwiseParallel()})
    with torch.no_grad():
        expected = tied(X)
        tp.distribute(tied)
        TEST.assertIs(tied[2].weight, tied[0].weight)
        assert_close(tied(X), expected)


def memory():
    """No process has memory for a whole parameter: neither in, nor in a run, nor out."""
    size, mesh = 96 << 20, init_mesh(get_size())
    rows = size // 4 // 1024
    small = parallelize_module(make(MLP, 8, 16), mesh, PLAN)
    tp.parallelize_module(small, example_inputs=X)(X)  # loads what every model needs
    with torch.device("meta"):
        model = MLP(1024, rows)
    parallelize_module(model, mesh, PLAN)
    model.to_empty(device="cpu")
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            parameter.fill_(1 / 64)
    x = torch.ones(2, 1024)
    measure_peak()
    before = measure_peak()
    with without_tensors(size):
        tp.parallelize_module(model, example_inputs=x)
        with torch.no_grad():
            y = model(x)
    grown = [measure_peak() - before]
    torch.testing.assert_close(y, torch.full_like(y, rows / 64 * (16 + 1 / 64) + 1 / 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = tp.train_step(model, loss="mse", optimizer=optimizer)
    with without_tensors(size):
        step(x, target=y.clone())
        model.state_dict()
        tp.distribute(model)
    grown.append(measure_peak() - before)
    return f"{grown[0]} {grown[1]}"


# ---- Errors


def errors():
    size, rank = get_size(), dist.get_rank()
    mesh = init_mesh(size)

    def expect(kind, pattern, call, fqn=None):
        with TEST.assertRaisesRegex(kind, pattern) as caught:
            call()
        if fqn is not None:
            TEST.assertEqual(caught.exception.fqn, fqn)

    model = make_mlp(mesh)
    replace(model, "down.bias", DTensor.from_local(torch.ones(8), mesh, [Partial()]))
    before = dict(model.down._forward_hooks)
    for call in lambda: tp.parallelize_module(model), lambda: tp.parallelize_module(model, mesh, PLAN):
        expect(tp.WeightError, "'down.bias' is a DTensor with the placement P.*sum.* over the mesh dimension 'tp', so its values aren't "
                               "computed yet; redistribute it", call, "down.bias")
    TEST.assertEqual(model.down._forward_hooks, before)
    TEST.assertIs(type(model), MLP)
    # Meshes.
    model = make_mlp(mesh)
    turned = DeviceMesh("cpu", list(reversed(range(size))), mesh_dim_names=("tp",))
    replace(model, "up.bias", distribute_tensor(torch.ones(16), turned, [Shard(0)]))
    expect(tp.MeshError, r"'up.bias' is a DTensor over the mesh \(tp=2\) of the ranks \[1, 0\], and 'up.weight' is one over \(tp=2\); all DTensors "
                         "of a module are over the mesh of its plan", lambda: tp.parallelize_module(model), "up.bias")
    model = make_mlp(mesh)
    with TEST.assertRaisesRegex(tp.MeshError, r"dtensor_ranks.py:\d+:\d+: 'up.weight' is a DTensor over the mesh \(tp=2\), and the mesh of this call is "
                                              r"one over \(model=2\)"):
        tp.parallelize_module(model, {"model": size}, PLAN)
    part = DeviceMesh("cpu", [rank], mesh_dim_names=("tp",))
    expect(tp.MeshError, "'up.weight' is a DTensor over a mesh that programs can't have: a mesh (of 1 ranks has|has one rank for each process)",
           lambda: tp.parallelize_module(make_mlp(part)))
    # After it is compiled.
    model = tp.parallelize_module(make_mlp(mesh))
    with torch.no_grad():
        model(X)
        replace(model, "up.weight", distribute_tensor(make(MLP).up.weight, turned, [Shard(0)]))
        expect(tp.MeshError, r"'up.weight' is a DTensor over the mesh \(tp=2\) of the ranks \[1, 0\], and its program is for the mesh \(tp=2\)",
               lambda: model(X), "up.weight")
        replace(model, "up.weight", DTensor.from_local(torch.ones(16, 8), mesh, [Partial()]))
        expect(tp.WeightError, "'up.weight' is a DTensor with the placement P", lambda: model(X), "up.weight")
        replace(model, "up.weight", distribute_tensor(make(MLP).up.weight, mesh, [Shard(0)]))
        assert_close(model(X), make(MLP)(X).detach())
    # What can't be said as a placement.
    packed = {"up": {"style": "packed_colwise", "segments": [4, 12]}}
    model = tp.parallelize_module(make(MLP), mesh, packed)
    with torch.no_grad():
        model(X)
    expect(tp.WeightError, r"dtensor_ranks.py:\d+:\d+: 'up.(weight|bias)' can't be a DTensor: the program holds it as "
                           r"\(Shard\(0, segments=\[4, 12\]\)\), and the placements of DTensor can't say which elements each rank has",
           lambda: tp.distribute(model))
    TEST.assertFalse(any(isinstance(parameter, DTensor) for parameter in model.parameters()))
    check_call(tp.parallelize_module(make_mlp(mesh), mesh, packed), make(MLP)(X).detach(), X)  # redistributed to segments
    # Functions for one rank's tensors, and other hooks.
    model = distribute_module(make(MLP), mesh, input_fn=lambda module, inputs, mesh: inputs)
    expect(tp.UnsupportedError, "distribute_module has given the module '' the function .*lambda.* for the tensors of one rank",
           lambda: tp.parallelize_module(model), "")
    TEST.assertEqual(len(model._forward_pre_hooks), 1)
    model = fully_shard(make(MLP), mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    expect(tp.UnsupportedError, "the module '' was given to fully_shard with {'param_dtype': torch.bfloat16}", lambda: tp.parallelize_module(model), "")
    # Constants and inputs.
    model = make_mlp(mesh)
    model.register_buffer("table", distribute_tensor(torch.ones(8), mesh, [Shard(0)]), persistent=False)
    expect(tp.WeightError, "buffer 'table' of MLP is a DTensor with the placements .*Shard.*, and not persistent",
           lambda: tp.parallelize_module(model, example_inputs=X), "table")
    model = tp.parallelize_module(make_mlp(mesh))
    expect(tp.InputError, r"input .* is a DTensor; a program takes the whole tensor", lambda: model(distribute_tensor(X, mesh, [Replicate()])))
    # distribute.
    expect(tp.UnsupportedError, "MLP isn't parallelized", lambda: tp.distribute(make(MLP)), "")
    model = tp.parallelize_module(make(MLP), mesh, PLAN)
    expect(tp.Error, "the module has no program yet", lambda: tp.distribute(model))
    model(X).sum().backward()
    expect(tp.UnsupportedError, "the parameter '.*' has a gradient or a hook", lambda: tp.distribute(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    tp.distribute(model)
    expect(tp.InputError, "the optimizer has no parameter of MLP", lambda: tp.train_step(model, loss="mse", optimizer=optimizer))
    expect(Exception, "PyTorch has traced what this process does with DTensors.*call tp_mlir.parallelize_module",
           lambda: torch.compile(make_mlp(mesh), backend="tp_mlir", options={"mesh": mesh, "plan": PLAN})(X))


def get_folder():
    return pathlib.Path(sys.argv[1])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if not dist.is_initialized():  # networks.py makes a mesh
        dist.init_process_group("gloo")
    for case in sys.argv[2:]:
        result = globals()[case]()
        dist.barrier()
    (get_folder() / os.environ["RANK"]).write_text(str(result))
    dist.destroy_process_group()
