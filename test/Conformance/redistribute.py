"""What PyTorch's test_redistribute.py asserts of DTensor.redistribute: collectives, and every rank's block.

  redistribute.py [--tools DIRECTORY]

A row says which collectives lead from one list of placements to another here, and how many PyTorch takes. Prints
how many there are, or what is wrong, with exit code 1.
"""

import argparse
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "numerics"))

import execution
import programs
from cases import tensor_type
from execution import Failure, get_block
from ops import get_tool

NAMES = "xyz"
AG, AR, RS, A2A, PERMUTE, EXCHANGE = (
    "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute", "exchange",
)


def get_placement(placements, rank, partial=True):
    """DTensor's list of placements, "S0 R P", as a sharding."""
    dims, kinds = [[] for _ in range(rank)], []
    for name, placement in zip(NAMES, placements.split()):
        if placement.startswith("S"):
            dims[int(placement[1:])].append(name)
        elif placement == "P" and partial:
            kinds.append(f"{name}: sum")
    return get_ordered(dims, kinds)


def get_ordered(dims, kinds=()):
    text = ", ".join("{" + ", ".join(names) + "}" for names in dims)
    return f"<@mesh, [{text} ]" + (f", partial = {{{', '.join(kinds)}}}>" if kinds else ">")


def get_program(name, mesh, tensor, source, target):
    """`tensor` from one sharding to another."""
    program = programs.Program(name, exact=True)
    type = tensor_type(tensor)
    program.arguments = [(f"{name}_x", tensor, source)]
    program.body = [f'%{name}_r = tp.redistribute %{name}_x to {target} {{fqn = "{name}"}} : {type}']
    program.results = [(f"%{name}_r", f"{name}_r", tensor, target)]
    return program


def get_partial_program(name, mesh, shape, source, target):
    """The same from a sum of contributions: the argument has them one after the other in dimension 0."""
    partial = [(axis, size) for (axis, size), p in zip(mesh.axes, source.split()) if p == "P"]
    contributions = torch.randint(-50, 50, (math.prod(size for _, size in partial), *shape)).float()
    tensor, expected = torch.cat(list(contributions)), contributions.sum(0)
    dims = [[] for _ in shape]
    dims[0] = [axis for axis, _ in partial]
    for (axis, _), placement in zip(mesh.axes, source.split()):
        if placement.startswith("S"):
            dims[int(placement[1:])].append(axis)
    stacked, whole = get_ordered(dims), get_placement(source, len(shape))
    local = tensor_type(get_block(tensor, stacked, mesh, 0))
    target = get_placement(target, len(shape))
    program = programs.Program(name, exact=True)
    program.arguments = [(f"{name}_x", tensor, stacked)]
    program.body = [
        f"%{name}_l = tp.to_local %{name}_x as {stacked} : {tensor_type(tensor)} -> {local}",
        f"%{name}_g = tp.from_local %{name}_l as {whole} : {local} -> {tensor_type(expected)}",
        f'%{name}_r = tp.redistribute %{name}_g to {target} {{fqn = "{name}"}} : {tensor_type(expected)}',
    ]
    program.results = [(f"%{name}_r", f"{name}_r", expected, target)]
    return program


def get_any_program(name, mesh, shape, source, target):
    if "P" in source:
        return get_partial_program(name, mesh, shape, source, target)
    tensor = torch.arange(math.prod(shape)).float().reshape(shape)
    return get_program(name, mesh, tensor, get_placement(source, len(shape)), get_placement(target, len(shape)))


