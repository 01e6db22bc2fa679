"""Checks that what many ranks compute together is what PyTorch computes, for programs with random placements.

  sharded.py [--tools DIRECTORY] [--seed N] [--batches N] [--graphs N] [--cases N] [--keep DIRECTORY]

A batch is one module: a random mesh, some random graphs and some of the single-op cases, with random placements on
arguments, parameters and results, and random redistributions in between. It goes through the passes, tp-compile and
tp-run. Its outputs must equal PyTorch's on every rank, and the bytes that tp-run counts those that the report predicts.
Batch b of seed s depends on s and b alone. A batch that fails is repeated program by program, and the first of them
that fails is printed with its module. Exit code 1 when any fails.
"""

import argparse
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import safetensors.torch
import torch

import cases
import programs
from ops import get_tool, load, save

MESHES = (
    (("tp", 1),),
    (("tp", 2),),
    (("tp", 3),),
    (("tp", 4),),
    (("dp", 2), ("tp", 2)),
    (("dp", 2), ("tp", 3)),
    (("dp", 3), ("tp", 2)),
    (("dp", 2), ("tp", 1)),
    (("a", 2), ("b", 2), ("c", 2)),
)
PASSES = ("--tp-propagate", "--tp-partition", "--tp-optimize-collectives")

# Of the largest element: sums over ranks are rounded in another order.
TOLERANCES = {torch.float64: 1e-5, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}


class Failure(Exception):
    pass


