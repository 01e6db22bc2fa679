#!/usr/bin/env python3
"""Pipelines beside single-device PyTorch: results of inference, and losses and parameters after some steps of training.

Stacks of MLPs and small decoders, cut into 2 to 8 stages, with 1 to 8 microbatches, all schedules, and tensor and data
parallelism inside the stages. The bytes that stages pass to each other are those that the report predicts: activations
forward, their gradients back, once per microbatch and boundary. Every program is proven, or tested, as well.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn

import training
from ops import get_tool
from ranks import Ranks
from sampling import take
from training import Case, run


class Stack(nn.Module):
    """Layers with residuals, so that a value that enters a stage is read twice."""

    def __init__(self, dim, depth, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(training.MLP(dim) for _ in range(depth))
        self.head = nn.Linear(dim, dim)
        self.dropout = dropout

    def forward(self, x):
        for layer in self.layers:
            h = layer(x)
            x = x + (nn.functional.dropout(h, self.dropout, True) if self.dropout else h)
        return self.head(x)


class Skipping(nn.Module):
    """The last stage reads what the first one computes."""

    def __init__(self, dim):
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        first = torch.tanh(self.a(x))
        h = torch.tanh(self.b(first))
        return self.d(torch.tanh(self.c(h)) + first)


class Decoder(nn.Module):
    def __init__(self, depth, tied):
        super().__init__()
        dim, heads, vocabulary = 16, 4, 12
        self.tok, self.pos = nn.Embedding(vocabulary, dim), nn.Embedding(6, dim)
        self.layers = nn.ModuleList(DecoderBlock(dim, heads) for _ in range(depth))
        self.norm, self.output = nn.LayerNorm(dim), nn.Linear(dim, vocabulary, bias=False)
        if tied:
            self.output.weight = self.tok.weight

    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h))


class DecoderBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(dim), nn.LayerNorm(dim)
        self.attention = training.Attention(dim, heads, heads, fused=False)
        self.feed_forward = training.FeedForward(dim, 32, gated=True, act=nn.functional.silu)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


TP_STACK = "plan: {layers.*.in_proj: ColwiseParallel, layers.*.out_proj: RowwiseParallel}\n"
TP_DECODER = """plan:
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel
  layers.*.feed_forward.w[13]: ColwiseParallel
  layers.*.feed_forward.w2: RowwiseParallel