# Mesh, shapes, placements, collectives here, their number in PyTorch.
LINE, SQUARE, CUBE = (4,), (2, 2), (2, 2, 2)
SIZES = (12, 13, 14)
ROWS = [
    *((LINE, (n, 3), "S0", "R", [AG], 1) for n in SIZES),
    *((LINE, (3, n), "S1", "R", [AG], 1) for n in SIZES),
    *((LINE, (n, 3), "R", "S0", [], 0) for n in SIZES),
    *((LINE, (3, n), "R", "S1", [], 0) for n in SIZES),
    (LINE, (12, 3), "R", "R", [], 0),
    (LINE, (12, 3), "P", "R", [AR], 1),
    *((LINE, (n, 3), "P", "S0", [RS], 1) for n in (*SIZES, 5, 3)),
    *((LINE, (3, n), "P", "S1", [RS], 1) for n in (*SIZES, 5, 3)),
    *((LINE, shape, "S0", "S1", [A2A], 1) for shape in ((12, 8), (8, 5), (5, 8), (5, 5))),
    *((LINE, shape, "S1", "S0", [A2A], 1) for shape in ((12, 8), (8, 5), (5, 8), (5, 5))),
    # Two mesh dimensions. One exchange is enough where DTensor goes through several placements.
    (SQUARE, (8, 12), "S0 S1", "S0 S0", [A2A], 1),
    *((SQUARE, shape, "S0 S1", "S1 S0", [PERMUTE], 2) for shape in ((8, 12), (3, 4), (5, 7), (1, 2))),
    (SQUARE, (8, 12), "S0 S0", "S1 S1", [A2A], 2),
    *((SQUARE, (n, 4), "S0 S0", "R R", [AG], 1) for n in (10, 9, 3, 1)),
    *((SQUARE, (n, n), "S0 S1", "R R", [EXCHANGE], 2) for n in (10, 9, 3, 1)),
    # A gather along dimension 1 whose dimension 0 is 1.
    (SQUARE, (1, 16, 6), "R S1", "R R", [AG], 1),
    # Over a mesh dimension of size 1 nothing changes.
    *(((4, 1), (8, 4), f"{p} {a}", f"{p} {b}", [], 0)
      for p in ("R", "S0", "S1") for a in ("R", "S0", "S1", "P") for b in ("R", "S0", "S1")),
    # What DTensor merges over a flattened mesh dimension, if the user made one: always, here.
    (SQUARE, (8, 12), "P P", "R R", [AR], 1),
    (SQUARE, (8, 12), "P P", "S0 S0", [RS], 1),
    (SQUARE, (8, 12), "P P", "S0 S1", [RS, RS], 2),
    (SQUARE, (8, 12), "S0 S1", "R R", [EXCHANGE], 2),
    (CUBE, (8, 16), "P P P", "R R R", [AR], 1),
    (CUBE, (8, 16), "P S0 P", "R R R", [AR, AG], 3),
    (CUBE, (8, 16), "P R P", "R R R", [AR], 1),
    (CUBE, (8, 16), "P P S0", "S0 S0 S0", [RS, PERMUTE], 3),
    (CUBE, (8, 16), "P P R", "S0 S1 R", [RS, RS], 2),
]


def check_rows(tools, directory, sizes, rows):
    mesh = programs.Mesh(tuple(zip(NAMES, sizes)))
    batch = [get_any_program(f"r{i}", mesh, row[1], row[2], row[3]) for i, row in enumerate(rows)]

    def check_report(report, _):
        for i, (_, shape, source, target, ours, theirs) in enumerate(rows):
            kinds = [c["kind"] for c in report["collectives"] if c["fqn"] == f"r{i}"]
            if (ours is not None and kinds != ours) or theirs is not None and len(kinds) > theirs:
                raise Failure(f"{source} -> {target}, {shape}: {kinds}, expected {ours}, PyTorch has {theirs}")

    execution.check(execution.Batch(mesh, batch, get_passes, check_report), tools, directory / "x".join(map(str, sizes)))


def get_passes(report):
    return [f"--tp-parallelize=report={report} machine=cpu"]


def get_pairs(sizes, rank):
    """Every list of Replicate, Shard and Partial to every one of Replicate and Shard."""
    kinds = ["R", *(f"S{d}" for d in range(rank))]
    sources = itertools.product(*([*kinds, "P"] for _ in sizes))
    return [(" ".join(a), " ".join(b)) for a, b in itertools.product(sources, itertools.product(kinds, repeat=len(sizes)))]


