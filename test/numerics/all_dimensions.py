#!/usr/bin/env python3
"""Pipelines, data, context and tensor parallelism on one mesh beside single-device PyTorch: losses and parameters after three steps of
training, and logits. Every program is proven, or tested, as well."""

import argparse
import pathlib
import sys
import tempfile

import torch
from torch import nn

import pipeline
import training
from context_parallel import LENGTH, STYLES, VOCABULARY, Decoder
from sampling import take

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases with this text in their names")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    options = parser.parse_args()
    training.STEPS = 3
    failures = proven = count = 0
    for case in take(case for case in get_cases() if options.filter in case.name):
        for check in (pipeline.check_inference, pipeline.check_training):
            with tempfile.TemporaryDirectory() as scratch:
                folder = options.keep / f"{case.name}-{check.__name__}".replace(" ", "_") if options.keep else pathlib.Path(scratch)
                folder.mkdir(parents=True, exist_ok=True)
                count += 1
                try:
                    proven += check(case, options.tools, folder)
                except AssertionError as error:
                    failures += 1
                    print(f"FAIL {case.name}, {check.__name__}: {error}", flush=True)
    print(f"{count - failures} of {count} programs equal PyTorch, {proven} proven by rules and the others tested")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
