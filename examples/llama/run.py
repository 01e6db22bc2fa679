#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shard a small Llama-style decoder, with and without sequence parallelism,
and compare its logits with PyTorch's."""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import decoder
import tp_tools
from llama import model


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    tp_tools.add_arguments(parser, "llama")
    parser.add_argument("--plan", type=Path, nargs="+",
                        default=[HERE / "tp.yaml", HERE / "sp.yaml"],
                        help="parallelize plans; their mesh is set to the number of ranks")
    parser.add_argument("--attn", choices=["eager", "sdpa"], default="sdpa",
                        help="attention written out, or as one op (default: %(default)s)")
    parser.add_argument("--norm", choices=["composed", "fused"], default="fused",
                        help="RMSNorm written out, or nn.RMSNorm (default: %(default)s)")
    parser.add_argument("--trace", action="store_true",
                        help="use torch.jit.trace instead of torch.jit.script")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    config = model.Config(attention=arguments.attn, norm=arguments.norm)
    imported = decoder.import_decoder(
        arguments, model.build(config), config.vocab_size, script=not arguments.trace)
    for plan in arguments.plan:
        for ranks in arguments.ranks:
            decoder.compare(imported, plan, ranks)


if __name__ == "__main__":
    main()
