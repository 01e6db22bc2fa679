#!/usr/bin/env python3
"""Training steps on many meshes beside single-device PyTorch: losses, gradients' norms and parameters after some steps.

The stack of MLPs is that of PyTorch's own tests of FSDP with tensor parallelism
(test/distributed/_composable/test_composability/test_2d_composability.py): sizes that no mesh dimension divides, with
and without activation checkpointing and reshard_after_forward. Random models have embeddings, norms, attention, MLPs and
tied weights. Every program is proven, or tested, as well (tp-verify-spmd).
"""

import argparse
import dataclasses
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import safetensors.torch
import torch
from torch import nn

from ops import get_tool
from sampling import take

STEPS = 10


@dataclasses.dataclass
class Case:
    name: str
    model: nn.Module
    input: torch.Tensor
    target: torch.Tensor
    plan: str
    train: dict
    make_optimizer: object
    loss: object
    # Modules' outputs differ in scale; of the largest element.
    tolerance: float = 2e-4
    # Of gradient accumulation: the model is imported for one batch of so many.
    batches: int = 1
    # The plan of a program that has to train alike, where PyTorch draws other random numbers.
    reference: str = None
    # Of tp-parallelize.
    passes: str = ""
    # Whether nothing but parameters and gradients moves.
    examples_stay: bool = False
    # Whether the model is scripted, not traced.
    scripted: bool = False


class MLP(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        return torch.relu(self.out_proj(torch.relu(self.in_proj(x))))


class Stack(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.ModuleList(MLP(dim) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


MESHES = {
    "tp4": "mesh: {tp: 4}\n",
    "dp2 x tp2": "mesh: {dp: 2, tp: 2}\ndata_parallel: {dp: DATA}\n",
    "dp4 x tp2": "mesh: {dp: 4, tp: 2}\ndata_parallel: {dp: DATA}\n",
    "fsdp8": "mesh: {dp: 8}\ndata_parallel: {dp: DATA}\n",
}


def get_stacks():
    for dim, (mesh, text), checkpoint, reshard in itertools.product(
        (3, 16, 17), MESHES.items(), (False, True), (False, True)
    ):
        if mesh == "tp4" and reshard:
            continue
        torch.manual_seed(dim)
        text = text.replace("DATA", f"{{style: fsdp, reshard_after_forward: {str(reshard).lower()}}}")
        if "tp" in mesh:
            text += "plan: {layers.*.in_proj: ColwiseParallel, layers.*.out_proj: RowwiseParallel}\n"
        train = {"loss": "mse", "optimizer": {"name": "AdamW", "lr": 0.01}}
        if checkpoint:
            train["checkpoint"] = ["layers.*"]
        name = f"stack of {dim}, {mesh}{', checkpoint' * checkpoint}{', reshard' * reshard}"
        model = Stack(dim)
        yield Case(name, model, torch.randn(8, dim), torch.randn(8, dim), text, train,
                   lambda parameters: torch.optim.AdamW(parameters, lr=0.01), nn.functional.mse_loss)


class Attention(nn.Module):
    def __init__(self, dim, heads, groups, fused):
        super().__init__()
        self.heads, self.groups, self.size, self.fused = heads, groups, dim // heads, fused
        if fused:
            self.qkv = nn.Linear(dim, (heads + 2 * groups) * self.size)
        else:
            self.wq = nn.Linear(dim, dim, bias=False)
            self.wk, self.wv = (nn.Linear(dim, groups * self.size, bias=False) for _ in range(2))
        self.wo = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        if self.fused:
            q, k, v = self.qkv(x).split([d, self.groups * self.size, self.groups * self.size], -1)
        else:
            q, k, v = self.wq(x), self.wk(x), self.wv(x)
        q, k, v = (y.view(b, t, -1, self.size).transpose(1, 2) for y in (q, k, v))
        if self.groups != self.heads:
            k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden, gated, act):
        super().__init__()
        self.w1, self.w2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.w3 = nn.Linear(dim, hidden, bias=False) if gated else None
        self.act = act

    def forward(self, x):
        h = self.act(self.w1(x))
        return self.w2(h if self.w3 is None else h * self.w3(x))


class Block(nn.Module):
    def __init__(self, draw, dim, heads):
        super().__init__()
        norm = draw.choice([nn.LayerNorm, nn.RMSNorm])
        groups = draw.choice([heads, heads, 2, 1])
        act = draw.choice([nn.functional.gelu, nn.functional.silu, torch.relu, torch.tanh])
        self.attention_norm, self.ffn_norm = norm(dim), norm(dim)
        self.attention = Attention(dim, heads, groups, draw.random() < 0.3)
        self.feed_forward = FeedForward(dim, draw.choice([24, 30, 32]), draw.random() < 0.5, act)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Decoder(nn.Module):
    def __init__(self, draw):
        super().__init__()
        dim, heads, vocabulary = 16, 4, draw.choice([11, 12, 16])
        self.tok = nn.Embedding(vocabulary, dim, padding_idx=draw.choice([None, 0]))
        self.pos = nn.Embedding(6, dim) if draw.random() < 0.5 else None
        self.layers = nn.ModuleList(Block(draw, dim, heads) for _ in range(draw.choice([1, 2])))
        self.norm = nn.LayerNorm(dim)
        self.output = nn.Linear(dim, vocabulary, bias=draw.random() < 0.5)
        if draw.random() < 0.4:
            self.output.weight = self.tok.weight
        if draw.random() < 0.3:
            self.layers[0].requires_grad_(False)

    def forward(self, x):
        h = self.tok(x)
        if self.pos is not None:
            h = h + self.pos(torch.arange(x.shape[1]))
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h))


