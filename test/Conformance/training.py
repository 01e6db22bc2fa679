"""What PyTorch's tests of tensor-parallel training assert: collectives of forward and backward pass, loss_parallel, and
the parameters after a step of SGD.

  training.py [--tools DIRECTORY] [--only TEXT]

A row has the collectives that PyTorch takes; never more are taken here, but that a reduce-scatter or an all-gather may
stand for an all-reduce, which is both. What reduces one number, the loss, isn't counted. A rate of 1 without momentum makes the change of a parameter its gradient; where PyTorch's tests
look at an input's gradient, the input is the sum of an input and a parameter. Exit code 1 when anything differs.
"""

import argparse
import collections
import copy
import dataclasses
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import safetensors.torch
import torch
from torch import nn
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/numerics"), str(ROOT / "tools/tp-import")]

import tp_trace
from ops import get_tool
from sampling import take

AG, RS, AR = "all_gather", "reduce_scatter", "all_reduce"
RANKS = 4
SUM = "{loss: output, optimizer: {name: SGD, lr: 1.0}}"


class Failure(Exception):
    pass


class Weighted(nn.Module):
    """The loss of a module of which PyTorch's tests call backward on a sum: the sum of the result times numbers, so that
    no gradient is constant."""

    def __init__(self, inner, *shapes):
        super().__init__()
        self.inner = inner
        # Of inputs with a gradient.
        self.given = nn.ParameterList(torch.randn(shape) for shape in shapes)

    def forward(self, *inputs):
        inputs = [x + p for x, p in zip(inputs, self.given)] + list(inputs[len(self.given):])
        y = self.inner(*inputs)
        numbers = torch.arange(y.numel(), dtype=torch.float32).reshape(y.shape) / y.numel()
        return (y * (1 + numbers)).sum()


@dataclasses.dataclass
class Row:
    name: str
    model: nn.Module
    inputs: list
    plan: str
    # PyTorch's, at most. Without a forward pass of their own, of both together.
    forward: dict = None
    # None: it isn't counted.
    backward: dict = dataclasses.field(default_factory=dict)
    # What reduces gradients for the optimizer; PyTorch's tests have none of it in the backward pass.
    step: dict = dataclasses.field(default_factory=dict)
    train: str = SUM
    target: torch.Tensor = None
    # What PyTorch compares the model's result and the target with.
    loss: object = None
    # The program whose parameters this one has to have, where PyTorch draws other random numbers.
    reference: str = None
    # Parts of the diagnostic.
    error: list = None
    placements: dict = dataclasses.field(default_factory=dict)


def mesh(plan, axes="tp: 4"):
    return f"mesh: {{{axes}}}\nplan: {plan}\n"


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Identity(nn.Module):
    def forward(self, x):
        return x * 1.0


class AddTo(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, y):
        return self.linear(x) + y


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1, self.net2 = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.fc = nn.Embedding(16, 8), nn.Linear(8, 16)
        self.fc.weight = self.embedding.weight

    def forward(self, x):
        return self.fc(self.embedding(x))


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(x)


class DroppedAttention(nn.Module):
    """Attention with dropout of its weights, as PyTorch's tests' Transformer has it."""

    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(16, 16, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (4, 4)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=0.25, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(-2))


def freeze_weight(linear):
    linear.weight.requires_grad_(False)
    return linear