def get_orders(names, rank):
    """Every way to split the dimensions by some of the names, in any order."""
    for count in range(len(names) + 1):
        for axes in itertools.permutations(names, count):
            for cuts in itertools.combinations_with_replacement(range(count + 1), rank - 1):
                bounds = [0, *cuts, count]
                yield get_ordered([list(axes[a:b]) for a, b in zip(bounds, bounds[1:])])


def check_orders(tools, directory):
    """Every order of the mesh dimensions leads back to the whole, and to the next order."""
    mesh = programs.Mesh(tuple(zip(NAMES, CUBE)))
    batch = []
    for shape in ((16, 8), (17, 5), (33, 16, 8, 1)):
        tensor = torch.arange(math.prod(shape)).float().reshape(shape)
        orders = list(get_orders(NAMES, 2))
        if len(shape) > 2:
            orders = [order.replace(" ]", ", {}, {} ]") for order in orders]
        for a, b in zip(orders, [*orders[1:], orders[0]]):
            batch.append(get_program(f"p{len(batch)}", mesh, tensor, a, orders[0]))
            batch.append(get_program(f"p{len(batch)}", mesh, tensor, a, b))
    # _StridedShard over x and Shard over y of one dimension are y, then x.
    check = execution.Batch(mesh, batch, get_passes)
    execution.check(check, tools, directory / "orders")
    return len(batch)


def check_triangles(tools, directory):
    """No detour moves less than the plan. Returns the number of pairs that move something."""
    tensor = torch.zeros(16, 8)
    mesh = programs.Mesh((("x", 2), ("y", 4)))
    orders = list(get_orders("xy", 2))
    pairs = list(itertools.product(range(len(orders)), repeat=2))
    batch = [get_program(f"p{a}_{b}", mesh, tensor, orders[a], orders[b]) for a, b in pairs]
    directory.mkdir(parents=True, exist_ok=True)
    model, report = directory / "triangles.mlir", directory / "triangles.json"
    model.write_text(programs.get_module(mesh, batch))
    for one_shot in ("true", "false"):
        options = f"--tp-parallelize=report={report} machine=cpu one-shot={one_shot}"
        subprocess.run([get_tool(tools, "tp-opt"), model, options, "-o", directory / "out.mlir"], check=True)
        moved = {pair: 0 for pair in pairs}
        for plan in json.loads(report.read_text())["redistributions"]:
            a, b = plan["fqn"][1:].split("_")
            moved[int(a), int(b)] = plan["bytes_received_total"]
        for a, b, c in itertools.product(range(len(orders)), repeat=3):
            if moved[a, c] > moved[a, b] + moved[b, c]:
                raise Failure(f"{orders[a]} -> {orders[c]} by way of {orders[b]} moves less, one-shot={one_shot}")
    return sum(map(bool, moved.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where tp-opt, tp-compile and tp-run are; PATH by default")
    options = parser.parse_args()
    torch.manual_seed(0)
    exhaustive = [
        *((SQUARE, (8, 4), a, b, None, None) for a, b in get_pairs(SQUARE, 2)),
        # One in nine of them is enough here: numerics/redistributions.py draws others.
        *((CUBE, (8, 8), a, b, None, None) for a, b in get_pairs(CUBE, 2)[::9]),
    ]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            directory = pathlib.Path(scratch)
            for sizes in dict.fromkeys(row[0] for row in ROWS):
                check_rows(options.tools, directory, sizes, [row for row in ROWS if row[0] == sizes])
            for sizes in (SQUARE, CUBE):
                check_rows(options.tools, directory / "all", sizes, [row for row in exhaustive if row[0] == sizes])
            orders = check_orders(options.tools, directory)
            moving = check_triangles(options.tools, directory)
    except Failure as failure:
        print(failure)
        return 1
    print(f"{len(ROWS)} rows, {len(exhaustive)} pairs of placements, {orders} pairs of orders; no detour of {moving} moves less")
    return 0


if __name__ == "__main__":
    sys.exit(main())
