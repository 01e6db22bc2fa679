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


# A result's attributes: the whole's type, the name, the dimensions' axes.
RESULT = re.compile(
    r'\{tp\.global_type = tensor<([^>]*)>, tp\.name = "(\w+)", tp\.sharding = #tp\.sharding<@mesh, \[([^\]]*)\]>\}'
)


def get_unused_axes(mesh, used):
    """Mesh dimensions, or parts of them, that aren't in `used`, and how many ranks they span."""
    names = []
    for name, size in mesh.axes:
        parts = [part for part in used if part.split(":")[0] == name]
        if not parts:
            names.append((name, size))
        elif parts != [name]:
            names += [(part, 2) for part in (f"{name}:(1)2", f"{name}:(2)2") if part not in parts]
    return [name for name, _ in names], math.prod(size for _, size in names)


def keep_copies(ranks, mesh):
    """Declares replicated results as blocks of a larger tensor along dimension 0, so that each rank's copy is an output.

    Returns how many copies each output now has.
    """
    copies = {}

    def widen(match):
        *extents, element = match[1].split("x")
        dims = re.findall(r"\{([^}]*)\}", match[3])
        if not dims:
            return match[0]
        used = [axis for dim in dims for axis in dim.split(", ") if axis]
        unused, count = get_unused_axes(mesh, used)
        copies[match[2]] = count
        extents[0] = str(int(extents[0]) * count)
        dims[0] = ", ".join(unused + ([dims[0]] if dims[0] else []))
        lists = ", ".join("{" + dim + "}" for dim in dims)
        return (
            f'{{tp.global_type = tensor<{"x".join([*extents, element])}>, tp.name = "{match[2]}", '
            f"tp.sharding = #tp.sharding<@mesh, [{lists} ]>}}"
        )

    text = ranks.read_text()
    arguments, arrow, rest = text.partition(") -> (")
    results, brace, body = rest.partition(") {\n")
    ranks.write_text(arguments + arrow + RESULT.sub(widen, results) + brace + body)
    return copies


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
    copies = keep_copies(ranks, mesh)
    run([get_tool(tools, "tp-compile"), ranks, "-o", artifact])

    command = [get_tool(tools, "tp-run"), artifact, "--json", executed]
    parameters = {}
    for program in batch:
        parameters |= program.parameters
        for name, tensor, _ in program.arguments:
            save(directory / f"{name}.npy", tensor)
            command += ["--input", f"{name}={directory}/{name}.npy"]
        for _, name, _, _ in program.results:
            command += ["--output", f"{name}={directory}/{name}.npy"]
    if parameters:
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in parameters.items()}, weights)
        command += ["--weights", weights, "--allow-unused-weights"]
    run(command)

    for program in batch:
        for _, name, expected, _ in program.results:
            if copies.get(name, 1) > 1:
                expected = torch.cat([expected] * copies[name])
            problem = difference(load(directory / f"{name}.npy", expected.dtype), expected)
            if problem:
                raise Failure(f"{program.name}: output {name} {problem}")
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
