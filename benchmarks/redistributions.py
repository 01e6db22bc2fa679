#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare what planned redistributions move with the least possible, and with other systems' algorithms.

A row of the first tables is an algorithm, over all redistributions between whole-dimension shardings of tensors to rank 3
on meshes of 8 ranks to 3 dimensions: bytes received by all ranks, divided by what ranks need and don't have (geometric
mean and worst), and its collectives. A row of the last table is a group of redistributions as Shardy's tests have them,
drawn at random: parts of mesh dimensions, Partial operands, meshes whose sizes share factors, sizes that don't divide;
ours are collectives only there, beside Shardy's. tp-opt plans ours; redistribution_peers.py has the others.

Exit code 1 when one of ours moves more than the bound, with one-shot; or, without, more than the optimum of DTensor's
moves or than Shardy's order; when the geometric mean of a group without is above 1.20; or when a block on the way is
larger than both ends and one shard more. Where sizes don't divide, Shardy pads: it permutes padded blocks where
torch.chunk's differ, and that group isn't judged. --count draws more or fewer per group, --short draws 10
and leaves all of the first tables out but the mesh 4x2 and rank 2."""

import argparse
import collections
import itertools
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redistribution_peers as peers
import short

ROOT = Path(__file__).resolve().parent.parent
MESHES = ((8,), (4, 2), (2, 2, 2))
SHAPES = ((48,), (48, 24), (48, 24, 16))
NAMES = "xyzw"
MAX_MEAN = 1.20

Case = collections.namedtuple("Case", "mesh shape source target partial", defaults=((),))
Plan = collections.namedtuple("Plan", "moved bound collectives peak least_peak shard")


def make_mesh(sizes):
    return tuple(zip(NAMES, sizes))


def get_shardings(mesh, rank):
    """All of whole mesh dimensions."""
    axes = [(name, 1, size) for name, size in mesh]
    for count in range(len(mesh) + 1):
        for order in itertools.permutations(axes, count):
            for cuts in itertools.combinations_with_replacement(range(count + 1), rank - 1):
                bounds = [0, *cuts, count]
                yield tuple(order[a:b] for a, b in zip(bounds, bounds[1:]))


# --- drawn ------------------------------------------------------------------------------------------------------------

Group = collections.namedtuple("Group", "title meshes sizes parts partial judged", defaults=(False, False, True))
POWERS = (16, 32, 64, 128)
GROUPS = (
    Group("whole dimensions, 3-D meshes that share factors", ((16, 4, 2), (4, 8, 2), (4, 2, 4), (2, 2, 8)), POWERS),
    Group("parts of dimensions", ((8,), (16,), (2, 8), (4, 4), (4, 2, 4), (2, 2, 2, 4)), POWERS, parts=True),
    Group("Partial operands", ((8,), (4, 4), (2, 8), (4, 2, 2), (16, 4, 2)), POWERS, partial=True),
    Group("Partial operands and parts", ((8,), (4, 4), (2, 8), (4, 2, 4)), POWERS, parts=True, partial=True),
    Group("factors 2 and 3", ((6,), (2, 3), (4, 6), (3, 2, 4), (6, 2, 2)), (12, 24, 48, 96), parts=True),
    Group("sizes that don't all divide", ((2, 2), (4, 2), (2, 2, 2), (2, 3), (4, 2, 4)), (2, 4, 6, 8, 10, 12, 16),
          parts=True, judged=False),
)


def draw_axes(source, mesh, parts):
    """Mesh dimensions, some of them missing or as one or several of their parts, in any order."""
    axes = []
    for name, size in mesh:
        cuts = [1]
        if parts and source.random() < 0.5:
            rest = size
            while rest > 1:
                factor = source.choice([f for f in range(2, rest + 1) if rest % f == 0])
                cuts.append(cuts[-1] * factor)
                rest //= factor
        else:
            cuts.append(size)
        axes += [(name, a, b // a) for a, b in zip(cuts, cuts[1:]) if source.random() < 0.85]
    source.shuffle(axes)
    return axes


def draw_case(source, group):
    while True:
        mesh = make_mesh(source.choice(group.meshes))
        rank = source.choice((1, 2, 2, 3, 3))
        shape = tuple(source.choice(group.sizes) for _ in range(rank))

        def place(axes):
            dims = [[] for _ in range(rank)]
            for axis in axes:
                source.choice(dims).append(axis)
            return tuple(map(peers.join, dims))

        axes = draw_axes(source, mesh, group.parts)
        partial = ()
        if group.partial:
            whole = [axis for axis in axes if axis[2] == dict(mesh)[axis[0]]]
            if not whole:
                continue
            partial = tuple(source.sample(whole, min(len(whole), source.choice((1, 1, 2)))))
            axes = [axis for axis in axes if axis not in partial]
        case = Case(mesh, shape, place(axes), place(draw_axes(source, mesh, group.parts)), partial)
        # Parts without a common grid can't be used together; Shardy's pass has no way between them.
        bounds = {}
        for name, pre, size in itertools.chain(*case.source, *case.target):
            bounds.setdefault(name, {1, dict(mesh)[name]}).update((pre, pre * size))
        if any(b % a for ends in bounds.values() for a, b in itertools.pairwise(sorted(ends))):
            continue
        even = all(size % peers.get_size(dim) == 0 for sharding in case[2:4] for size, dim in zip(shape, sharding))
        if even or not group.judged:
            return case


# --- ours -------------------------------------------------------------------------------------------------------------

def print_axis(axis, mesh):
    name, pre, size = axis
    return name if size == dict(mesh)[name] else f"{name}:({pre}){size}"


def print_sharding(sharding, mesh, partial=()):
    dims = ", ".join("{" + ", ".join(print_axis(a, mesh) for a in dim) + "}" for dim in sharding)
    sums = ", partial = {" + ", ".join(f"{print_axis(a, mesh)}: sum" for a in partial) + "}" if partial else ""
    return f"<@m, [{dims} ]{sums}>"


def print_case(case):
    return (f"{'x'.join(map(str, case.shape))} over {', '.join(f'{n}{s}' for n, s in case.mesh)}: "
            f"{print_sharding(case.source, case.mesh, case.partial)} to {print_sharding(case.target, case.mesh)}")


def plan_all(tp_opt, cases, one_shot):
    """What tp-opt plans for each case over one mesh, and the seconds it took."""
    mesh = cases[0].mesh
    lines = [f"tp.mesh @m({', '.join(f'{n} = {s}' for n, s in mesh)})"]
    functions = {}
    for i, case in enumerate(cases):
        functions.setdefault((case.shape, case.source, case.partial), []).append(i)
    for number, ((shape, source, partial), places) in enumerate(functions.items()):
        type = f"tensor<{'x'.join(map(str, shape))}xf32>"
        results = ", ".join(f"{type} {{tp.sharding = #tp.sharding{print_sharding(cases[i].target, mesh)}}}" for i in places)
        lines.append(f"func.func @f{number}(%x: {type} {{tp.sharding = #tp.sharding"
                     f"{print_sharding(source, mesh, partial)}}}) -> ({results}) {{")
        for i in places:
            lines.append(f'%{i} = tp.redistribute %x to {print_sharding(cases[i].target, mesh)} {{fqn = "{i}"}} : {type}')
        lines.append(f"return {', '.join(f'%{i}' for i in places)} : {', '.join([type] * len(places))}\n}}")
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        options = f"--tp-parallelize=report={report} one-shot={str(one_shot).lower()}"
        start = time.perf_counter()
        subprocess.run([tp_opt, "-", options, "-o", "/dev/null"], input="\n".join(lines), text=True, check=True)
        seconds = time.perf_counter() - start
        rows = json.loads(report.read_text())["redistributions"]
    plans = [Plan(0, 0, 0, 0, 0, 0)] * len(cases)
    for row in rows:
        case = cases[int(row["fqn"])]
        shard = max(peers.get_sizes(mesh, case.shape, case.source))
        plans[int(row["fqn"])] = Plan(row["bytes_received_total"] // 4, row["lower_bound_total"] // 4,
                                      sum(step["kind"] != "local_slice" for step in row["steps"]),
                                      row["peak_bytes"] // 4, row["peak_lower_bound"] // 4, shard)
    return plans, seconds


# --- the tables -------------------------------------------------------------------------------------------------------

OURS = "tp-mlir, one-shot"
OURS_COLLECTIVES = "tp-mlir, collectives only"
DTENSOR = "DTensor's moves, exact optimum"
GREEDY = "DTensor, greedy"
SHARDY = "Shardy, greedy"


def get_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def print_table(title, rows):
    print(f"\n{title}: {len(next(iter(rows.values())))} redistributions\n")
    print("| algorithm | bytes / bound, geometric mean | worst | at the bound | collectives, mean | most |")
    print("|---|---|---|---|---|---|")
    for name, costs in rows.items():
        ratios = [moved / bound for moved, bound, _ in costs]
        optimal = sum(moved == bound for moved, bound, _ in costs) / len(costs)
        steps = [count for _, _, count in costs]
        print(f"| {name} | {get_mean(ratios):.3f} | {max(ratios):.2f} | {optimal:.0%} | "
              f"{sum(steps) / len(steps):.2f} | {max(steps)} |")


def compare_all(tp_opt, sizes, shapes):
    """Prints the tables of whole-dimension shardings; the number of ours that move more than they may."""
    everything = {name: [] for name in (OURS, OURS_COLLECTIVES, DTENSOR, SHARDY)}
    ordered = {name: [] for name in (OURS, OURS_COLLECTIVES, DTENSOR, GREEDY, SHARDY)}
    worse, planned, seconds = 0, 0, 0.0
    for mesh, shape in itertools.product(map(make_mesh, sizes), shapes):
        shardings = list(get_shardings(mesh, len(shape)))
        cases = [Case(mesh, shape, s, t) for s in shardings for t in shardings]
        ours, one = plan_all(tp_opt, cases, one_shot=True)
        collectives, other = plan_all(tp_opt, cases, one_shot=False)
        seconds += one + other
        planned += 2 * len(cases)
        optimum = {source: peers.dtensor_optimum(source, mesh, shape) for source in shardings}
        for case, mine, without in zip(cases, ours, collectives):
            bound = peers.get_missing(mesh, shape, case.source, case.target)
            shardy = peers.shardy_greedy(mesh, shape, case.source, case.target)
            costs = {OURS: (mine.moved, mine.collectives), OURS_COLLECTIVES: (without.moved, without.collectives),
                     DTENSOR: optimum[case.source][case.target],
                     GREEDY: peers.dtensor_greedy(case.source, case.target, mesh, shape), SHARDY: shardy}
            if mine.moved != bound or without.moved > min(costs[DTENSOR][0], shardy[0]):
                worse += 1
                print(f"{print_case(case)}: {mine.moved} and {without.moved}; bound {bound}, DTensor "
                      f"{costs[DTENSOR][0]}, Shardy {shardy[0]}")
            if bound == 0:
                continue
            for table in (everything, ordered) if costs[GREEDY] else (everything,):
                for name, rows in table.items():
                    rows.append((costs[name][0], bound, costs[name][1]))
    print(f"meshes {', '.join('x'.join(map(str, m)) for m in sizes)}; "
          f"tensors {', '.join('x'.join(map(str, s)) for s in shapes)}; only what moves anything")
    print_table("Any order of mesh dimensions", everything)
    print_table("The mesh's order, which is all that DTensor's placements say", ordered)
    print(f"\ntp-opt: {planned} plans, {1000 * seconds / planned:.2f} ms each, with everything else that it does")
    return worse


def compare_drawn(tp_opt, count, seed):
    """Prints the table of groups; whether a group misses its goal."""
    failed, lines, planned, total = False, [], 0, 0.0
    for group in GROUPS:
        source = random.Random(f"{seed} {group.title}")
        cases = sorted({draw_case(source, group) for _ in range(count)}, key=repr)
        rows = []
        for mesh, those in itertools.groupby(sorted(cases, key=lambda case: case.mesh), lambda case: case.mesh):
            those = list(those)
            plans, seconds = plan_all(tp_opt, those, one_shot=False)
            total += seconds
            planned += len(those)
            for case, plan in zip(those, plans):
                shardy = peers.shardy_greedy(*case)
                if plan.bound and shardy:
                    rows.append((case, plan, shardy))
        ratios = [plan.moved / plan.bound for _, plan, _ in rows]
        theirs = [shardy[0] / plan.bound for _, plan, shardy in rows]
        above = [row for row in rows if row[1].moved > row[2][0]]
        higher = [row for row in rows if row[1].peak > row[1].least_peak + row[1].shard]
        at_bound = sum(plan.moved == plan.bound for _, plan, _ in rows)
        lines.append(f"| {group.title} | {len(rows)} | {get_mean(ratios):.3f} | {max(ratios):.2f} | "
                     f"{at_bound / len(rows):.0%} | {get_mean(theirs):.3f} | {max(theirs):.2f} | {len(above)} |")
        failed |= group.judged and (bool(above or higher) or get_mean(ratios) > MAX_MEAN)
        for case, plan, shardy in above + higher:
            print(f"{print_case(case)}: {plan.moved}, bound {plan.bound}, Shardy {shardy[0]}; "
                  f"peak {plan.peak}, of both ends {plan.least_peak}")
    print("\nDrawn at random, collectives only:\n")
    print("| redistributions | number | bytes / bound, geometric mean | worst | at the bound | Shardy's mean | worst | "
          "above Shardy |\n|---|---|---|---|---|---|---|---|")
    print("\n".join(lines))
    print(f"\ntp-opt: {planned} plans, {1000 * total / planned:.2f} ms each, with everything else that it does")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "build" / "bin", type=Path, help="where tp-opt is (default: %(default)s)")
    parser.add_argument("--count", default=120, type=int, help="redistributions to draw per group (default: %(default)s)")
    parser.add_argument("--seed", default=1, type=int, help="of what is drawn (default: %(default)s)")
    short.add_option(parser, count=10)
    arguments = parser.parse_args()
    tp_opt = arguments.bin / "tp-opt"
    if not shutil.which(tp_opt):
        parser.error(f"there is no {tp_opt}")
    worse = compare_all(tp_opt, *((MESHES[1:2], SHAPES[1:2]) if arguments.short else (MESHES, SHAPES)))
    failed = compare_drawn(tp_opt, arguments.count, arguments.seed)
    if worse:
        print(f"{worse} of ours move more than the bound, than the optimum of DTensor's moves, or than Shardy's order")
    if failed:
        print(f"a group is above Shardy, above {MAX_MEAN} on average, or needs too large a block")
    return 1 if worse or failed and not arguments.short else 0


if __name__ == "__main__":
    sys.exit(main())