def run(command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if process.returncode != 0:
        name = pathlib.Path(command[0]).name
        raise Failure(f"{name} failed with {process.returncode}: {process.stderr.strip()[:3000]}")


def difference(actual, expected):
    """What is wrong with `actual`, or None."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"is {cases.tensor_type(actual)}, must be {cases.tensor_type(expected)}"
    tolerance = TOLERANCES.get(expected.dtype)
    if tolerance is None:
        return None if torch.equal(actual, expected) else f"is {actual.tolist()}, must be {expected.tolist()}"
    actual, expected = actual.double(), expected.double()
    finite = torch.isfinite(expected)
    scale = max(1.0, expected[finite].abs().max().item()) if finite.any() else 1.0
    wrong = torch.where(finite, ~((actual - expected).abs() <= tolerance * scale), actual.nan_to_num() != expected.nan_to_num())
    wrong |= actual.isnan() != expected.isnan()
    if not wrong.any():
        return None
    where = wrong.nonzero()[0].tolist()
    return f"differs in {int(wrong.sum())} of {wrong.numel()} elements, first at {where}: is {actual[tuple(where)]}, must be {expected[tuple(where)]}"


def get_index(mesh, rank, axis):
    """The index of `rank` along a mesh dimension, `tp`, or a part of one, `tp:(1)2`; and how many there are."""
    stride = 1
    for name, size in reversed(mesh.axes):
        if name == axis.split(":")[0]:
            break
        stride *= size
    index = rank // stride % size
    if ":" not in axis:
        return index, size
    before, part = map(int, re.fullmatch(r".*:\((\d+)\)(\d+)", axis).groups())
    return index // (size // (before * part)) % part, part


def get_block(tensor, placement, mesh, rank):
    """The block of `rank`: each axis cuts what the axes before it left into chunks, as torch.chunk does."""
    dims = re.findall(r"\{([^}]*)\}", placement or "")
    for dim, axes in enumerate(dims):
        for axis in filter(None, axes.split(", ")):
            index, count = get_index(mesh, rank, axis)
            extent = tensor.shape[dim]
            chunk = -(-extent // count)
            begin = min(index * chunk, extent)
            tensor = tensor.narrow(dim, begin, min(chunk, extent - begin))
    return tensor


def check_bytes(report, executed):
    predicted = json.loads(report.read_text())["collectives"]
    for rank in json.loads(executed.read_text())["ranks"]:
        counted = rank["collectives"]
        if len(counted) != len(predicted):
            raise Failure(f"the report has {len(predicted)} collectives, the run {len(counted)}")
        for wanted, got in zip(predicted, counted):
            expected = (wanted["id"], wanted["kind"], wanted["bytes_by_rank"][rank["rank"]], 1)
            if (got["id"], got["kind"], got["bytes"], got["calls"]) != expected:
                raise Failure(f"rank {rank['rank']} executed {got}, predicted {wanted}")


def check(mesh, batch, pipeline, tools, directory):
    """Raises Failure when anything is wrong with the programs of `batch`."""
    directory.mkdir(parents=True, exist_ok=True)
    model, ranks, artifact = (directory / name for name in ("model.mlir", "ranks.mlir", "program.tpx"))
    report, executed, weights = (directory / name for name in ("report.json", "run.json", "weights.safetensors"))
    model.write_text(programs.get_module(mesh, batch))
    if pipeline:
        run([get_tool(tools, "tp-opt"), model, f"--tp-parallelize=report={report}", "-o", ranks])
    else:
        run([get_tool(tools, "tp-opt"), model, *PASSES, f"--tp-report=file={report}", "-o", ranks])
    run([get_tool(tools, "tp-compile"), ranks, "-o", artifact])

    blocks = directory / "blocks"
    command = [get_tool(tools, "tp-run"), artifact, "--json", executed, "--blocks", blocks]
    parameters = {}
    for program in batch:
        parameters |= program.parameters
        for name, tensor, _ in program.arguments:
            save(directory / f"{name}.npy", tensor)
            command += ["--input", f"{name}={directory}/{name}.npy"]
    if parameters:
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in parameters.items()}, weights)
        command += ["--weights", weights, "--allow-unused-weights"]
    run(command)

    for program in batch:
        for _, name, expected, placement in program.results:
            for rank in range(math.prod(size for _, size in mesh.axes)):
                block = get_block(expected, placement, mesh, rank)
                problem = difference(load(blocks / f"{name}.{rank}.npy", expected.dtype), block)
                if problem:
                    raise Failure(f"{program.name}: output {name} on rank {rank} {problem}")
    check_bytes(report, executed)


def draw_batch(options, number):
    source = random.Random(f"{options.seed}/{number}")
    generator = torch.Generator().manual_seed(source.getrandbits(60))
    mesh = programs.Mesh(source.choice(MESHES))
    placer = programs.Placer(mesh, source)
    batch = [programs.random_graph(f"g{i}", placer, source, generator) for i in range(options.graphs)]
    for i, case in enumerate(source.sample(cases.CASES, options.cases)):
        batch.append(programs.from_case(case, f"c{i}", placer))
    return mesh, batch, source.random() < 0.5


def explain(mesh, batch, pipeline, error, options, directory):
    """Prints the first program that fails by itself."""
    for i, program in enumerate(batch):
        try:
            check(mesh, [program], pipeline, options.tools, directory / f"program{i}")
        except Failure as failure:
            print(f"{failure}\n{programs.get_module(mesh, [program])}")
            return
    print(f"{error}\n(only with all programs of the batch together)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where tp-opt, tp-compile and tp-run are; PATH by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first batch's number, to repeat one")
    parser.add_argument("--graphs", type=int, default=12, help="random graphs a batch")
    parser.add_argument("--cases", type=int, default=12, help="single-op cases a batch")
    parser.add_argument("--keep", type=pathlib.Path, help="keep modules, inputs and outputs here")
    options = parser.parse_args()

    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.first, options.first + options.batches):
            directory = (options.keep or pathlib.Path(scratch)) / str(number)
            mesh, batch, pipeline = draw_batch(options, number)
            try:
                check(mesh, batch, pipeline, options.tools, directory)
            except Failure as error:
                failures += 1
                print(f"FAIL --seed {options.seed} --first {number} --batches 1:", flush=True)
                explain(mesh, batch, pipeline, error, options, directory)
            if not options.keep:
                shutil.rmtree(directory)
    count = options.batches * (options.graphs + options.cases)
    print(f"{options.batches - failures} of {options.batches} batches ({count} programs) equal PyTorch")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
