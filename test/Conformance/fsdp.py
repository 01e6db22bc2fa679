"""FSDP beside PyTorch's: models and options, each trained a step by torch's fully_shard, whose collectives are counted, and here.

  fsdp.py [--tools DIRECTORY] [--only TEXT] [--verbose]

Never more all-gathers, reduce-scatters or all-reduces are taken here. The loss and the parameters after the step are those of PyTorch in
one process, each rank keeps its part of every parameter, and the programs are proven. Exit code 1 when anything differs.
"""

import argparse
import collections
import copy
import dataclasses
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import safetensors.torch
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/numerics"), str(ROOT / "benchmarks")]

import leaving
from ops import get_tool
from sampling import take

RANKS = 4
AG, RS, AR = "all_gather", "reduce_scatter", "all_reduce"


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(self, x, y=None):
        y = x if y is None else y
        split = lambda t: t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = split(self.wq(x)), split(self.wk(y)), split(self.wv(y))
        weights = torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5, -1)
        return self.wo((weights @ v).transpose(1, 2).reshape(*x.shape[:2], -1))


class Feed(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.w1, self.w2 = nn.Linear(size, hidden), nn.Linear(hidden, size)

    def forward(self, x):
        return self.w2(functional.gelu(self.w1(x)))


class Block(nn.Module):
    def __init__(self, size, hidden, heads=2, crossed=False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention, self.feed = Attention(size, heads), Feed(size, hidden)
        if crossed:
            self.norm3, self.cross = nn.LayerNorm(size), Attention(size, heads)

    def forward(self, x, memory=None):
        x = x + self.attention(self.norm1(x))
        if memory is not None:
            x = x + self.cross(self.norm3(x), memory)
        return x + self.feed(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, layers=3, size=16, hidden=24, words=12, tied=False):
        super().__init__()
        self.embed = nn.Embedding(words, size)
        self.layers = nn.ModuleList(Block(size, hidden) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, words, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Vision(nn.Module):
    """The position table and the class token have one row, and one rank has it."""

    def __init__(self, size=16):
        super().__init__()
        self.patches = nn.Linear(48, size)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, size)), nn.Parameter(torch.randn(1, 5, size))
        self.blocks = nn.Sequential(*(Block(size, 32) for _ in range(2)))
        self.head = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 10))

    def forward(self, x):
        x = x.view(x.shape[0], 3, 2, 4, 2, 4).permute(0, 2, 4, 1, 3, 5).reshape(x.shape[0], 4, 48)
        x = self.patches(x)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.blocks(x)[:, 0])


class Translator(nn.Module):
    def __init__(self, size=16, words=12):
        super().__init__()
        self.embed = nn.Embedding(words, size)
        self.encoder = nn.ModuleList(Block(size, 32) for _ in range(2))
        self.decoder = nn.ModuleList(Block(size, 32, crossed=True) for _ in range(2))
        self.head = nn.Linear(size, words)

    def forward(self, x):
        memory, y = self.embed(x), self.embed(x.flip(1))
        for block in self.encoder:
            memory = block(memory)
        for block in self.decoder:
            y = block(y, memory)
        return self.head(y)


