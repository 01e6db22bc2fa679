#!/usr/bin/env python3
"""Pipelines, data, context and tensor parallelism on one mesh beside single-device PyTorch: losses and parameters after three steps of
training, and logits. Every program is proven, or tested, as well."""

import sys

import torch
from torch import nn

import pipeline
import training
from context_parallel import LENGTH, STYLES, VOCABULARY, Decoder

MESHES = {
    "pp: 2, cp: 2": "",
    "pp: 2, cp: 2, tp: 2": STYLES,
    "dp: 2, pp: 2, cp: 2, tp: 2": "data_parallel: {dp: fsdp}\n" + STYLES,
}


def get_cases():
    for mesh, rest in MESHES.items():
        for method in ("ring", "all_gather", "all_to_all"):
            torch.manual_seed(3)
            tokens = torch.randint(1, VOCABULARY, (8, LENGTH))
            plan = pipeline.get_plan(mesh, ["layers.1"], "1F1B", 2, f"context_parallel: {{cp: {method}}}\n{rest}")
            yield pipeline.PipelineCase(
                f"{mesh}, {method}", Decoder(), tokens, torch.randint(VOCABULARY, tokens.shape), plan,
                {"loss": "cross_entropy", "optimizer": {"name": "SGD", "lr": 0.5, "momentum": 0.5}},
                lambda parameters: torch.optim.SGD(parameters, lr=0.5, momentum=0.5),
                lambda logits, target: nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()), batches=2)


if __name__ == "__main__":
    training.STEPS = 3
    sys.exit(pipeline.main(get_cases, __doc__, "programs"))
