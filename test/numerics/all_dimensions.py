#!/usr/bin/env python3
"""Pipelines, data, context, expert and tensor parallelism on one mesh beside single-device PyTorch: losses and parameters after three
steps of training, and logits. Every program is proven, or tested, as well."""

import sys

import torch
from torch import nn

import pipeline
import training
from context_parallel import HEADS, LENGTH, STYLES, VOCABULARY, Decoder
from random_meshes import ExpertLayer

MESHES = {
    "pp: 2, cp: 2": "",
    "pp: 2, cp: 2, tp: 2": STYLES,
    "dp: 2, pp: 2, cp: 2, tp: 2": "data_parallel: {dp: fsdp}\n" + STYLES,
}


EXPERTS = "expert_parallel: {ep: all_to_all}\n"
EXPERT_PLANS = {
    "dp: 2, cp: 2, ep: 2": "mesh: {dp: 2, cp: 2, ep: 2}\ndata_parallel: {dp: fsdp}\ncontext_parallel: {cp: ring}\n" + EXPERTS,
    "pp: 2, dp: 2, ep: 2": pipeline.get_plan("pp: 2, dp: 2, ep: 2", ["layers.1"], "1F1B", 2, "data_parallel: {dp: ddp}\n" + EXPERTS),
}


def get_case(name, model, plan):
    tokens = torch.randint(1, VOCABULARY, (8, LENGTH))
    return pipeline.PipelineCase(
        name, model, tokens, torch.randint(VOCABULARY, tokens.shape), plan,
        {"loss": "cross_entropy", "optimizer": {"name": "SGD", "lr": 0.5, "momentum": 0.5}},
        lambda parameters: torch.optim.SGD(parameters, lr=0.5, momentum=0.5),
        lambda logits, target: nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()),
        batches=2 if "pipeline" in plan else 1)


def get_cases():
    for mesh, rest in MESHES.items():
        for method in ("ring", "all_gather", "all_to_all"):
            torch.manual_seed(3)
            plan = pipeline.get_plan(mesh, ["layers.1"], "1F1B", 2, f"context_parallel: {{cp: {method}}}\n{rest}")
            yield get_case(f"{mesh}, {method}", Decoder(), plan)
    for name, plan in EXPERT_PLANS.items():
        torch.manual_seed(3)
        model = Decoder()
        model.layers = nn.ModuleList(ExpertLayer(HEADS, HEADS) for _ in range(2))
        yield get_case(name, model, plan)


if __name__ == "__main__":
    training.STEPS = 3
    sys.exit(pipeline.main(get_cases, __doc__, "programs"))
