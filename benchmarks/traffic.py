#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Count what the CUDA kernels of programs move through memory, and compare it with the least: each operand once, each result once.
Nothing runs and nothing is measured: tp-predict-traffic executes the kernels' index arithmetic for a model of a device. Products,
attention and collectives are calls of libraries and don't count.

Without programs, those of a block of the shapes of Llama 3 8B (traffic_block.py): the block alone in bf16, with 4096 tokens, and with
one token and a cache of 8192, compared with the least that any kernels for it would move; between embedding and head, its forward pass
in bf16, and a training step with clipped gradients and AdamW, in f32 and in bf16. With --measured, the block that llama_block.py
times, as tp-import imports it from PyTorch; it transposes heads before it rotates them. Exits with 1 where a program, or one of its kernels
that moves 1 % of its bytes or more, is above the bounds that --check gives, or the block alone launches more kernels than
--check-launches gives."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import short
import traffic_block

ROOT = Path(__file__).resolve().parent.parent
LAYER = dict(batch=1, dim=4096, heads=32, kv_heads=8, hidden=14336)
SIZES = LAYER | dict(tokens=1024, vocab=128256)
TRAINING = "loss: {name: cross_entropy}\noptimizer: {name: AdamW, lr: 3.0e-4, weight_decay: 0.1}\nclip_grad_norm: 1.0\n"
KEYS = ("LeastBytes", "MovedBytes", "RequestedBytes")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, nargs="*", help="per-rank programs, ranks.mlir")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin", help="folder of the tools (default: %(default)s)")
    parser.add_argument("--max-blocks", type=int, default=256,
                        help="blocks of a kernel that are counted, all over the grid (default: %(default)s)")
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="list so many of a program's kernels, largest first")
    parser.add_argument("--check", type=float, nargs=2, metavar=("PROGRAM", "KERNEL"),
                        help="the most that a program, and a kernel, may move of what is least, as 1.1 2")
    parser.add_argument("--check-launches", type=int, metavar="N", help="the most kernels that the block alone may launch")
    parser.add_argument("--measured", action="store_true", help="the block alone as llama_block.py has it; needs PyTorch")
    short.add_option(parser, max_blocks=4)
    return parser.parse_args()


def run(arguments, *command):
    process = subprocess.run([arguments.bin / command[0], *command[1:]], capture_output=True, text=True)
    if process.returncode:
        sys.exit(f"{process.stderr}error: {command[0]} failed with exit code {process.returncode}")
    return process.stderr


def count(arguments, program):
    """The kernels of a program, each a dict of what the remark says, with its bytes times its launches."""
    remarks = run(arguments, "tp-opt", program, "--tp-lower-to-kernels", f"--tp-predict-traffic=max-blocks={arguments.max_blocks}",
                  "--remarks-filter=tp-predict-traffic", "--remark-format=emitRemark", "-o", "/dev/null")
    kernels = []
    for name, text in re.findall(r"remark: \[Analysis\] (\w+) \| Category:tp-predict-traffic \| (.*)", remarks):
        kernel = {"Kernel": name} | {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}
        for key in KEYS:
            kernel[key] *= kernel["Launches"]
        kernels.append(kernel)
    return sorted(kernels, key=lambda kernel: -kernel["MovedBytes"])


def print_row(name, size, least, moved, requested):
    print(f"| {name} | {size} | {least / 2**20:.1f} | {moved / least:.2f} | {requested / least:.2f} |", flush=True)


def report(arguments, name, program, least_of_function=None):
    """Print a program's row; whether it is within the bounds. `least_of_function`: the least bytes, if that isn't the sum of what is
    least for each kernel."""
    kernels = [kernel for kernel in count(arguments, program) if kernel["LeastBytes"]]
    least, moved, requested = (sum(kernel[key] for kernel in kernels) for key in KEYS)
    launches = sum(kernel["Launches"] for kernel in kernels)
    if not least:
        sys.exit(f"error: '{program}' has no kernel that moves anything")
    least = least_of_function or least
    print_row(name, f"{len(kernels)} kernels, {launches} launches", least, moved, requested)
    for kernel in kernels[:arguments.kernels]:
        print_row(f"&nbsp;{kernel['Kernel']}", f"{kernel['Launches']} × {kernel['Blocks']} × {kernel['Threads']}",
                  *(kernel[key] for key in KEYS))
    is_good = True
    if least_of_function and arguments.check_launches is not None and launches > arguments.check_launches:
        print(f"{name}: {launches} launches of kernels, more than {arguments.check_launches}", file=sys.stderr)
        is_good = False
    if not arguments.check:
        return is_good
    of_program, of_kernel = arguments.check
    if moved > of_program * least:
        print(f"{name}: moves {moved} bytes, more than {of_program} of the least, {least}", file=sys.stderr)
        is_good = False
    for kernel in kernels:
        if kernel["MovedBytes"] >= 0.01 * moved and kernel["MovedBytes"] > of_kernel * kernel["LeastBytes"]:
            print(f"{name}: {kernel['Kernel']} moves more than {of_kernel} of the least", file=sys.stderr)
            is_good = False
    return is_good


BLOCKS = {"4096 tokens": dict(tokens=4096), "one token": dict(tokens=1, context=8192)}


def get_least_bytes(name):
    return traffic_block.get_least_bytes(**LAYER, tokens=BLOCKS[name]["tokens"], element_bytes=2)


def import_measured(arguments, folder):
    """The block that llama_block.py measures, with the least bytes of its kernels."""
    import llama_block

    llama_block.make(folder, llama_block.Config(), [1])
    for case, name in (("prefill-1", "4096 tokens"), ("decode-1", "one token")):
        program = folder / f"{case}.mlir"
        inputs = (folder / f"{case}.inputs").read_text().splitlines()
        run(arguments, "tp-import", folder / f"{case}.pt", *(text for value in inputs for text in ("--input", value)), "-o", program)
        yield f"measured block, {name}, bf16", program, get_least_bytes(name)


def make_programs(arguments, folder):
    """For one rank: a block alone, with the least bytes of its kernels; its forward pass and training steps."""
    for name, sizes in BLOCKS.items():
        layer = folder / f"{name}.mlir"
        layer.write_text(traffic_block.build_layer(**LAYER, **sizes, dtype="bf16"))
        yield f"block alone, {name}, bf16", layer, get_least_bytes(name)
    forward = folder / "forward.mlir"
    forward.write_text(traffic_block.build(**SIZES, dtype="bf16"))
    yield "block, forward, bf16", forward
    model = folder / "model.mlir"
    model.write_text(traffic_block.build(**SIZES, dtype="f32"))
    for compute in ("f32", "bf16"):
        training, step = folder / f"{compute}.yaml", folder / f"{compute}.mlir"
        training.write_text(f"{TRAINING}compute: {compute}\n")
        run(arguments, "tp-opt", model, f"--tp-grad=train={training}", "-o", step)
        yield f"block, training step, {compute}", step


def main():
    arguments = parse_arguments()
    print("| program | kernels, launches × blocks × threads | least, MiB | moved | requested |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        make = import_measured if arguments.measured else make_programs
        programs = [(str(program.parent), program) for program in arguments.programs] or make(arguments, Path(folder))
        is_good = [report(arguments, *program) for program in programs]
    sys.exit(not all(is_good))


if __name__ == "__main__":
    main()