def get_styles():
    """Of test_tp_style.py."""
    x, index = torch.randn(8, 16), torch.randint(16, (4, 2))
    linear = lambda: Weighted(nn.Linear(16, 16), (8, 16))
    table = lambda: Weighted(nn.Embedding(16, 16))
    split = lambda dim, entry: mesh(f"{{given.0: [Shard({dim})], inner: {entry}}}")
    yield Row("1 ColwiseParallel", linear(), [x], mesh("{inner: ColwiseParallel}"), {}, {AR: 1})
    yield Row("2 ColwiseParallel, input Shard(0)", linear(), [x],
              split(0, "{style: ColwiseParallel, input_layouts: Shard(0)}"), {AG: 1}, {RS: 1})
    yield Row("3 ColwiseParallel of an embedding", table(), [index], mesh("{inner: ColwiseParallel}"), {}, {})
    yield Row("4 ColwiseParallel, weight frozen", Weighted(freeze_weight(nn.Linear(16, 16))), [x],
              mesh("{inner: ColwiseParallel}"), {}, {})
    yield Row("5 RowwiseParallel", linear(), [x], split(1, "RowwiseParallel"), {AR: 1}, {})
    yield Row("6 RowwiseParallel, output Shard(0)", linear(), [x],
              split(1, "{style: RowwiseParallel, output_layouts: Shard(0)}"), {RS: 1}, {AG: 1})
    yield Row("7 RowwiseParallel of an embedding", table(), [index],
              mesh("{inner: {style: RowwiseParallel, input_layouts: Replicate}}"), {AR: 1}, {})
    yield Row("8 RowwiseParallel of an embedding, output Shard(1)", table(), [torch.randint(16, (8,))],
              mesh("{inner: {style: RowwiseParallel, input_layouts: Replicate, output_layouts: Shard(1)}}"), {RS: 1},
              {AG: 1})
    yield Row("9 RowwiseParallel, weight frozen", Weighted(freeze_weight(nn.Linear(16, 16))), [x],
              mesh("{inner: RowwiseParallel}"), {AR: 1}, {})
    yield Row("10 PrepareModuleInput", Weighted(Identity(), (8, 16)), [x],
              split(0, "{style: PrepareModuleInput, input_layouts: Shard(0), desired_input_layouts: Replicate}"), {AG: 1}, {})
    yield Row("11 PrepareModuleInput of one of two", Weighted(AddTo(), (8, 8)), [torch.randn(8, 8), torch.randn(8, 8)],
              mesh("{given.0: [Shard(0)], inner.linear: ColwiseParallel, inner: {style: PrepareModuleInput, "
                   "input_layouts: [Shard(0), null], desired_input_layouts: [Replicate, null]}}"), {AG: 1}, {RS: 1})
    yield Row("13 PrepareModuleOutput", Weighted(Identity(), (8, 16)), [x],
              mesh("{inner: {style: PrepareModuleOutput, output_layouts: Replicate, desired_output_layouts: Shard(0)}}"),
              {}, {AG: 1})
    tokens = torch.randn(20, 32, 12)
    for name, norm in (("14 SequenceParallel of LayerNorm", nn.LayerNorm(12)),
                       ("15 SequenceParallel of RMSNorm", RMSNorm(12))):
        yield Row(name, Weighted(norm, tokens.shape), [tokens], split(1, "SequenceParallel"), {}, {}, {AR: 1})
    yield Row("14 SequenceParallel of LayerNorm without weights",
              Weighted(nn.LayerNorm(12, elementwise_affine=False), tokens.shape), [tokens], split(1, "SequenceParallel"))
    yield Row("16 SequenceParallel of Dropout", Weighted(Dropped(), tokens.shape), [tokens], split(1, "SequenceParallel"),
              {}, {}, reference=mesh("{inner: SequenceParallel}", "tp: 1"))
    yield Row("17 SequenceParallel of RMSNorm, from Shard(0)", Weighted(RMSNorm(12), tokens.shape), [tokens],
              mesh("{given.0: [Shard(0)], inner: SequenceParallel}"), {"all_to_all": 1, AG: 1},
              {"all_to_all": 1, AG: 1}, {AR: 1})


