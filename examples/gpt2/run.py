#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shard a small GPT-2-style decoder and compare its logits with PyTorch's."""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import decoder
import tp_tools
from gpt2 import model


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    tp_tools.add_arguments(parser, "gpt2")
    parser.add_argument("--plan", type=Path, default=HERE / "plan.yaml",
                        help="parallelize plan; its mesh is set to the number of ranks")
    parser.add_argument("--script", action="store_true",
                        help="use torch.jit.script instead of torch.jit.trace")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    config = model.Config()
    imported = decoder.import_decoder(
        arguments, model.build(config), config.vocab_size, arguments.script)
    for ranks in arguments.ranks:
        decoder.compare(imported, arguments.plan, ranks)


if __name__ == "__main__":
    main()
