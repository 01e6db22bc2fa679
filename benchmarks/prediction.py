#!/usr/bin/env python3
"""Predicted beside measured: the example models on this machine, as `tp-run --calibrate` describes it.

Imports each model once, shards it over each number of ranks with a prediction, and runs all of them in turn, round
after round, so that what else the machine does hits all alike. Prints one line a program: the predicted and the
measured time, the median over rounds of each round's median, and whether the bytes that ranks received and the memory
that they allocated are exactly the predicted ones. Exits with 1 where one isn't.

    .venv/bin/python benchmarks/prediction.py
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import decoder
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
    parser.add_argument("--machine", help="a description or preset; calibrated anew by default")
    arguments = parser.parse_args()
    torch.manual_seed(0)

    calibrator = tp_tools.Tools(arguments.bin, arguments.out, echo=False)
    machine = arguments.machine or arguments.out / "machine.json"
    if not arguments.machine:
        calibrator.call("tp-run", "--calibrate", machine)
    programs = []
    for name, module, inputs, plans in get_models():
        tools = tp_tools.Tools(arguments.bin, arguments.out / name, echo=False)
        tp_tools.save_torchscript(module, inputs, tools.out / "model.pt")
        model = tools.import_model(tools.out / "model.pt", inputs)
        for plan in plans:
            for ranks in arguments.ranks:
                artifact = model.shard(EXAMPLES / plan, ranks, machine)
                programs.append((f"{name} {Path(plan).stem}", ranks, artifact, []))
    for _ in range(arguments.rounds):
        for _, _, artifact, seconds in programs:
            artifact.run("--warmup", "2", "--repeat", str(arguments.repeat))
            seconds.append(artifact.executed["seconds"]["median"])

    print(f"{'program':<14} {'ranks':>5} {'predicted ms':>12} {'measured ms':>11} {'predicted/measured':>18}"
          f" {'bytes':>11} {'arena':>11}  exact")
    exact = True
    for name, ranks, artifact, seconds in programs:
        report, executed = artifact.report, artifact.executed
        predicted, measured = report["prediction"]["seconds"], statistics.median(seconds)
        differences = tp_tools.compare_prediction(report, executed)
        exact &= not differences
        print(f"{name:<14} {ranks:>5} {1e3 * predicted:>12.2f} {1e3 * measured:>11.2f} {predicted / measured:>18.2f}"
              f" {executed['total']['bytes']:>11} {executed['arena_bytes']:>11}  {'no' if differences else 'yes'}")
        for line in differences:
            print(f"  {line}")
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
