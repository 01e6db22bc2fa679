#!/usr/bin/env python3
"""Random decoders on random meshes beside single-device PyTorch: pipeline, data, context, expert and tensor parallelism together.

  random_meshes.py [--minutes N] [--first SEED] [--count N]

A case has 2 to 16 ranks in up to 5 mesh dimensions, in any order. Its decoder has grouped heads, a causal attention or a mask, MLPs or
mixtures of experts. Logits, and losses and parameters after training steps, must be those of PyTorch, and every program is proven, or
tested. A seed always gives the same case. Exit code 1 when anything differs.
"""

import argparse
import math
import pathlib
import random
import sys
import time
import warnings

import torch
from torch import nn

import context_parallel
import pipeline
import training
from context_parallel import DIM, VOCABULARY

LENGTH, EXPERTS, CHOSEN = 12, 4, 2


class Experts(nn.Module):
    """A mixture in the form of transformers' grouped_mm experts."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(DIM, EXPERTS)
        self.up = nn.Parameter(torch.randn(EXPERTS, 2 * DIM, DIM) / DIM**0.5)
        self.down = nn.Parameter(torch.randn(EXPERTS, DIM, 2 * DIM) / (2 * DIM) ** 0.5)

    def forward(self, x):
        tokens = x.reshape(-1, DIM)
        weights, chosen = self.router(tokens).softmax(-1).topk(CHOSEN, -1)
        experts, order = torch.sort(chosen.reshape(-1))
        counts = torch.histc(experts.float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        h = nn.functional.silu(torch._grouped_mm(tokens[order // CHOSEN], self.up.transpose(-2, -1), offs=ends))
        y = torch._grouped_mm(h, self.down.transpose(-2, -1), offs=ends) * weights.reshape(-1)[order][:, None]
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(order.shape[0])
        return y[inverse].view(-1, CHOSEN, DIM).sum(1).view(x.shape)


class ExpertLayer(context_parallel.Layer):
    def __init__(self, heads, groups):
        super().__init__(heads, groups)
        self.experts = Experts()
        del self.w1, self.w2

    def forward(self, x, *others):
        x = x + self.attention(self.attention_norm(x), *others)
        return x + self.experts(self.mlp_norm(x))


def draw_mesh(draw):
    """Names and sizes of mesh dimensions, at most 16 ranks."""
    while True:
        names = draw.sample(["pp", "replicate", "dp", "cp", "ep", "tp"], draw.randint(1, 5))
        mesh = {name: draw.choice([2, 2, 2, 3, 4] if name == "pp" else [1, 2, 2, 2, 3, 4]) for name in names}
        if "ep" in mesh:
            mesh["ep"] = draw.choice([1, 2, 4])
        if 2 <= math.prod(mesh.values()) <= 16:
            return mesh


def draw_pipeline(draw, num_ranks):
    """The key of a plan, the number of layers and of microbatches."""
    schedule = draw.choice(["GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble"])
    per_rank = {"Interleaved1F1B": 2, "InterleavedZeroBubble": draw.choice([1, 2])}.get(schedule, 1)
    if num_ranks * per_rank > 6:
        schedule, per_rank = "1F1B", 1
    microbatches = draw.choice([1, 2, 3, 4] if per_rank == 1 else [1, num_ranks, 2 * num_ranks])
    layers = max(2, num_ranks * per_rank - 1)
    # The last stage may begin behind the layers.
    begins = [f"layers.{i}" for i in range(1, layers)] + [draw.choice(["norm", "output"])]
    split = sorted(draw.sample(range(len(begins)), num_ranks * per_rank - 1))
    text = f"pipeline: {{pp: {{split: [{', '.join(begins[i] for i in split)}], schedule: {schedule}, microbatches: {microbatches}}}}}\n"
    return text, layers, microbatches


def draw_plan(draw, mesh, model):
    """What a plan has besides the mesh and the pipeline."""
    text = ""
    data = {name: draw.choice(["ddp", "fsdp", "{style: fsdp, reshard_after_forward: false}"]) for name in mesh if name == "dp"}
    data |= {name: "ddp" for name in mesh if name == "replicate"}
    if "ep" in mesh:
        text += "expert_parallel: {ep: all_to_all}\n"
        data |= draw.choice([{}, {"ep": "ddp"}, {"ep": "fsdp"}])
    if data:
        text += f"data_parallel: {{{', '.join(f'{name}: {style}' for name, style in data.items())}}}\n"
    if "cp" in mesh:
        methods = ["all_gather", "cheapest"]
        if model.length % mesh["cp"] == 0:
            methods += ["ring", "ring"]
        if context_parallel.HEADS % (mesh["cp"] * mesh.get("tp", 1)) == 0 and model.groups % (mesh["cp"] * mesh.get("tp", 1)) == 0:
            methods.append("all_to_all")
        text += f"context_parallel: {{cp: {draw.choice(methods)}}}\n"
    if "tp" in mesh:
        entries = {"layers.*.attention.w[qkv]": "ColwiseParallel", "layers.*.attention.wo": "RowwiseParallel"}
        for i, layer in enumerate(model.layers):
            if isinstance(layer, ExpertLayer):
                entries |= {f"layers.{i}.experts.up": "[Shard(1)]", f"layers.{i}.experts.down": "[Shard(2)]"}
            else:
                entries |= {f"layers.{i}.w1": "ColwiseParallel", f"layers.{i}.w2": "RowwiseParallel"}
        if draw.random() < 0.5:
            entries["output"] = draw.choice(["ColwiseParallel", "{style: ColwiseParallel, use_local_output: false}"])
        text += "mesh_dim: tp\nplan:\n" + "".join(f"  {pattern}: {style}\n" for pattern, style in entries.items())
    return text


def get_case(seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    mesh = draw_mesh(draw)
    text, layers, microbatches = draw_pipeline(draw, mesh["pp"]) if "pp" in mesh else ("", 2, 1)
    length = draw.choice([LENGTH, LENGTH, LENGTH - 1])
    # Ranks divide the tokens of experts, and the examples of a microbatch.
    data = math.prod(mesh.get(name, 1) for name in ("replicate", "dp", "ep"))
    batch = draw.choice([4, 4, 5])
    if "ep" in mesh or microbatches > 1:
        batch = data * max(1, batch // data)
    if "ep" in mesh and length % mesh.get("cp", 1):
        length = LENGTH
    groups = draw.choice([context_parallel.HEADS, 2, 1])
    model = context_parallel.Decoder(draw.choice(["causal", "causal", "boolean", "added"]), groups=groups, length=length)
    model.groups = groups
    kinds = [draw.choice([context_parallel.Layer, ExpertLayer]) for _ in range(layers)]
    if "ep" in mesh:
        kinds[-1] = ExpertLayer
    model.layers = nn.ModuleList(kind(context_parallel.HEADS, groups) for kind in kinds)
    if draw.random() < 0.3:
        model.output.weight = model.tok.weight
    accumulate = draw.choice([1, 1, 2])
    batches = accumulate * microbatches
    tokens = torch.randint(1, VOCABULARY, (batch * batches, length))
    plan = f"mesh: {{{', '.join(f'{name}: {size}' for name, size in mesh.items())}}}\n" + text + draw_plan(draw, mesh, model)
    # AdamW's epsilon is so large that the sign of a gradient near zero doesn't count.
    name, options = draw.choice([("SGD", {"lr": 0.2, "momentum": 0.5}), ("AdamW", {"lr": 0.02, "eps": 1e-2, "weight_decay": 0.01})])
    train = {"loss": "cross_entropy", "optimizer": {"name": name} | options}
    if accumulate > 1:
        train["accumulate"] = accumulate
    if draw.random() < 0.3:
        train["clip_grad_norm"] = 0.5
    if draw.random() < 0.3:
        train["checkpoint"] = ["layers.*"]
    return pipeline.PipelineCase(
        f"seed {seed}", model, tokens, torch.randint(VOCABULARY, tokens.shape), plan, train,
        lambda parameters: getattr(torch.optim, name)(parameters, **options),
        lambda logits, target: nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()), batches=batches,
        passes=draw.choice(["", "", "overlap", "sequence-parallel", "bucket-bytes=1000"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--minutes", type=float, default=10, help="begin no case after so many minutes")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=10**9, help="so many seeds at most")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    training.STEPS = 3
    end = time.monotonic() + 60 * options.minutes
    seed, tally = options.first, pipeline.Tally()
    while seed < options.first + options.count and time.monotonic() < end:
        case = get_case(seed)
        before = tally.failures
        pipeline.check_programs(case, options.tools, options.keep, tally)
        if tally.failures > before:
            print(f"{case.plan}{case.train} {case.passes}", flush=True)
        seed += 1
    return tally.finish("programs on random meshes")


if __name__ == "__main__":
    sys.exit(main())
