#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers beside PyTorch: ResNet-50, ViT-B/16 and a Mixtral-style layer on two ranks, and the time from a program of
torch.export to a compiled one.

Each is exported, imported and sharded: ResNet by its batch, the others by tensor parallelism. PyTorch runs it with two threads, eagerly
and compiled (torch.compile). They take turns, and a figure is the median over the rounds of each round's median. Exits with 1
where a row misses its goal, or where results differ."""

import argparse
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import minilm_vs_torch
import short
import tp_tools

RANKS = 2
TOLERANCE = 1e-4  # relative to the largest value


@dataclass
class Work:
    """A model with its inputs; `goals` are the largest ratios to PyTorch eager and compiled, None where there is no goal."""
    name: str
    model: torch.nn.Module
    inputs: dict
    plan: str
    goals: tuple


class First(torch.nn.Module):
    """The first tensor of the output, which a plain tensor of the same name holds in both programs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)[0]


class Images(First):
    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits


class Experts(First):
    """Attention is left out, since any other decoder has it, too."""

    def forward(self, hidden_states):
        output = self.model(hidden_states)
        return output[0] if isinstance(output, tuple) else output


class Tokens(First):
    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


VIT = {f"model.vit.layers.*.{name}": style for name, style in (
    ("attention.q_proj", "ColwiseParallel"), ("attention.k_proj", "ColwiseParallel"), ("attention.v_proj", "ColwiseParallel"),
    ("attention.o_proj", "RowwiseParallel"), ("mlp.fc1", "ColwiseParallel"), ("mlp.fc2", "RowwiseParallel"))} | {
    "model.vit.embeddings.patch_embeddings.projection.weight": "[Replicate]"}


def get_tp_plan(model):
    lines = [f'  "model.{key}": {style}' for key, style in (model.tp_plan or {}).items()]
    return f"mesh: {{tp: {RANKS}}}\nmatch: hf\nplan:\n" + "\n".join(lines) + "\n"


def make_resnet(arguments):
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig()).eval()
    return Work(f"ResNet-50, batch {arguments.batch}", Images(model), {"pixel_values": torch.randn(arguments.batch, 3, 224, 224)},
                f"mesh: {{dp: {RANKS}}}\ndata_parallel: {{dp: ddp}}\n", (0.9, 1.0))


def make_vit(arguments):
    model = transformers.ViTForImageClassification(transformers.ViTConfig()).eval()
    plan = f"mesh: {{tp: {RANKS}}}\nplan:\n" + "".join(f"  {key}: {style}\n" for key, style in VIT.items())
    return Work(f"ViT-B/16, batch {arguments.batch}", Images(model), {"pixel_values": torch.randn(arguments.batch, 3, 224, 224)}, plan,
                (0.9, 1.0))


def make_experts(arguments):
    from transformers.models.mixtral import modeling_mixtral
    config = transformers.MixtralConfig(hidden_size=1024, intermediate_size=3584, num_local_experts=8, num_experts_per_tok=2)
    config._experts_implementation = "grouped_mm"
    model = modeling_mixtral.MixtralSparseMoeBlock(config).eval()
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(std=0.02)
    plan = (f"mesh: {{tp: {RANKS}}}\nmatch: hf\nplan:\n"
            "  model.experts.gate_up_proj: packed_colwise\n  model.experts.down_proj: rowwise\n  model.experts: moe_tp_experts\n")
    return Work(f"Mixtral-style layer, 8 experts, top 2, {arguments.tokens} tokens", Experts(model),
                {"hidden_states": torch.randn(1, arguments.tokens, 1024)}, plan, (0.8, None))


MODELS = {"resnet": make_resnet, "vit": make_vit, "experts": make_experts}


def time_calls(function, runs):
    """Median seconds of `runs` calls, after two that don't count."""
    seconds = []
    for _ in range(runs + 2):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


def import_work(work, folder, arguments):
    tools = tp_tools.Tools(arguments.bin, folder, echo=False)
    tp_tools.save_exported(work.model, work.inputs, folder / "model.pt2")
    imported = tools.import_model(folder / "model.pt2", work.inputs)
    (folder / "plan.yaml").write_text(work.plan)
    return imported


