#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted beside measured: the example models on this machine, as `tp-run --calibrate` describes it.

Imports each model once and shards it over each number of ranks. A round calibrates, predicts and runs every program in
turn, so that what else the machine does hits all alike. Prints one line a program: predicted and measured time, medians
over the rounds (of a round, the median of its runs), their ratio and its range over the rounds, and whether the bytes
that ranks received and the memory that they allocated are exactly the predicted ones. Exits with 1 where they aren't.

    .venv/bin/python benchmarks/prediction.py
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import decoder
import short
import tp_tools
from llama import model as llama
from minilm import model as minilm

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SENTENCES = ["Tensor parallelism splits the weights of a neural network between devices, and a compiler proves it right."] * 8
LLAMA = llama.Config(dim=768, n_layers=4, n_heads=12, n_kv_heads=4, hidden_dim=2048, vocab_size=1024, max_seq_len=256)


def get_models():
    """Name, module, inputs and plans."""
    yield "minilm", minilm.build(), minilm.tokenize(SENTENCES), ["minilm/plan.yaml"]
    yield "llama", llama.build(LLAMA), decoder.token_ids(LLAMA.vocab_size, batch=2, length=128), ["llama/tp.yaml", "llama/sp.yaml"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    tp_tools.add_arguments(parser, "prediction", (2, 4))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=10, help="runs a round (default: %(default)s)")
    parser.add_argument("--machine", help="a description or preset; calibrated in each round by default")
    short.add_option(parser, ranks=[2], rounds=1, repeat=1, machine="cpu")
    arguments = parser.parse_args()
    torch.manual_seed(0)

    programs = []
    for name, module, inputs, plans in get_models():
        tools = tp_tools.Tools(arguments.bin, arguments.out / name, echo=False)
        tp_tools.save_torchscript(module, inputs, tools.out / "model.pt")
        model = tools.import_model(tools.out / "model.pt", inputs)
        for plan in plans:
            for ranks in arguments.ranks:
                programs.append((f"{name} {Path(plan).stem}", ranks, model.shard(EXAMPLES / plan, ranks), []))
    machine = arguments.machine or arguments.out / "machine.json"
    for _ in range(arguments.rounds):
        if not arguments.machine:
            tools.call("tp-run", "--calibrate", machine)
        for _, _, artifact, times in programs:
            tools.call("tp-opt", artifact.folder / "ranks.mlir", "-o", "/dev/null", "--tp-predict-memory",
                       f"--tp-report=file={artifact.folder / 'report.json'} machine={machine}")
            artifact.run("--warmup", "2", "--repeat", str(arguments.repeat))
            times.append((artifact.report["prediction"]["seconds"], artifact.executed["seconds"]["median"]))

    print(f"{'program':<12} {'ranks':>5} {'predicted':>10} {'measured':>10} {'ratio':>6} {'range':>12}"
          f" {'bytes':>10} {'memory':>10}  exact")
    exact = True
    for name, ranks, artifact, times in programs:
        report, executed = artifact.report, artifact.executed
        predicted, measured = (statistics.median(column) for column in zip(*times))
        ratios = sorted(a / b for a, b in times)
        differences = tp_tools.compare_prediction(report, executed)
        exact &= not differences
        print(f"{name:<12} {ranks:>5} {1e3 * predicted:>7.2f} ms {1e3 * measured:>7.2f} ms {statistics.median(ratios):>6.2f}"
              f" {ratios[0]:>5.2f}–{ratios[-1]:<6.2f} {executed['total']['bytes']:>10}"
              f" {max(rank['memory']['total'] for rank in report['prediction']['by_class']):>10}  {'no' if differences else 'yes'}")
        for line in differences:
            print(f"  {line}")
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