class Lora(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a, self.b = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


def make_lora(freeze_all=True):
    model = Decoder()
    if freeze_all:
        model.requires_grad_(False)
    for block in model.layers:
        block.attention.wq, block.attention.wv = Lora(block.attention.wq), Lora(block.attention.wv)
        if not freeze_all:
            block.attention.wq.base.requires_grad_(False)
    return model


class Shared(nn.Module):
    """One block, three times; a list of layers that have no modules inside."""

    def __init__(self, size=16):
        super().__init__()
        self.blocks = nn.ModuleList([Block(size, 24)])
        self.stack = nn.ModuleList(nn.Linear(size, size) for _ in range(2))

    def forward(self, x):
        for _ in range(3):
            x = self.blocks[0](x)
        for layer in self.stack:
            x = torch.tanh(layer(x))
        return x


def make_tokens(model):
    return torch.randint(12, (8, 4))


def make_images(model):
    return torch.randn(8, 3, 8, 8)


def make_vectors(model):
    return torch.randn(8, 4, 16)


@dataclasses.dataclass
class Row:
    name: str
    make: object
    inputs: object
    # Of the modules that fully_shard is called on, beside the root.
    modules: list
    # Whether the plan names them; else they are found.
    named: bool = False
    reshard: object = None
    accumulate: int = 1
    clip: object = None
    # Modules whose values are computed again.
    checkpoint: list = dataclasses.field(default_factory=list)
    frozen: list = dataclasses.field(default_factory=list)
    compute: str = "f32"
    mesh: dict = dataclasses.field(default_factory=lambda: {"dp": RANKS})
    data: dict = dataclasses.field(default_factory=lambda: {"dp": "fsdp"})
    plan: dict = dataclasses.field(default_factory=dict)
    optimizer: str = "SGD"


def get_models():
    layers = ["layers.*"]
    return {
        "decoder": (Decoder, make_tokens, layers),
        "deeper decoder": (lambda: Decoder(layers=5, size=8, hidden=12), make_tokens, layers),
        "uneven decoder": (lambda: Decoder(layers=2, size=6, hidden=9, words=13), make_tokens, layers),
        "tied decoder": (lambda: Decoder(tied=True), make_tokens, layers),
        "lora": (make_lora, make_tokens, layers),
        "lora in a trained model": (lambda: make_lora(False), make_tokens, layers),
        "vision": (Vision, make_images, ["blocks.*"]),
        "translator": (Translator, make_tokens, ["encoder.*", "decoder.*"]),
        "shared block": (Shared, make_vectors, ["blocks.*"]),
    }


def get_rows():
    for name, (make, inputs, modules) in get_models().items():
        row = lambda what, **more: Row(f"{name}{what}", make, inputs, **{"modules": modules, **more})
        yield row("")
        yield row(", kept", reshard=False)
        yield row(", accumulated, clipped", accumulate=2, clip=0.1, optimizer="AdamW")
    decoder = lambda what, **more: Row(f"decoder{what}", Decoder, make_tokens, **{"modules": ["layers.*"], **more})
    yield decoder(", resharded", reshard=True)
    yield decoder(", clipped", clip=0.1)
    yield decoder(", accumulated 4 times, clipped", accumulate=4, clip=0.1)
    yield decoder(", accumulated, kept", accumulate=4, reshard=False)
    yield decoder(", recomputed", checkpoint=["layers.*"])
    yield decoder(", recomputed, kept", checkpoint=["layers.*"], reshard=False)
    yield decoder(", recomputed, accumulated", checkpoint=["layers.*"], accumulate=2)
    yield decoder(", frozen by the training file", frozen=["embed", "layers.*.feed"])
    yield decoder(", a frozen block", frozen=["layers.1"])
    yield decoder(", bf16", compute="bf16")
    yield decoder(", bf16, accumulated, kept", compute="bf16", accumulate=2, reshard=False)
    yield decoder(", nested", modules=["layers.*", "layers.*.feed"], named=True)
    yield decoder(", by layers", modules=["layers.*.attention", "layers.*.feed", "embed"], named=True)
    yield decoder(", the root alone", modules=[], named=True)
    hybrid = {"mesh": {"replicate": 2, "dp": 2}, "data": {"replicate": "ddp", "dp": "fsdp"}}
    yield decoder(", hybrid", **hybrid)
    yield decoder(", hybrid, accumulated, clipped", **hybrid, accumulate=2, clip=0.1)
    tensor = {"mesh": {"dp": 2, "tp": 2}, "plan": {
        "layers.*.attention.w[qkv]": "ColwiseParallel", "layers.*.attention.wo": "RowwiseParallel",
        "layers.*.feed.w1": "ColwiseParallel", "layers.*.feed.w2": "RowwiseParallel"}}
    yield decoder(", with tensor parallelism", **tensor)
    yield decoder(", with tensor parallelism, accumulated", **tensor, accumulate=2)
    yield Row("uneven decoder, hybrid", get_models()["uneven decoder"][0], make_tokens, ["layers.*"], **hybrid)


# --- PyTorch -----------------------------------------------------------------


def match(pattern, name):
    import fnmatch

    tokens, own = pattern.split("."), name.split(".")
    return len(tokens) == len(own) and all(map(fnmatch.fnmatchcase, own, tokens))


def freeze(model, patterns):
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        if any(match(pattern, ".".join(parts[:n + 1])) for pattern in patterns for n in range(len(parts))):
            parameter.requires_grad_(False)


class Counting(TorchDispatchMode):
    """Counts collectives of more than one number."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = function.name().split("::")[-1].split(".")[0].replace("_", "")
        if function.namespace.startswith("c10d") or function.namespace.startswith("_c10d"):
            tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
            if max(tensor.numel() for tensor in tensors) > 1 if tensors else False:
                for kind in (AG, RS, AR):
                    self.counts[kind] += name.startswith(kind.replace("_", ""))
        return function(*arguments, **(options or {}))


def make_optimizer(row, model):
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.SGD(parameters, lr=0.1) if row.optimizer == "SGD" else torch.optim.AdamW(parameters, lr=0.01)


def count_in_torch(row):
    """The collectives of a step by fully_shard, on each of the processes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    model = row.make()
    freeze(model, row.frozen)
    mesh = init_device_mesh("cpu", tuple(row.mesh.values()), mesh_dim_names=tuple(row.mesh))
    if row.plan:
        styles = {"ColwiseParallel": ColwiseParallel, "RowwiseParallel": RowwiseParallel}
        parallelize_module(model, mesh["tp"], {name: styles[style]() for name, style in row.plan.items()})
        for name, module in model.named_modules():
            if isinstance(module, Attention):
                module.heads //= mesh["tp"].size()
    if row.checkpoint:
        for name, module in model.named_modules():
            if any(match(pattern, name) for pattern in row.checkpoint):
                module.forward = (lambda inner: lambda *x: checkpoint(inner, *x, use_reentrant=False))(module.forward)
    options = {"mesh": mesh[tuple(row.data)] if len(row.data) > 1 else mesh[next(iter(row.data))]}
    if row.reshard is not None:
        options["reshard_after_forward"] = row.reshard
    if row.compute == "bf16":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    inner = [module for name, module in model.named_modules() if any(match(pattern, name) for pattern in row.modules)]
    for module in reversed(inner):
        fully_shard(module, **options)
    fully_shard(model, **options)
    optimizer = make_optimizer(row, model)
    with Counting() as counting:
        for batch in range(row.accumulate):
            model.set_requires_gradient_sync(batch == row.accumulate - 1)
            model(row.inputs(model)[:2]).float().square().mean().backward()
        if row.clip:
            nn.utils.clip_grad_norm_(model.parameters(), row.clip)
        optimizer.step()
    return counting.counts


def work(rank, size, port, path, names):
    warnings.simplefilter("ignore")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    counts = {row.name: count_in_torch(row) for row in get_rows() if row.name in names}
    if rank == 0:
        pathlib.Path(path).write_text(json.dumps(counts))
    leaving.leave()


def count_all(names):
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        path = pathlib.Path(folder) / "counts.json"
        torch.multiprocessing.spawn(work, args=(RANKS, port, str(path), names), nprocs=RANKS)
        return json.loads(path.read_text())


def train_with_torch(row, model, inputs, target):
    """The loss of the whole batch, and the parameters after the step."""
    model = copy.deepcopy(model)
    freeze(model, row.frozen)
    optimizer = make_optimizer(row, model)
    loss = functional.mse_loss(model(inputs), target)
    loss.backward()
    if row.clip:
        nn.utils.clip_grad_norm_(model.parameters(), row.clip)
    optimizer.step()
    return loss.item(), {name: parameter.detach() for name, parameter in model.named_parameters()}


# --- tp-mlir -----------------------------------------------------------------


class Failure(Exception):
    pass


def run(*command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if process.returncode != 0:
        raise Failure(f"{pathlib.Path(str(command[0])).name} failed with {process.returncode}: {process.stderr.strip()[:2000]}")
    return process.stderr


def write_files(row, folder):
    style = {"style": "fsdp"}
    if row.named:
        style["modules"] = row.modules
    if row.reshard is not None:
        style["reshard_after_forward"] = row.reshard
    plan = {"mesh": row.mesh, "data_parallel": {axis: style if kind == "fsdp" else kind for axis, kind in row.data.items()}}
    if row.plan:
        plan |= {"mesh_dim": "tp", "plan": row.plan}
    optimizer = {"name": "SGD", "lr": 0.1} if row.optimizer == "SGD" else {"name": "AdamW", "lr": 0.01}
    train = {"loss": "mse", "optimizer": optimizer, "accumulate": row.accumulate, "compute": row.compute}
    for key in ("clip", "checkpoint", "frozen"):
        if getattr(row, key):
            train["clip_grad_norm" if key == "clip" else key] = getattr(row, key)
    (folder / "plan.yaml").write_text(json.dumps(plan))
    (folder / "train.yaml").write_text(json.dumps(train))


def check(row, expected, tools, folder, options=""):
    """What was counted, as text."""
    tool = lambda name: get_tool(tools, name)
    torch.manual_seed(0)
    model = row.make()
    inputs = row.inputs(model)
    batch = inputs[:len(inputs) // row.accumulate] if row.accumulate <= 2 else inputs[:4]
    inputs = batch.repeat(row.accumulate, *[1] * (batch.ndim - 1))
    if inputs.is_floating_point():
        inputs = inputs + torch.randn_like(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(model, batch, check_trace=False).save(folder / "model.pt")
    target = torch.randn(model(inputs).shape)
    write_files(row, folder)
    shape = "x".join([*map(str, batch.shape), "i64" if batch.dtype == torch.int64 else "f32"])
    run(tool("tp-import"), folder / "model.pt", "--input", f"x={shape}", "-o", folder / "model.mlir", "--weights",
        folder / "model.safetensors")
    run(tool("tp-opt"), folder / "model.mlir", "-o", folder / "ranks.mlir", f"--tp-parallelize=plan={folder}/plan.yaml "
        f"train={folder}/train.yaml report={folder}/report.json machine=cpu {options}")
    report = json.loads((folder / "report.json").read_text())
    found = collections.Counter(
        entry["kind"] for entry in report["collectives"] if math.prod(entry["shape"]) > 2)  # the loss, and the norm
    text = ", ".join(f"{number} {kind}" for kind, number in sorted(found.items())) or "none"
    if more := {kind: number for kind, number in found.items() if number > expected[kind]}:
        raise Failure(f"{text}, but PyTorch has {expected}: {more}")

    groups = math.prod(row.mesh[axis] for axis, kind in row.data.items() if kind == "fsdp")
    for parameter in report["parameters"]:
        if parameter["fqn"] in dict(model.named_parameters()) and "Shard(0)" not in parameter["placements"]:
            raise Failure(f"{parameter['fqn']} is {parameter['placements']}, must be split by {groups}")
    verdict = run(tool("tp-opt"), folder / "ranks.mlir", "-o", os.devnull, "--tp-verify-spmd="
                  f"reference={folder}/model.mlir train={folder}/train.yaml")
    if "is proven" not in verdict or "executed" in verdict:
        raise Failure(f"isn't proven: {verdict[:1000]}")

    np.save(folder / "x.npy", inputs.numpy())
    np.save(folder / "target.npy", target.numpy())
    run(tool("tp-compile"), folder / "ranks.mlir", "-o", folder / "model.tpx")
    described = subprocess.run([str(tool("tp-run")), folder / "model.tpx", "--describe"], capture_output=True, text=True).stdout
    arenas = {str(entry["memory"]["arena"]) for entry in report["prediction"]["by_class"]}
    if not any(f"arena: {arena} bytes" in described for arena in arenas):
        raise Failure(f"the predicted arenas are {arenas}, but {described[:500]}")
    run(tool("tp-run"), folder / "model.tpx", "--weights", folder / "model.safetensors", "--data", f"x={folder}/x.npy", "--data",
        f"target={folder}/target.npy", "--steps", 1, "--no-shuffle", "--metrics", folder / "metrics.jsonl",
        "--output-weights", folder / "trained.safetensors")
    if row.compute == "f32":
        compare(row, model, inputs, target, folder)
    return text


def compare(row, model, inputs, target, folder):
    loss = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])["loss"]
    expected_loss, expected = train_with_torch(row, model, inputs, target)
    if not math.isclose(loss, expected_loss, rel_tol=1e-5):
        raise Failure(f"the loss is {loss}, must be {expected_loss}")
    for name, tensor in safetensors.torch.load_file(folder / "trained.safetensors").items():
        difference = (tensor - expected[name]).abs().max().item() if name in expected else 0
        # AdamW's first step divides by the gradient's magnitude.
        if not difference <= (1e-5 if row.optimizer == "SGD" else 1e-3):
            raise Failure(f"{name} differs by {difference} after a step")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    rows = take(row for row in get_rows() if arguments.only in row.name)
    counts = count_all([row.name for row in rows])
    failures = 0
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = check(row, counts[row.name], arguments.tools, pathlib.Path(folder))
                if arguments.verbose:
                    print(f"{row.name}: {found}; PyTorch: {counts[row.name]}", flush=True)
            except Failure as failure:
                failures += 1
                print(f"FAIL {row.name}: {failure}", flush=True)
    print(f"{len(rows) - failures} of {len(rows)} rows hold")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