def print_row(name, theirs, ours, goal):
    ratio = statistics.median(ours) / statistics.median(theirs)
    missed = goal is not None and ratio > goal
    print(f"{name:<58} {statistics.median(theirs) * 1e3:>10.1f} {statistics.median(ours) * 1e3:>10.1f} {ratio:>6.2f} "
          f"{'' if goal is None else goal:>5}{'  missed' if missed else ''}", flush=True)
    return missed


def measure(work, folder, arguments):
    """Prints the rows of one model; whether a goal is missed."""
    imported = import_work(work, folder, arguments)
    artifact = imported.compile(folder / "plan.yaml", folder)
    with torch.inference_mode():
        eager = {"eager": lambda: work.model(**work.inputs)}
        expected = eager["eager"]()
        difference = tp_tools.relative_difference(artifact.run(), expected.numpy())
        if not difference < TOLERANCE:
            sys.exit(f"error: {work.name} differs from PyTorch by {difference:.1e}")
        if not arguments.no_compile:
            compiled = torch.compile(work.model)
            eager["torch.compile"] = lambda: compiled(**work.inputs)
        theirs, ours = {name: [] for name in eager}, []
        for _ in range(arguments.rounds):
            for name, call in eager.items():
                theirs[name].append(time_calls(call, arguments.runs))
            artifact.run("--warmup", "2", "--repeat", str(arguments.runs))
            ours.append(artifact.executed["seconds"]["median"])
    return any([print_row(f"{work.name}: {name}", seconds, ours, goal)
                for (name, seconds), goal in zip(theirs.items(), work.goals)])


def measure_compilation(arguments):
    """From the file of an exported program to a compiled one, beside the first call of torch.compile."""
    config = transformers.LlamaConfig(num_hidden_layers=arguments.layers, hidden_size=512, intermediate_size=1376, num_attention_heads=8,
                                      num_key_value_heads=8, vocab_size=4096)
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 4096, (1, 128))
    work = Work(f"import, plan and compile, Llama of {arguments.layers} layers", Tokens(model), {"input_ids": ids}, get_tp_plan(model), ())
    folder = arguments.out / "llama"
    tools = tp_tools.Tools(arguments.bin, folder, echo=False)
    tp_tools.save_exported(work.model, work.inputs, folder / "model.pt2")
    (folder / "plan.yaml").write_text(work.plan)
    theirs, ours = [], []
    for _ in range(1 if arguments.short else 3):
        start = time.perf_counter()
        tools.import_model(folder / "model.pt2", work.inputs).compile(folder / "plan.yaml", folder)
        ours.append(time.perf_counter() - start)
        if not arguments.no_compile:
            torch._dynamo.reset()
            with torch.inference_mode(), torch._inductor.utils.fresh_inductor_cache():
                start = time.perf_counter()
                torch.compile(work.model)(**work.inputs)
                theirs.append(time.perf_counter() - start)
    if theirs:
        return print_row(f"{work.name}: torch.compile's first call", theirs, ours, 0.5)
    print(f"{work.name}: {statistics.median(ours):.1f} s")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "models-benchmark")
    parser.add_argument("--only", choices=[*MODELS, "compilation"], nargs="+", default=[*MODELS, "compilation"])
    parser.add_argument("--batch", type=int, default=8, help="images (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=512, help="of the layer of experts (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=24, help="of the Llama that is compiled (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side in a turn (default: %(default)s)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    short.add_option(parser, batch=2, tokens=16, layers=1, rounds=1, runs=1, no_compile=True, only=["vit", "compilation"])
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(RANKS)
    minilm_vs_torch.print_environment()
    print(f"{'':<58} {'theirs, ms':>10} {'ours, ms':>10} {'ratio':>6} {'goal':>5}")
    missed = [measure(make(arguments), arguments.out / name, arguments) for name, make in MODELS.items() if name in arguments.only]
    if "compilation" in arguments.only:
        missed.append(measure_compilation(arguments))
    return any(missed) and not arguments.short


if __name__ == "__main__":
    sys.exit(main())
