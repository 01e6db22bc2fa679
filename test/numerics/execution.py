"""Executes batches of random programs over many ranks and checks every rank's blocks and bytes.

A batch is one module of many programs. It goes through the passes, tp-compile and tp-run. Batch b of seed s depends on
s and b alone. A batch that fails is repeated program by program, and the first of them that fails is printed with its
module.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
from typing import Callable

import safetensors.torch
import torch

import cases
import programs
from ops import get_tool, load, save
from ranks import Ranks

# Of the largest element: sums over ranks are rounded in another order.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}


class Failure(Exception):
    pass


@dataclasses.dataclass
class Batch:
    mesh: programs.Mesh
    programs: list
    # tp-opt's arguments, given the path of the report.
    passes: Callable
    # Raises Failure when something is wrong with the report, given as JSON and the batch's programs.
    check_report: Callable = lambda report, programs: None


def run(command):
    """Returns what the command says on stderr."""
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if process.returncode != 0:
        name = pathlib.Path(command[0]).name
        raise Failure(f"{name} failed with {process.returncode}: {process.stderr.strip()[:3000]}")
    return process.stderr


def difference(actual, expected, exact=False):
    """What is wrong with `actual`, or None."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"is {cases.tensor_type(actual)}, must be {cases.tensor_type(expected)}"
    tolerance = TOLERANCES.get(expected.dtype)
    if exact or tolerance is None:
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
    position = mesh.devices.index(rank) if mesh.devices else rank
    stride = 1
    for name, size in reversed(mesh.axes):
        if name == axis.split(":")[0]:
            break
        stride *= size
    index = position // stride % size
    if ":" not in axis:
        return index, size
    before, part = map(int, re.fullmatch(r".*:\((\d+)\)(\d+)", axis).groups())
    return index // (size // (before * part)) % part, part


def get_block(tensor, placement, mesh, rank):
    """The block of `rank`: each axis cuts what the axes before it left into chunks, as torch.chunk does; of each
    segment on its own, where a dimension consists of segments."""
    dims = re.findall(r"\{([^{}]*)\}", (placement or "").split("partial")[0])
    for dim, text in enumerate(dims):
        axes, _, segments = text.partition("|")
        sizes = [int(size) for size in segments.split(",")] if segments else [tensor.shape[dim]]
        pieces = []
        for piece in torch.split(tensor, sizes, dim):
            for axis in filter(None, axes.strip().split(", ")):
                index, count = get_index(mesh, rank, axis)
                extent = piece.shape[dim]
                chunk = -(-extent // count)
                begin = min(index * chunk, extent)
                piece = piece.narrow(dim, begin, min(chunk, extent - begin))
            pieces.append(piece)
        tensor = torch.cat(pieces, dim)
    return tensor


def check_bytes(report, executed):
    predicted = report["collectives"]
    for rank, by_report in zip(executed["ranks"], Ranks(report), strict=True):
        counted = rank["collectives"]
        if len(counted) != len(predicted):
            raise Failure(f"the report has {len(predicted)} collectives, the run {len(counted)}")
        for wanted, got in zip(predicted, counted):
            expected = (wanted["id"], wanted["kind"], by_report.get_bytes(wanted["id"]), 1)
            if (got["id"], got["kind"], got["bytes"], got["calls"]) != expected:
                raise Failure(f"rank {rank['rank']} executed {got}, predicted {wanted}")


def check_memory(report, executed):
    """What is allocated is what the report predicts, rank by rank."""
    for rank, by_report in zip(executed["ranks"], Ranks(report), strict=True):
        predicted = by_report.prediction
        memory = {"parameters": rank["weight_bytes"], "inputs": rank["input_bytes"], "outputs": rank["output_bytes"],
                  "arena": executed["arena_bytes"]}
        memory["total"] = sum(memory.values())
        if predicted["memory"] != memory:
            raise Failure(f"rank {rank['rank']} allocated {memory}, predicted {predicted['memory']}")
        if predicted["bytes_received"] != rank["bytes"]:
            raise Failure(f"rank {rank['rank']} received {rank['bytes']} bytes, predicted {predicted['bytes_received']}")


def check_prediction(report, executed):
    """The report of the passes and that of tp-run say the same, byte for byte; returns the former."""
    report, executed = json.loads(report.read_text()), json.loads(executed.read_text())
    check_bytes(report, executed)
    check_memory(report, executed)
    return report


def check(batch, tools, directory):
    """Raises Failure when anything is wrong with the programs of `batch`."""
    directory.mkdir(parents=True, exist_ok=True)
    model, ranks, artifact = (directory / name for name in ("model.mlir", "ranks.mlir", "program.tpx"))
    report, executed, weights = (directory / name for name in ("report.json", "run.json", "weights.safetensors"))
    model.write_text(programs.get_module(batch.mesh, batch.programs))
    run([get_tool(tools, "tp-opt"), model, *batch.passes(report), "-o", ranks])
    run([get_tool(tools, "tp-compile"), ranks, "-o", artifact])

    blocks = directory / "blocks"
    command = [get_tool(tools, "tp-run"), artifact, "--json", executed, "--blocks", blocks]
    parameters = {}
    for program in batch.programs:
        parameters |= program.parameters
        for name, tensor, _ in program.arguments:
            save(directory / f"{name}.npy", tensor)
            command += ["--input", f"{name}={directory}/{name}.npy"]
    if parameters:
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in parameters.items()}, weights)
        command += ["--weights", weights, "--allow-unused-weights"]
    run(command)

    for program in batch.programs:
        for _, name, expected, placement in program.results:
            for rank in range(batch.mesh.num_ranks):
                block = get_block(expected, placement, batch.mesh, rank)
                problem = difference(load(blocks / f"{name}.{rank}.npy", expected.dtype), block, program.exact)
                if problem:
                    raise Failure(f"{program.name}: output {name} on rank {rank} {problem}")
    batch.check_report(check_prediction(report, executed), batch.programs)


def explain(batch, error, tools, directory):
    """Prints the first program that fails by itself."""
    for i, program in enumerate(batch.programs):
        single = dataclasses.replace(batch, programs=[program])
        try:
            check(single, tools, directory / f"program{i}")
        except Failure as failure:
            passes = " ".join(map(str, batch.passes("report.json")))
            print(f"{failure}\n// tp-opt {passes}\n{programs.get_module(batch.mesh, [program])}")
            return
    print(f"{error}\n(only with all programs of the batch together)")


def get_parser(doc, batches):
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--tools", help="where tp-opt, tp-compile and tp-run are; PATH by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=batches)
    parser.add_argument("--first", type=int, default=0, help="the first batch's number, to repeat one")
    parser.add_argument("--keep", type=pathlib.Path, help="keep modules, inputs and outputs here")
    return parser


def check_batches(options, draw_batch):
    """Draws and checks batches; `draw_batch` gets the options, a random.Random and a torch.Generator. Returns the exit
    code."""
    failures = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.first, options.first + options.batches):
            directory = (options.keep or pathlib.Path(scratch)) / str(number)
            source = random.Random(f"{options.seed}/{number}")
            generator = torch.Generator().manual_seed(source.getrandbits(60))
            batch = draw_batch(options, source, generator)
            count += len(batch.programs)
            try:
                check(batch, options.tools, directory)
            except Failure as error:
                failures += 1
                print(f"FAIL --seed {options.seed} --first {number} --batches 1:", flush=True)
                explain(batch, error, options.tools, directory)
            if not options.keep:
                shutil.rmtree(directory)
    print(f"{options.batches - failures} of {options.batches} batches ({count} programs) equal PyTorch")
    return 1 if failures else 0