def get_models():
    """Of test_parallelize_api.py and test_tp_examples.py."""
    x = torch.randn(8, 10)
    rate = SUM.replace("1.0", "0.25")
    yield Row("18 two ColwiseParallel", Weighted(MLP()), [x],
              mesh("{inner.net*: {style: ColwiseParallel, output_layouts: Replicate}}"), {AG: 2}, {AR: 2}, train=rate)
    yield Row("20 RowwiseParallel at the root", Weighted(nn.Linear(16, 10)), [torch.randn(9, 16)],
              mesh("{inner: RowwiseParallel}"), {AR: 1}, {}, train=rate)
    yield Row("21 ColwiseParallel at the root", Weighted(nn.Linear(10, 16)), [x],
              mesh("{inner: {style: ColwiseParallel, output_layouts: Replicate}}"), {AG: 1}, {}, train=rate)
    yield Row("30 PrepareModuleInputOutput at the root", Weighted(MLP()), [x],
              mesh("{inner: {style: PrepareModuleInputOutput, input_layouts: Replicate, desired_input_layouts: Shard(0), "
                   "output_layouts: Shard(0), desired_output_layouts: Replicate}, "
                   "inner.net1: {style: ColwiseParallel, input_layouts: Shard(0)}, "
                   "inner.net2: {style: RowwiseParallel, output_layouts: Shard(0)}}"), {AG: 2, RS: 1}, {AG: 1},
              train=rate)
    yield Row("34 MLP, sequence parallel", Weighted(MLP()), [x],
              mesh("{inner.net1: {style: ColwiseParallel, input_layouts: Shard(0)}, "
                   "inner.net2: {style: RowwiseParallel, output_layouts: Shard(0)}}"), None, {AG: 2, RS: 1}, {AR: 1})
    yield Row("35 MLP", Weighted(MLP()), [x], mesh("{inner.net1: ColwiseParallel, inner.net2: RowwiseParallel}"),
              None, {AR: 1})
    yield Row("46 tied weights", Weighted(Tied()), [torch.randint(16, (4, 3))],
              mesh("{inner.embedding: ColwiseParallel, inner.fc: {style: RowwiseParallel, input_layouts: Shard(-1)}}"),
              {AR: 1, AG: 1}, {RS: 1, AG: 1}, placements={"inner.embedding.weight": ["Shard(1)"]})


class Logits(nn.Module):
    """Its result are the inputs times a parameter of the classes' size, whose gradient sums that of the logits."""

    def __init__(self, classes, dim=-1, rank=2):
        super().__init__()
        self.scale = nn.Parameter(torch.rand([classes if d == dim % rank else 1 for d in range(rank)]) + 0.5)

    def forward(self, x):
        return x * self.scale


class Losses(nn.Module):
    """A cross entropy of the model's own, without reduction."""

    def __init__(self, inner, weight):
        super().__init__()
        self.inner = inner
        self.register_buffer("weight", weight)

    def forward(self, x, target):
        losses = functional.cross_entropy(self.inner(x), target, self.weight, reduction="none")
        numbers = torch.arange(losses.numel(), dtype=torch.float32).reshape(losses.shape) / losses.numel()
        return (losses * (1 + numbers)).sum()


