#!/usr/bin/env python3
"""End-to-end test: import each model once, run it over each number of ranks, and
require PyTorch's result within a relative difference of 1e-4.

Prints one line for each run; exits with 1 when any of them fails."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

import decoder
import tp_tools
from gpt2 import hugging_face, model as gpt2
from llama import model as llama
from minilm import model as minilm

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-4
SENTENCES = ["A man is eating food.", "Tensor parallelism splits the weights of a network."]


@dataclass(frozen=True)
class Case:
    """A model, how TorchScript gets it, its inputs and the plan to shard it by."""

    build: Callable[[], torch.nn.Module]
    inputs: Callable[[], dict[str, torch.Tensor]]
    plan: str
    script: bool = False


def minilm_case(attention):
    return Case(lambda: minilm.build(attention), lambda: minilm.tokenize(SENTENCES),
                "minilm/plan.yaml")


def gpt2_case(plan, script=False, module=gpt2):
    config = gpt2.Config()
    return Case(lambda: module.build(config), lambda: decoder.token_ids(config.vocab_size),
                f"gpt2/{plan}.yaml", script)


def llama_case(plan, script, **options):
    config = llama.Config(**options)
    return Case(lambda: llama.build(config), lambda: decoder.token_ids(config.vocab_size),
                f"llama/{plan}.yaml", script)


# Every model has 12 heads (or a multiple): it divides over all of RANKS.
RANKS = [1, 2, 3, 4, 6, 12]
CASES = {
    "minilm-eager": minilm_case("eager"),
    "minilm-sdpa": minilm_case("sdpa"),
    "gpt2-traced": gpt2_case("plan"),
    "gpt2-scripted": gpt2_case("plan", script=True),
    "gpt2-hugging-face": gpt2_case("embedding", module=hugging_face),
    "llama-tp-scripted": llama_case("tp", script=True),
    "llama-sp-scripted": llama_case("sp", script=True),
    "llama-tp-traced": llama_case("tp", script=False),
    "llama-sp-written-out": llama_case("sp", script=True, attention="eager", norm="composed"),
}


def check(name, case, arguments):
    """Run one case over all numbers of ranks; returns the number of failures."""
    module, inputs = case.build(), case.inputs()
    with torch.no_grad():
        expected = module(**inputs).numpy()
    tools = tp_tools.Tools(arguments.bin, arguments.out / name, echo=arguments.verbose)
    archive = tools.out / "model.pt"
    tp_tools.save_torchscript(module, inputs, archive, case.script)
    try:
        imported = tools.import_model(archive, inputs)
    except SystemExit as error:
        print(f"FAIL {name}: {error}", flush=True)
        return len(arguments.ranks)
    return sum(not check_ranks(name, imported, HERE / case.plan, ranks, expected)
               for ranks in arguments.ranks)


def check_ranks(name, imported, plan, ranks, expected):
    """Whether the model, sharded over `ranks` ranks, computes `expected`."""
    try:
        difference = tp_tools.relative_difference(imported.shard(plan, ranks).run(), expected)
    except SystemExit as error:
        print(f"FAIL {name}, {ranks} ranks: {error}", flush=True)
        return False
    passed = difference <= TOLERANCE
    print(f"{'ok  ' if passed else 'FAIL'} {name}, {ranks} ranks:"
          f" relative difference {difference:.1e}", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help=f"what to check (default: all of {', '.join(CASES)})")
    tp_tools.add_arguments(parser, "check", RANKS)
    parser.add_argument("--verbose", action="store_true", help="print all command lines")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f"no case '{unknown[0]}'; there are {', '.join(CASES)}")
    failures = sum(check(name, CASES[name], arguments)
                   for name in arguments.cases or CASES)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