def get_decoder(seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = Decoder(draw)
    batch = draw.choice([4, 5, 8])
    tokens = torch.randint(0, model.tok.num_embeddings, (batch, 6))
    target = torch.randint(0, model.tok.num_embeddings, (batch, 6))
    target[0, :2] = -100
    mesh, data = draw.choice([("{tp: 2}", None), ("{tp: 4}", None), ("{dp: 2, tp: 2}", "dp"), ("{dp: 2, tp: 4}", "dp"),
                              ("{dp: 4}", "dp"), ("{a: 2, b: 2}", "hsdp"), ("{a: 2, b: 2, tp: 2}", "hsdp")])
    text = f"mesh: {mesh}\n"
    if data == "dp":
        text += f"data_parallel: {{dp: {draw.choice(['ddp', 'fsdp', '{style: fsdp, reshard_after_forward: false}'])}}}\n"
    elif data == "hsdp":
        text += "data_parallel: {a: ddp, b: fsdp}\n"
    if "tp" in mesh:
        fused = model.layers[0].attention.fused and any(not layer.attention.fused for layer in model.layers)
        entries = {"layers.*.attention.wo": "RowwiseParallel", "layers.*.feed_forward.w1": "ColwiseParallel",
                   "layers.*.feed_forward.w2": "RowwiseParallel"}
        for i, layer in enumerate(model.layers):
            if layer.attention.fused:
                entries.pop("layers.*.attention.wo", None)
            else:
                entries[f"layers.{i}.attention.w[qkv]"] = "ColwiseParallel"
            if layer.feed_forward.w3 is not None:
                entries[f"layers.{i}.feed_forward.w3"] = "ColwiseParallel"
        if draw.random() < 0.5:
            entries["output"] = draw.choice(["ColwiseParallel", "{style: ColwiseParallel, use_local_output: false}"])
        del fused
        text += "plan:\n" + "".join(f"  {pattern}: {style}\n" for pattern, style in entries.items())
    train = {"loss": {"name": "cross_entropy", "label_smoothing": draw.choice([0.0, 0.1])}}
    kind = draw.choice(["SGD", "Adam", "AdamW"])
    options = {"lr": 0.02}
    if kind == "SGD":
        options |= {"momentum": draw.choice([0.0, 0.9]), "weight_decay": draw.choice([0.0, 0.01])}
        if options["momentum"] and draw.random() < 0.5:
            options["nesterov"] = True
    else:
        # So large that the sign of a gradient near zero doesn't count.
        options |= {"eps": 1e-3, "weight_decay": 0.01}
    train["optimizer"] = {"name": kind, **options}
    if draw.random() < 0.5:
        train["clip_grad_norm"] = 1.0
    if draw.random() < 0.4:
        train["checkpoint"] = ["layers.*"]
    smoothing = train["loss"]["label_smoothing"]

    def loss(logits, target):
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=smoothing)

    make = getattr(torch.optim, kind)
    passes = draw.choice(["", "", "overlap"])
    return Case(f"decoder {seed} {mesh}{passes and f', {passes}'}", model, tokens, target, text, train,
                lambda p: make(p, **options), loss, passes=passes)


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(MLP(16) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = x + nn.functional.dropout(layer(x), 0.25, True)
        return x


# Beside what the random models have.
OPTIMIZERS = [
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    ("SGD", {"maximize": True, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True, "eps": 1e-3}),
    ("AdamW", {"amsgrad": True, "eps": 1e-3, "betas": [0.5, 0.6]}),
]


def get_others():
    """Optimizers' arguments, gradient accumulation, f32 and bf16, and dropout, which is compared with one rank."""
    plan = "plan: {layers.*.in_proj: ColwiseParallel, layers.*.out_proj: RowwiseParallel}\n"
    meshes = {"one": "mesh: {tp: 1}\n" + plan, "dp2 x tp2": "mesh: {dp: 2, tp: 2}\ndata_parallel: {dp: fsdp}\n" + plan,
              "dp4": "mesh: {dp: 4}\ndata_parallel: {dp: ddp}\n"}
    optimizer = {"name": "SGD", "lr": 0.1, "momentum": 0.9}
    make = lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    for name, options in OPTIMIZERS:
        torch.manual_seed(4)
        options = {"lr": 0.02} | options
        yield Case(f"{name} {options}", Stack(16), torch.randn(8, 16), torch.randn(8, 16), meshes["dp2 x tp2"],
                   {"loss": "mse", "optimizer": {"name": name} | options},
                   lambda p, n=name, o=options: getattr(torch.optim, n)(p, **o), nn.functional.mse_loss)
    # Attention turns batch and sequence around, and flattens them: examples stay where they are.
    torch.manual_seed(8)
    yield Case("encoder layer, fsdp4", nn.TransformerEncoderLayer(12, 3, 20, 0.0, batch_first=True), torch.randn(4, 80, 12),
               torch.randn(4, 80, 12), "mesh: {dp: 4}\ndata_parallel: {dp: fsdp}\n", {"loss": "mse", "optimizer": optimizer},
               make, nn.functional.mse_loss, examples_stay=True)
    for mesh, text in meshes.items():
        torch.manual_seed(5)
        train = {"loss": "mse", "optimizer": optimizer, "accumulate": 3}
        yield Case(f"accumulate, {mesh}", Stack(16), torch.randn(24, 16), torch.randn(24, 16), text, train, make,
                   nn.functional.mse_loss, batches=3)
        torch.manual_seed(6)
        train = {"loss": "mse", "optimizer": optimizer, "compute": "bf16"}
        yield Case(f"bf16, {mesh}", Stack(16), torch.randn(8, 16), torch.randn(8, 16), text, train, make,
                   nn.functional.mse_loss, tolerance=0.02)
        torch.manual_seed(7)
        train = {"loss": "mse", "optimizer": optimizer, "seed": 3, "checkpoint": ["layers.*"] if mesh == "dp4" else []}
        yield Case(f"dropout, {mesh}", Dropped(), torch.randn(8, 16), torch.randn(8, 16), text, train, make,
                   nn.functional.mse_loss, reference=meshes["one"])


def get_batches(tensor, count):
    """The loss of the model itself has a target that isn't a batch."""
    return tensor.chunk(count) if tensor.dim() else [tensor] * count


def train_with_torch(case):
    """The metrics of each step, and the trained parameters with the buffers that have changed."""
    buffers = {name: buffer.clone() for name, buffer in case.model.named_buffers()}
    parameters = [parameter for parameter in case.model.parameters() if parameter.requires_grad]
    optimizer = case.make_optimizer(parameters)
    metrics = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        total = 0
        for example, target in zip(get_batches(case.input, case.batches), get_batches(case.target, case.batches)):
            loss = case.loss(case.model(example), target) / case.batches
            loss.backward()
            total += loss.item()
        line = {"loss": total}
        if "clip_grad_norm" in case.train:
            line["grad_norm"] = nn.utils.clip_grad_norm_(parameters, case.train["clip_grad_norm"]).item()
        optimizer.step()
        metrics.append(line)
    changed = {name: buffer for name, buffer in case.model.named_buffers() if not torch.equal(buffer, buffers[name])}
    return metrics, {name: parameter.detach() for name, parameter in case.model.named_parameters()} | changed


def run(*command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if process.returncode != 0:
        name = pathlib.Path(str(command[0])).name
        raise AssertionError(f"{name} failed with {process.returncode}: {process.stderr.strip()[:3000]}")
    return process.stderr


def train_with_ours(case, tools, folder):
    tool = {name: get_tool(tools, name) for name in ("tp-import", "tp-opt", "tp-compile", "tp-run")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example = case.input[: len(case.input) // case.batches]
        made = torch.jit.script(case.model) if case.scripted else torch.jit.trace(case.model, example, check_trace=False)
        made.save(folder / "model.pt")
    (folder / "plan.yaml").write_text(case.plan)
    (folder / "train.yaml").write_text(json.dumps(case.train))
    np.save(folder / "x.npy", case.input.numpy())
    data = ["--data", f"x={folder}/x.npy"]
    if case.train["loss"] != "output":
        np.save(folder / "target.npy", case.target.numpy())
        data += ["--data", f"target={folder}/target.npy"]
    shape = "x".join(map(str, example.shape)) + "x" + ("i64" if case.input.dtype == torch.int64 else "f32")
    weights = folder / "model.safetensors"
    run(tool["tp-import"], folder / "model.pt", "--input", f"x={shape}", "-o", folder / "model.mlir", "--weights", weights)
    options = f"plan={folder}/plan.yaml train={folder}/train.yaml report={folder}/report.json {case.passes}"
    run(tool["tp-opt"], folder / "model.mlir", f"--tp-parallelize={options}", "-o", folder / "ranks.mlir")
    proof = run(tool["tp-opt"], folder / "ranks.mlir", "-o", "/dev/null",
                f"--tp-verify-spmd=reference={folder}/model.mlir train={folder}/train.yaml accept-tested")
    run(tool["tp-compile"], folder / "ranks.mlir", "-o", folder / "model.tpx")
    run(tool["tp-run"], folder / "model.tpx", "--weights", weights, *data, "--steps", STEPS, "--no-shuffle", "--check-replicas", "1",
        "--allow-unused-weights", "--metrics", folder / "metrics.jsonl", "--output-weights", folder / "trained.safetensors")
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return metrics, safetensors.torch.load_file(folder / "trained.safetensors"), proof


def check(case, tools, folder):
    """Whether the program is proven without execution."""
    metrics, trained, proof = train_with_ours(case, tools, folder)
    if case.reference:
        (folder / "reference").mkdir(exist_ok=True)
        other = dataclasses.replace(case, plan=case.reference)
        expected_metrics, expected, _ = train_with_ours(other, tools, folder / "reference")
        expected_metrics = [{"loss": line["loss"]} for line in expected_metrics]
    else:
        expected_metrics, expected = train_with_torch(case)
    for step, (ours, theirs) in enumerate(zip(metrics, expected_metrics, strict=True), 1):
        for key, value in theirs.items():
            if not abs(ours[key] - value) <= case.tolerance * max(abs(value), 1e-3):
                raise AssertionError(f"step {step}: {key} is {ours[key]}, must be {value}")
    if trained.keys() != expected.keys():
        raise AssertionError(f"weights are of {sorted(trained)}, must be of {sorted(expected)}")
    for name, tensor in trained.items():
        scale = max(expected[name].abs().max().item(), 1e-3)
        difference = (tensor - expected[name]).abs().max().item()
        if not difference <= 5 * case.tolerance * scale:
            raise AssertionError(f"{name} differs by {difference} of {scale}")
    for collective in json.loads((folder / "report.json").read_text())["collectives"] if case.examples_stay else []:
        if collective["kind"] not in ("all_reduce", "reduce_scatter") and "fsdp" not in collective["reason"]:
            raise AssertionError(f"{collective['kind']} of {collective['shape']}: {collective['reason']}")
    return "is proven" in proof


def check_all(cases, tools, keep):
    """The exit code; `keep`: a folder for all files, or None."""
    failures = proven = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = keep / case.name.replace(" ", "_") if keep else pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                proven += check(case, tools, folder)
            except AssertionError as error:
                failures += 1
                print(f"FAIL {case.name}: {error}", flush=True)
    print(f"{len(cases) - failures} of {len(cases)} trainings equal PyTorch's, {proven} proven by rules and the others tested")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--stacks", type=int, default=1000, help="so many stacks of MLPs, of all")
    parser.add_argument("--first", type=int, default=0, help="seed of the first random decoder")
    parser.add_argument("--others", type=int, default=1000, help="so many of the other cases, of all")
    parser.add_argument("--decoders", type=int, default=20, help="so many random decoders")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    options = parser.parse_args()
    stacks = list(get_stacks())
    random.Random(0).shuffle(stacks)
    cases = stacks[: options.stacks] + list(get_others())[: options.others] + [get_decoder(options.first + i) for i in range(options.decoders)]
    cases = take(case for case in cases if options.filter in case.name)
    return check_all(cases, options.tools, options.keep)


if __name__ == "__main__":
    sys.exit(main())
