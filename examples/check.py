#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""End-to-end test: import each model once, run it over each number of ranks, and
require PyTorch's result within a relative difference of 1e-4, the same bits when
run again, with no more collectives than Megatron's scheme needs, with the bytes and
the memory that the report predicts, exactly, and with an arena of at most 1.1 times
the most bytes that live at one time.

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
ARENA_SLACK = 1.1
SENTENCES = ["A man is eating food.", "Tensor parallelism splits the weights of a network."]


@dataclass(frozen=True)
class Case:
    """A model, its inputs, the plan to shard it by, the collectives of each kind that
    more than one rank then need, and how TorchScript gets the model."""

    build: Callable[[], torch.nn.Module]
    inputs: Callable[[], dict[str, torch.Tensor]]
    plan: str
    collectives: dict[str, int]
    script: bool = False


def minilm_case(attention):
    # 6 layers: one all-reduce for attention, one for the MLP.
    return Case(lambda: minilm.build(attention), lambda: minilm.tokenize(SENTENCES),
                "minilm/plan.yaml", {"all_reduce": 12})


def gpt2_case(script):
    config = gpt2.Config()
    return Case(lambda: gpt2.build(config), lambda: decoder.token_ids(config.vocab_size),
                "gpt2/plan.yaml", {"all_reduce": 2 * config.n_layers}, script)


def hugging_face_case():
    config = gpt2.Config()
    return Case(lambda: hugging_face.build(config),
                lambda: decoder.token_ids(config.vocab_size),
                "gpt2/embedding.yaml", {"all_reduce": 1})


def llama_case(plan, script, **options):
    config = llama.Config(**options)
    pairs = 2 * config.n_layers  # of a column- and a row-parallel part
    collectives = {
        "tp": {"all_reduce": 1 + pairs, "all_gather": 1},
        "sp": {"reduce_scatter": 1 + pairs, "all_gather": pairs + 2},
    }[plan]
    return Case(lambda: llama.build(config), lambda: decoder.token_ids(config.vocab_size),
                f"llama/{plan}.yaml", collectives, script)


# Every model has 12 heads (or a multiple): it divides over all of RANKS.
RANKS = [1, 2, 3, 4, 6, 12]
CASES = {
    "minilm-eager": minilm_case("eager"),
    "minilm-sdpa": minilm_case("sdpa"),
    "gpt2-traced": gpt2_case(script=False),
    "gpt2-scripted": gpt2_case(script=True),
    "gpt2-hugging-face": hugging_face_case(),
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
    return sum(not check_ranks(name, case, imported, ranks, expected)
               for ranks in arguments.ranks)


def check_ranks(name, case, imported, ranks, expected):
    """Whether the model, sharded over `ranks` ranks, does what the case says."""
    try:
        artifact = imported.shard(HERE / case.plan, ranks)
        value, again = artifact.run(), artifact.run("--no-pin")
        difference = tp_tools.relative_difference(value, expected)
    except SystemExit as error:
        print(f"FAIL {name}, {ranks} ranks: {error}", flush=True)
        return False
    problems = []
    if not difference <= TOLERANCE:
        problems.append(f"expected at most {TOLERANCE:.0e}")
    if value.tobytes() != again.tobytes():
        problems.append("a second run gives other bits")
    totals = artifact.report["totals"]
    collectives = {kind: total["count"] for kind, total in totals.items()}
    wanted = case.collectives if ranks > 1 else {}
    if collectives != wanted:
        problems.append(f"{collectives or 'no collectives'}, expected {wanted or 'none'}")
    problems += tp_tools.compare_prediction(artifact.report, artifact.executed)
    arena, live = artifact.measure_arena()
    if not live <= arena <= ARENA_SLACK * live:
        problems.append(f"an arena of {arena} bytes for {live} that live at one time, expected at most {ARENA_SLACK}×")
    print(f"{'FAIL' if problems else 'ok  '} {name}, {ranks} ranks: "
          + "; ".join([f"relative difference {difference:.1e}", *problems]), flush=True)
    return not problems


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
