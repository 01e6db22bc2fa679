#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shard all-MiniLM-L6-v2 over ranks and compare it with PyTorch on real sentences."""

import argparse
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tp_tools
from minilm import model

SENTENCES = [
    "A man is eating food.",
    "Someone has a meal.",
    "The new compiler shards matrix products over several processors.",
    "Tensor parallelism splits the weights of a neural network between devices.",
]
TOLERANCE = 1e-5


def print_similarities(similarities, title):
    print(f"\n{title}")
    for row, sentence in zip(similarities, SENTENCES):
        print("  " + "  ".join(f"{value:8.5f}" for value in row) + f"   {sentence}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    tp_tools.add_arguments(parser, "minilm")
    parser.add_argument("--attn", choices=["eager", "sdpa"], default="sdpa",
                        help="attention written out, or as one op (default: %(default)s)")
    parser.add_argument("--plan", type=Path, default=HERE / "plan.yaml",
                        help="parallelize plan; its mesh is set to the number of ranks")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    encoder = model.build(arguments.attn)
    inputs = model.tokenize(SENTENCES)
    with torch.no_grad():
        expected = encoder(**inputs).numpy()
    reference = expected @ expected.T

    tools = tp_tools.Tools(arguments.bin, arguments.out)
    archive = arguments.out / "model.pt"
    tp_tools.save_torchscript(encoder, inputs, archive)
    imported = tools.import_model(archive, inputs)

    print_similarities(reference, "similarities, PyTorch")
    failed = False
    for ranks in arguments.ranks:
        print(f"\n== {ranks} ranks")
        artifact = imported.shard(arguments.plan, ranks)
        embeddings = artifact.run()
        similarities = embeddings @ embeddings.T
        print_similarities(similarities, f"similarities, {ranks} ranks")
        difference = abs(similarities - reference).max()
        print(f"largest difference to PyTorch: {difference:.1e} (limit {TOLERANCE:.0e})\n")
        tp_tools.print_collectives(artifact.report)
        failed |= not difference <= TOLERANCE
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