def get_losses():
    """loss_parallel, of test_tp_examples.py and _ops/_math_ops' loss. An all-reduce has at most two numbers of each target,
    where PyTorch has three with one."""
    weights = torch.rand(16) + 0.1
    meshes = {"47 1-D": "mesh: {tp: 4}\n", "48 2-D, batch split": "mesh: {dp: 2, tp: 2}\ndata_parallel: {dp: ddp}\n",
              "49 2-D, batch whole": "mesh: {dp: 2, tp: 2}\n"}
    for name, text in meshes.items():
        # Data parallelism reduces the parameter's gradient.
        allowed = {AR: 3 if "48" in name else 2}
        for shape, dim in (((8, 16), 1), ((8, 16, 12), 1), ((4, 6, 16), -1)):
            target = torch.randint(16, shape[:1] + shape[2:] if dim == 1 else shape[:-1])
            target.view(-1)[1] = -100
            split = dim % len(shape)
            x, logits = 3 * torch.randn(shape), Logits(16, dim, len(shape))
            entry = f"{{mesh_dim: tp, loss_parallel: true, plan: {{NAME: [Shard({split})]}}}}"
            places = {"NAME": [*(["Replicate"] if "2-D" in name else []), f"Shard({split})"]}
            for weight in (None, weights):
                kind = f"{name}, logits {shape}{', weights' * (weight is not None)}"
                row = lambda end, model, inputs, fqn, **more: Row(
                    f"{kind}, {end}", model, inputs, (text + f"parallelize: [{entry}]\n").replace("NAME", fqn), None, allowed,
                    placements={fqn: places["NAME"]}, **more)
                for reduction in ("mean", "sum"):
                    loss = {"name": "cross_entropy", "reduction": reduction, "class_dim": dim}
                    if weight is not None:
                        loss["weight"] = weight.tolist()
                    compare = lambda y, t, d=dim, w=weight, r=reduction: functional.cross_entropy(
                        y if d == 1 else y.movedim(-1, 1), t, w, reduction=r)
                    yield row(reduction, logits, [x], "scale", target=target, loss=compare,
                              train=json.dumps({"loss": loss, "optimizer": {"name": "SGD", "lr": 1.0}}))
                if dim == 1:
                    yield row("none", Losses(logits, weight), [x, target], "inner.scale")

    train = "{loss: cross_entropy, optimizer: SGD}"
    logits = Logits(16)
    error = lambda name, shape, plan, *error: Row(name, logits, [torch.zeros(shape)], plan, train=train, error=list(error))
    at = "{{style: PrepareModuleOutput, output_layouts: {0}, desired_output_layouts: {0}}}"
    yield error("47c logits split along another dimension", (8, 16),
                mesh('{"": ' + at.format("Shard(0)") + "}\nloss_parallel: true"), "plan.yaml:3:1: error: loss_parallel needs "
                "logits split along their classes, Shard(1), but they come as Shard(0)", "plan.yaml:2:")
    yield error("47c of three dimensions", (4, 6, 16), mesh('{"": ' + at.format("Shard(1)") + "}\nloss_parallel: true"),
                "loss_parallel needs logits split along their classes, Shard(2), but they come as Shard(1)")
    yield error("52 logits that are Partial over another dimension", (8, 16), "mesh: {dp: 2, tp: 2}\nparallelize:\n"
                '- {mesh_dim: tp, loss_parallel: true, plan: {"": ' + at.format("Shard(1)") + "}}\n"
                '- {mesh_dim: dp, plan: {"": ' + at.format("Partial") + "}}\n",
                "plan.yaml:3:18: error: loss_parallel needs logits that are Shard or Replicate over 'dp', but they come as "
                "Partial(sum)")


def get_dropouts():
    """Random numbers are those of one device, on each mesh."""
    plan = "{'inner.w[qkv]': ColwiseParallel, inner.wo: RowwiseParallel}"
    for axes in ("tp: 2", "tp: 4", "dp: 2, tp: 2"):
        text = mesh(plan, axes) + ("data_parallel: {dp: fsdp}\n" if "dp" in axes else "")
        yield Row(f"54 attention with dropout, {axes}", Weighted(DroppedAttention()), [torch.randn(4, 6, 16)], text,
                  None, {AR: 1} if axes.startswith("tp") else None, reference=mesh(plan, "tp: 1"))