"""


def get_plan(mesh, split, schedule, microbatches, rest=""):
    return (f"mesh: {{{mesh}}}\npipeline: {{pp: {{split: [{', '.join(split)}], schedule: {schedule}, "
            f"microbatches: {microbatches}}}}}\n{rest}")


@dataclasses.dataclass
class PipelineCase(Case):
    # Bytes that one boundary passes forward for one microbatch, on all ranks together; None: not checked.
    boundary: int = None
    stages: int = 2


def get_cases():
    """Trainings. The same models and plans are inferences."""
    sgd = {"name": "SGD", "lr": 0.1, "momentum": 0.9}
    adam = {"name": "AdamW", "lr": 0.02, "eps": 1e-3, "weight_decay": 0.01}
    make_sgd = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)
    make_adam = lambda p: torch.optim.AdamW(p, lr=0.02, eps=1e-3, weight_decay=0.01)

    def stack(name, plan, microbatches, *, depth=4, stages=2, train=None, model=None, batch=4, **more):
        torch.manual_seed(len(name))
        rows = batch * microbatches
        train = {"loss": "mse", "optimizer": sgd} | (train or {})
        return PipelineCase(name, model or Stack(8, depth), torch.randn(rows, 8), torch.randn(rows, 8), plan, train, make_sgd,
                            nn.functional.mse_loss, batches=microbatches, stages=stages, **more)

    def decoder(name, plan, microbatches, *, tied=False, depth=2, stages=2, train=None, batch=2, **more):
        torch.manual_seed(len(name))
        rows = batch * microbatches
        train = {"loss": "cross_entropy", "optimizer": adam} | (train or {})
        loss = lambda logits, target: nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        return PipelineCase(name, Decoder(depth, tied), torch.randint(0, 12, (rows, 6)), torch.randint(0, 12, (rows, 6)), plan,
                            train, make_adam, loss, batches=microbatches, stages=stages, **more)

    for schedule in ("GPipe", "1F1B"):
        for microbatches in (1, 2, 4):
            plan = get_plan("pp: 2", ["layers.2"], schedule, microbatches)
            yield stack(f"stack, 2 stages, {schedule}, {microbatches}", plan, microbatches, boundary=4 * 8 * 4)
        plan = get_plan("pp: 4", ["layers.1", "layers.2", "layers.3"], schedule, 6)
        yield stack(f"stack, 4 stages, {schedule}, 6", plan, 6, stages=4, boundary=4 * 8 * 4)
        plan = get_plan("pp: 2, tp: 2", ["layers.2"], schedule, 3, TP_STACK)
        yield stack(f"stack, 2 x tp 2, {schedule}", plan, 3, boundary=2 * 4 * 8 * 4)
        plan = get_plan("pp: 2", ["layers.1"], schedule, 4)
        yield decoder(f"decoder, 2 stages, {schedule}", plan, 4, boundary=2 * 6 * 16 * 4)
        plan = get_plan("pp: 2, tp: 2", ["layers.1"], schedule, 2, TP_DECODER)
        yield decoder(f"decoder, 2 x tp 2, {schedule}", plan, 2, train={"clip_grad_norm": 1.0}, boundary=2 * 2 * 6 * 16 * 4)
    for schedule in ("Interleaved1F1B", "InterleavedZeroBubble"):
        for microbatches in (1, 4):
            plan = get_plan("pp: 2", ["layers.1", "layers.2", "layers.3"], schedule, microbatches)
            yield stack(f"stack, 2 x 2 stages, {schedule}, {microbatches}", plan, microbatches, stages=4, boundary=4 * 8 * 4)
        plan = get_plan("pp: 4", [f"layers.{i}" for i in range(1, 8)], schedule, 8)
        yield stack(f"stack, 4 x 2 stages, {schedule}, 8", plan, 8, stages=8, depth=8, boundary=4 * 8 * 4)
        plan = get_plan("pp: 2", [f"layers.{i}" for i in range(1, 6)], schedule, 3)
        yield stack(f"stack, 2 x 3 stages, {schedule}, 3", plan, 3, stages=6, depth=6, boundary=4 * 8 * 4)
        plan = get_plan("pp: 2, tp: 2", ["layers.1", "layers.2", "output"], schedule, 2, TP_DECODER)
        yield decoder(f"decoder, 2 x 2 stages x tp 2, {schedule}", plan, 2, depth=3, train={"clip_grad_norm": 1.0})
        plan = get_plan("pp: 2", ["layers.1", "layers.2", "norm"], schedule, 4)
        yield decoder(f"decoder, tied, 2 x 2 stages, {schedule}", plan, 4, depth=3, tied=True)
        plan = get_plan("pp: 2, dp: 2", ["layers.1", "layers.2", "layers.3"], schedule, 4, "data_parallel: {dp: fsdp}\n")
        yield stack(f"stack, 2 x 2 stages x fsdp 2, {schedule}", plan, 4, train={"checkpoint": ["layers.*"]})
        plan = get_plan("pp: 2", ["b", "c", "d"], schedule, 4)
        yield stack(f"skipping, 2 x 2 stages, {schedule}", plan, 4, model=Skipping(8), train={"accumulate": 1})
    for microbatches in (2, 5):
        plan = get_plan("pp: 3", ["layers.1", "layers.2"], "InterleavedZeroBubble", microbatches)
        yield stack(f"stack, 3 stages, zero bubble, {microbatches}", plan, microbatches, stages=3, boundary=4 * 8 * 4)
    plan = get_plan("pp: 2, dp: 2", ["layers.2"], "InterleavedZeroBubble", 3, "data_parallel: {dp: ddp}\n")
    yield stack("stack, zero bubble, 2 x ddp 2, accumulate", plan, 6, train={"accumulate": 2})
    plan = get_plan("pp: 2", ["auto"], "1F1B", 3).replace("[auto]", "auto")
    yield stack("stack, auto", plan, 3, boundary=4 * 8 * 4)
    plan = get_plan("pp: 2", ["auto"], "Interleaved1F1B", 4).replace("[auto]", "auto")
    yield decoder("decoder, auto, interleaved", plan, 4, depth=4, stages=4, boundary=2 * 6 * 16 * 4)
    for data in ("ddp", "fsdp"):
        plan = get_plan("pp: 2, dp: 2", ["layers.2"], "1F1B", 3, f"data_parallel: {{dp: {data}}}\n")
        yield stack(f"stack, 2 x {data} 2", plan, 3, boundary=4 * 8 * 4)
    plan = get_plan("dp: 2, pp: 2, tp: 2", ["layers.1"], "1F1B", 3, "data_parallel: {dp: fsdp}\n" + TP_DECODER)
    yield decoder("decoder, fsdp 2 x 2 stages x tp 2", plan, 3)
    plan = get_plan("tp: 3, pp: 2", ["layers.2"], "1F1B", 2, "mesh_dim: tp\n" + TP_STACK)
    yield stack("stack, uneven tp 3 x 2 stages", plan, 2)
    plan = get_plan("pp: 3", ["layers.1", "norm"], "1F1B", 3)
    yield decoder("decoder, tied, 3 stages, clipped", plan, 3, tied=True, stages=3, train={"clip_grad_norm": 0.5})
    plan = get_plan("pp: 2", ["layers.2"], "1F1B", 3)
    yield stack("stack, checkpoint", plan, 3, train={"checkpoint": ["layers.*"]})
    yield stack("stack, accumulate 2", plan, 6, train={"accumulate": 2})
    yield stack("stack, dropout", plan, 3, model=Stack(8, 4, 0.25), train={"accumulate": 1}, reference="mesh: {tp: 1}\n" + TP_STACK)
    yield stack("stack, overlap", get_plan("pp: 2, tp: 2", ["layers.2"], "1F1B", 3, TP_STACK), 3, passes="overlap")
    plan = get_plan("pp: 3", ["b", "d"], "1F1B", 4)
    yield stack("skipping, 3 stages", plan, 4, stages=3, model=Skipping(8))


def check_bytes(case, folder, directions):
    """The bytes that all ranks receive from other stages."""
    report = json.loads((folder / "report.json").read_text())
    ranks = Ranks(report)
    moved = sum(ranks.sum(c["bytes_by_class"]) for c in report["collectives"] if c["kind"] == "transfer" and len(c["shape"]) > 1)
    expected = directions * case.boundary * (case.stages - 1) * case.batches
    if moved != expected:
        raise AssertionError(f"{moved} bytes are passed between stages, must be {expected}")


def check_training(case, tools, folder):
    if case.reference:  # of one rank, with as many batches
        other = dataclasses.replace(case, train=case.train | {"accumulate": case.batches})
        (folder / "reference").mkdir(exist_ok=True)
        reference = dataclasses.replace(other, plan=case.reference, reference=None)
        expected, weights, _ = training.train_with_ours(reference, tools, folder / "reference")
        metrics, trained, proof = training.train_with_ours(case, tools, folder)
        for ours, theirs in zip(metrics, expected, strict=True):
            if not abs(ours["loss"] - theirs["loss"]) <= 1e-5 * abs(theirs["loss"]):
                raise AssertionError(f"loss is {ours['loss']}, must be {theirs['loss']}")
        for name, tensor in weights.items():
            torch.testing.assert_close(trained[name], tensor, rtol=1e-4, atol=1e-5)
        proven = "is proven" in proof
    else:
        proven = training.check(case, tools, folder)
    if case.boundary:
        check_bytes(case, folder, 2)
    return proven


def check_inference(case, tools, folder):
    tool = {name: get_tool(tools, name) for name in ("tp-import", "tp-opt", "tp-compile", "tp-run")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example = case.input[: len(case.input) // case.batches]
        torch.jit.trace(case.model, example, check_trace=False).save(folder / "model.pt")
    (folder / "plan.yaml").write_text(case.plan)
    np.save(folder / "x.npy", case.input.numpy())
    shape = "x".join(map(str, example.shape)) + "x" + ("i64" if case.input.dtype == torch.int64 else "f32")
    weights = folder / "model.safetensors"
    run(tool["tp-import"], folder / "model.pt", "--input", f"x={shape}", "-o", folder / "model.mlir", "--weights", weights)
    options = f"plan={folder}/plan.yaml report={folder}/report.json {case.passes}"
    run(tool["tp-opt"], folder / "model.mlir", f"--tp-parallelize={options}", "-o", folder / "ranks.mlir")
    proof = run(tool["tp-opt"], folder / "ranks.mlir", "-o", "/dev/null",
                f"--tp-verify-spmd=reference={folder}/model.mlir accept-tested")
    run(tool["tp-compile"], folder / "ranks.mlir", "-o", folder / "model.tpx")
    out = folder / "y.npy"
    run(tool["tp-run"], folder / "model.tpx", "--weights", weights, "--input", f"x={folder}/x.npy", "--output", out)
    expected = case.model(case.input).detach()
    torch.testing.assert_close(torch.from_numpy(np.load(out)), expected, rtol=1e-4, atol=1e-5)
    if case.boundary:
        check_bytes(case, folder, 1)
    return "is proven" in proof


class Tally:
    """How many programs were checked, of them failed, and were proven by rules."""

    def __init__(self):
        self.count = self.failures = self.proven = 0

    def finish(self, what):
        """Prints it; the exit code."""
        print(f"{self.count - self.failures} of {self.count} {what} equal PyTorch, {self.proven} proven by rules and the others tested")
        return 1 if self.failures else 0


def check_programs(case, tools, keep, tally, *, trains=True):
    """Checks the inference and the training of a case. `keep`: the folder that keeps its files, or None."""
    # Inference has neither accumulation nor dropout.
    checks = [("inference", check_inference)] * ("accumulate" not in case.train)
    for kind, check in checks + [("training", check_training)] * trains:
        with tempfile.TemporaryDirectory() as scratch:
            folder = keep / f"{case.name}_{kind}".replace(" ", "_") if keep else pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            tally.count += 1
            try:
                tally.proven += check(case, tools, folder)
            except AssertionError as error:
                tally.failures += 1
                print(f"FAIL {case.name}, {kind}: {error}", flush=True)


def main(get_cases=get_cases, description=__doc__, what="pipelines"):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    parser.add_argument("--inference", action="store_true", help="no training")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    options = parser.parse_args()
    tally = Tally()
    for case in take(case for case in get_cases() if options.filter in case.name):
        check_programs(case, options.tools, options.keep, tally, trains=not options.inference)
    return tally.finish(what)


if __name__ == "__main__":
    sys.exit(main())