def run(*command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    return process.returncode, process.stderr


def run_well(*command):
    code, text = run(*command)
    if code != 0:
        raise Failure(f"{pathlib.Path(str(command[0])).name} failed with {code}: {text.strip()[:2000]}")
    return text


def count(path):
    """Collectives of more than one number."""
    report = json.loads(path.read_text())
    return collections.Counter(
        collective["kind"] for collective in report["collectives"] if math.prod(collective["shape"]) > 1
    )


def describe(found):
    return ", ".join(f"{number} {kind}" for kind, number in sorted(found.items()) if number) or "none"


def is_more(found, allowed):
    more, less = found - collections.Counter(allowed), collections.Counter(allowed) - found
    return any(number > less[AR] or kind not in (RS, AG) for kind, number in more.items())


class Program:
    def __init__(self, row, tools, folder):
        self.row, self.folder = row, folder
        self.tool = lambda name: get_tool(tools, name)
        (folder / "train.yaml").write_text(row.train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tp_trace.save(row.model, tuple(row.inputs), folder / "model.pt")
        command = ["--signature", folder / "model.signature.json"]
        for i, value in enumerate(row.inputs):
            np.save(folder / f"x{i}.npy", value.numpy())
            shape = "x".join([*map(str, value.shape), "i64" if value.dtype == torch.int64 else "f32"])
            command += ["--input", f"x{i}={shape}"]
        run_well(self.tool("tp-import"), folder / "model.pt", *command, "-o", folder / "model.mlir", "--weights",
                 folder / "model.safetensors")

    def compile(self, plan, train=True):
        folder, options = self.folder, f"report={self.folder}/report.json"
        (folder / "plan.yaml").write_text(plan)
        options += f" plan={folder}/plan.yaml" + f" train={folder}/train.yaml" * train
        return run(self.tool("tp-opt"), folder / "model.mlir", f"--tp-parallelize={options}", "-o", folder / "ranks.mlir")

    def count(self, train=True):
        code, text = self.compile(self.row.plan, train)
        if code != 0:
            raise Failure(f"tp-opt failed with {code}: {text.strip()[:2000]}")
        return count(self.folder / "report.json")

    def execute(self, plan):
        """The loss, and the parameters after one step."""
        folder = self.folder
        code, text = self.compile(plan)
        if code != 0:
            raise Failure(f"tp-opt failed with {code}: {text.strip()[:2000]}")
        command = []
        for i in range(len(self.row.inputs)):
            command += ["--data", f"x{i}={folder}/x{i}.npy"]
        if self.row.target is not None:
            np.save(folder / "target.npy", self.row.target.numpy())
            command += ["--data", f"target={folder}/target.npy"]
        run_well(self.tool("tp-compile"), folder / "ranks.mlir", "-o", folder / "model.tpx")
        run_well(self.tool("tp-run"), folder / "model.tpx", "--weights", folder / "model.safetensors", *command, "--steps", 1,
                 "--no-shuffle", "--allow-unused-weights", "--metrics", folder / "metrics.jsonl", "--output-weights",
                 folder / "trained.safetensors")
        line = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])
        return line["loss"], safetensors.torch.load_file(folder / "trained.safetensors")


def train_with_torch(row):
    model = copy.deepcopy(row.model)
    rate = 0.25 if "0.25" in row.train else 1.0
    result = model(*row.inputs)
    loss = row.loss(result, row.target) if row.loss else result
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= rate * parameter.grad
    return loss.item(), {name: parameter.detach() for name, parameter in model.named_parameters()}


def check(row, tools, folder):
    """What was counted, as text."""
    program = Program(row, tools, folder)
    if row.error is not None:
        code, text = program.compile(row.plan)
        missing = [part for part in row.error if part not in text]
        if code != 1 or missing:
            raise Failure(f"exit code {code}, without {missing}: {text}")
        return "refused"
    together = program.count()
    forward = program.count(train=False) if row.forward is not None else collections.Counter()
    if is_more(forward, row.forward or {}):
        raise Failure(f"forward: {describe(forward)}, PyTorch has {describe(row.forward)}")
    if row.backward is not None:
        allowed = sum(map(collections.Counter, (row.forward or {}, row.backward, row.step)), collections.Counter())
        if is_more(together, allowed):
            raise Failure(f"training: {describe(together)}, PyTorch has {describe(allowed)}")
    loss, trained = program.execute(row.plan)
    report = json.loads((folder / "report.json").read_text())
    for parameter in report["parameters"]:
        expected = row.placements.get(parameter["fqn"])
        if expected and parameter["placements"] != expected:
            raise Failure(f"{parameter['fqn']} is {parameter['placements']}, must be {expected}")
    expected_loss, expected = program.execute(row.reference) if row.reference else train_with_torch(row)
    if not math.isclose(loss, expected_loss, rel_tol=1e-5, abs_tol=1e-4):
        raise Failure(f"the loss is {loss}, must be {expected_loss}")
    for name, tensor in trained.items():
        if name not in expected:  # a buffer
            continue
        difference = (tensor - expected[name]).abs().max().item()
        if not difference <= 1e-5 * max(1.0, expected[name].abs().max().item()):
            raise Failure(f"{name} differs by {difference} after a step")
    return describe(together)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    rows = [row for source in (get_styles, get_models, get_losses, get_dropouts) for row in source()]
    rows = take(row for row in rows if arguments.only in row.name)
    failures = 0
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = check(row, arguments.tools, pathlib.Path(folder))
                if arguments.verbose:
                    print(f"{row.name}: {found}")
            except Failure as failure:
                failures += 1
                print(f"FAIL {row.name}: {failure}")
    print(f"{len(rows) - failures} of {len(rows)} rows hold")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
