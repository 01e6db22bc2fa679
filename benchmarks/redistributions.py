#!/usr/bin/env python3
"""Compare what planned redistributions move with the least possible, and with other systems' algorithms.

All redistributions between whole-dimension shardings of tensors to rank 3 on meshes of 8 ranks to 3 dimensions. A row
is an algorithm: bytes received by all ranks, divided by what ranks need and don't have (geometric mean and worst), and
its collectives. tp-opt plans ours. The others are written anew here, from their documentation and papers: PyTorch
DTensor's greedy order of single steps, the exact optimum of DTensor's moves, which its graph planner approaches, and
the greedy order of Shardy's reshard-to-collectives pass (slices, permute, all-to-alls, all-gather). Exit code 1 when
one of ours moves more than the bound, with one-shot, or than the optimum of DTensor's moves, without."""

import argparse
import functools
import heapq
import itertools
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MESHES = ((8,), (4, 2), (2, 2, 2))
SHAPES = ((48,), (48, 24), (48, 24, 16))
NAMES = "xyz"
BITS, RANKS = 3, 8


# A sharding is a tuple of tuples: per tensor dimension, major to minor, the mesh dimensions that split it. Each of them
# is a run of bits of the rank's number, so that bits are the parts that cut a dimension in two.

def get_axes(mesh):
    first = 0
    for size in mesh:
        bits = int(math.log2(size))
        yield tuple(range(first, first + bits))
        first += bits


def get_shardings(mesh, rank):
    axes = range(len(mesh))
    for count in range(len(mesh) + 1):
        for order in itertools.permutations(axes, count):
            for cuts in itertools.combinations_with_replacement(range(count + 1), rank - 1):
                bounds = [0, *cuts, count]
                yield tuple(order[a:b] for a, b in zip(bounds, bounds[1:]))


def to_bits(sharding, mesh):
    axes = list(get_axes(mesh))
    return tuple(tuple(bit for axis in dim for bit in axes[axis]) for dim in sharding)


@functools.lru_cache(maxsize=None)
def get_blocks(bits, shape):
    """Per rank and dimension, the interval that the rank holds."""
    blocks = []
    for rank in range(RANKS):
        block = []
        for size, dim in zip(shape, bits):
            begin = 0
            for bit in dim:
                size //= 2
                begin += size * (rank >> (BITS - 1 - bit) & 1)
            block.append((begin, begin + size))
        blocks.append(tuple(block))
    return blocks


@functools.lru_cache(maxsize=None)
def get_missing(source, target, shape):
    """Elements that ranks need of `target` and don't have of `source`."""
    missing = 0
    for have, want in zip(get_blocks(source, shape), get_blocks(target, shape)):
        common = math.prod(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(have, want))
        missing += math.prod(b - a for a, b in want) - common
    return missing


def get_permuted(source, target, shape):
    """What a permute moves: the whole block, where it is another one."""
    pairs = zip(get_blocks(source, shape), get_blocks(target, shape))
    return sum(math.prod(b - a for a, b in want) for have, want in pairs if have != want)


# --- DTensor ----------------------------------------------------------------------------------------------------------

def get_moves(sharding, mesh):
    """One mesh dimension at a time, the last of a tensor dimension: gathered, sliced, or moved by an all-to-all."""
    used = {axis for dim in sharding for axis in dim}
    for d, dim in enumerate(sharding):
        for axis in set(range(len(mesh))) - used:
            yield sharding[:d] + (dim + (axis,),) + sharding[d + 1:], 0
        if not dim:
            continue
        gathered = sharding[:d] + (dim[:-1],) + sharding[d + 1:]
        yield gathered, 1
        for e in range(len(sharding)):
            if e != d:
                yield gathered[:e] + (gathered[e] + dim[-1:],) + gathered[e + 1:], 1


def dtensor_optimum(source, mesh, shape):
    """Dijkstra: fewest elements, then collectives, from `source` to every sharding."""
    best, heap = {}, [((0, 0), source)]
    while heap:
        cost, sharding = heapq.heappop(heap)
        if sharding in best:
            continue
        best[sharding] = cost
        for after, collectives in get_moves(sharding, mesh):
            moved = get_missing(to_bits(sharding, mesh), to_bits(after, mesh), shape)
            heapq.heappush(heap, ((cost[0] + moved, cost[1] + collectives), after))
    return best


def dtensor_greedy(source, target, mesh, shape):
    """From the inner mesh dimension to the outer, what stands in the way of a nested target is replicated, all else
    goes where it belongs; then from the outer to the inner. None where the order isn't that of the mesh."""
    if any(list(dim) != sorted(dim) for dim in (*source, *target)):
        return None

    def place(sharding):
        return [next((d for d, dim in enumerate(sharding) if axis in dim), None) for axis in range(len(mesh))]

    def to_sharding(placements):
        return tuple(tuple(a for a, p in enumerate(placements) if p == d) for d in range(len(shape)))

    current, wanted, moved, collectives = place(source), place(target), 0, 0

    def step(axis, placement):
        nonlocal moved, collectives
        if current[axis] == placement:
            return
        before = to_sharding(current)
        collectives += current[axis] is not None
        current[axis] = placement
        moved += get_missing(to_bits(before, mesh), to_bits(to_sharding(current), mesh), shape)

    for axis in reversed(range(len(mesh))):
        d = wanted[axis]
        aligned = [a for a in range(axis) if current[a] == d] == [a for a in range(axis) if wanted[a] == d]
        step(axis, d if d is None or aligned else None)
    for axis in range(len(mesh)):
        step(axis, wanted[axis])
    return moved, collectives


# --- Shardy -----------------------------------------------------------------------------------------------------------

class Shardy:
    """The greedy order of reshard-to-collectives. All axes are cut into bits at once, where Shardy cuts them when it
    has to; sizes are powers of two, so that everything fits."""

    def __init__(self, source, target, shape):
        self.shape, self.moved, self.collectives = shape, 0, 0
        self.now = [list(dim) for dim in source]
        self.have, self.want = [list(dim) for dim in source], [list(dim) for dim in target]
        for have, want in zip(self.have, self.want):
            while have and want and have[0] == want[0]:
                del have[0], want[0]
        self.dims = range(len(shape))

    def run(self):
        for _ in range(2):
            if not any(self.have) and not any(self.want):
                break
            self.slice()
            if self.should_permute():
                before = self.state()
                self.permute()
                self.count(get_permuted(before, self.state(), self.shape))
            for in_place in (True, False):
                for d in self.dims:
                    while self.all_to_all(d, in_place):
                        pass
            self.gather()
        assert not any(self.have) and not any(self.want)
        return self.moved, self.collectives

    def state(self):
        return tuple(map(tuple, self.now))

    def count(self, moved):
        self.moved += moved
        self.collectives += 1

    def target_of(self, bit):
        return next(((d, want.index(bit)) for d, want in enumerate(self.want) if bit in want), None)

    def has(self, bit):
        return any(bit in have for have in self.have)

    def add(self, d, bit):
        self.have[d].append(bit)
        self.now[d].append(bit)

    def slice(self):
        room = [max(0, len(want) - len(have)) for have, want in zip(self.have, self.want)]
        # Where an all-to-all will take a run of bits anyway, the bits behind it are sliced beforehand.
        for d in self.dims:
            have = self.have[d]
            if not have or self.want[d] or not self.target_of(have[-1]):
                continue
            to, index = self.target_of(have[-1])
            want = self.want[to]
            more = list(itertools.takewhile(lambda bit: not self.has(bit), want[index + 1:]))
            if self.have[to] or not more:
                continue
            common = 0
            while common < min(len(have), index + 1) and have[-1 - common] == want[index - common]:
                common += 1
            if any(bit in want for bit in have[:len(have) - common]) or self.shape[d] % 2 ** (len(self.now[d]) + len(more)):
                continue
            for bit in more:
                self.add(d, bit)
            room[to] = max(0, room[to] - common - len(more))
        left = []
        for d in self.dims:
            for bit in list(self.want[d]):
                if self.has(bit):
                    continue
                if not room[d]:
                    left.append(bit)
                    continue
                room[d] -= 1
                if not self.have[d] and self.want[d][0] == bit:
                    self.now[d].append(self.want[d].pop(0))
                else:
                    self.add(d, bit)
        for d in self.dims:
            while room[d] and left:
                self.add(d, left.pop(0))
                room[d] -= 1

    def should_permute(self):
        removable = addable = False
        for d in self.dims:
            if self.have[d] and self.want[d]:
                return True
            addable |= any(not self.has(bit) for bit in self.want[d])
            last, last_index, seen = None, 0, set()
            for bit in self.have[d]:
                found = self.target_of(bit)
                if found:
                    to, index = found
                    if (to == d or to in seen) and (last != to or index != last_index + 1):
                        return True
                    seen.add(to)
                    last_index = index
                elif last is not None and not self.want[d]:
                    return True
                else:
                    removable = True
                last = found and found[0]
        return removable and addable

    def permute(self):
        room, spare, kept = [], [], []
        wanted = {bit for want in self.want for bit in want}
        for d in self.dims:
            count = len(self.have[d])
            del self.now[d][len(self.now[d]) - count:]
            placed = min(count, len(self.want[d]))
            self.now[d] += self.want[d][:placed]
            del self.want[d][:placed]
            room.append(count - placed)
            spare += self.want[d]
            rest = [bit for bit in self.have[d] if bit not in wanted]
            kept.append(rest[placed:] + rest[:placed])
            self.have[d] = []
        for d in self.dims:
            while room[d] and spare:
                self.have[d].append(spare.pop(0))
                room[d] -= 1
        for pool in (lambda d: kept[d], lambda _: everything):
            for d in self.dims:
                taken = pool(d)[:room[d]]
                del pool(d)[:room[d]]
                self.have[d] = taken + self.have[d]
                room[d] -= len(taken)
            everything = [bit for rest in kept for bit in rest]
        for d in self.dims:
            self.now[d] += self.have[d]

    def all_to_all(self, d, in_place):
        to, run = None, []
        for bit in reversed(self.have[d]):
            found = self.target_of(bit)
            if not found or found[0] == d or to not in (None, found[0]):
                break
            to = found[0]
            run.insert(0, bit)
        if not run or (in_place and self.want[to][:len(run)] != run):
            return False
        before = self.state()
        del self.have[d][-len(run):], self.now[d][-len(run):]
        self.now[to] += run
        for bit in run:
            if not self.have[to] and self.want[to][0] == bit:
                del self.want[to][0]
            else:
                self.have[to].append(bit)
        self.count(get_missing(before, self.state(), self.shape))
        return True

    def gather(self):
        before = self.state()
        for d in self.dims:
            while self.have[d] and not self.target_of(self.have[d][-1]):
                self.have[d].pop()
                self.now[d].pop()
        if self.state() != before:
            self.count(get_missing(before, self.state(), self.shape))


# --- ours -------------------------------------------------------------------------------------------------------------

def print_sharding(sharding):
    return "<@m, [" + ", ".join("{" + ", ".join(NAMES[a] for a in dim) + "}" for dim in sharding) + " ]>"


def plan_all(tp_opt, mesh, shape, shardings, one_shot):
    """Elements and collectives of every pair, as tp-opt plans them; and the seconds it took."""
    type = f"tensor<{'x'.join(map(str, shape))}xf32>"
    lines = [f"tp.mesh @m({', '.join(f'{n} = {s}' for n, s in zip(NAMES, mesh))})"]
    for a, source in enumerate(shardings):
        results = ", ".join(f"{type} {{tp.sharding = #tp.sharding{print_sharding(t)}}}" for t in shardings)
        lines.append(f"func.func @f{a}(%x: {type} {{tp.sharding = #tp.sharding{print_sharding(source)}}}) -> ({results}) {{")
        for b, target in enumerate(shardings):
            lines.append(f'%{b} = tp.redistribute %x to {print_sharding(target)} {{fqn = "{a} {b}"}} : {type}')
        names = ", ".join(f"%{b}" for b in range(len(shardings)))
        lines.append(f"return {names} : {', '.join([type] * len(shardings))}\n}}")
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        options = f"--tp-parallelize=report={report} one-shot={str(one_shot).lower()}"
        start = time.perf_counter()
        subprocess.run([tp_opt, "-", options, "-o", "/dev/null"], input="\n".join(lines), text=True, check=True)
        seconds = time.perf_counter() - start
        plans = json.loads(report.read_text())["redistributions"]
    costs = {(s, t): (0, 0) for s in shardings for t in shardings}
    for plan in plans:
        a, b = map(int, plan["fqn"].split())
        collectives = sum(step["kind"] != "local_slice" for step in plan["steps"])
        costs[shardings[a], shardings[b]] = plan["bytes_received_total"] // 4, collectives
    return costs, seconds


# --- the table --------------------------------------------------------------------------------------------------------

OURS = "tp-mlir, one-shot"
OURS_COLLECTIVES = "tp-mlir, collectives only"
DTENSOR = "DTensor's moves, exact optimum"
GREEDY = "DTensor, greedy"
SHARDY = "Shardy, greedy"


def print_table(title, rows):
    print(f"\n{title}: {len(next(iter(rows.values())))} redistributions\n")
    print("| algorithm | bytes / bound, geometric mean | worst | at the bound | collectives, mean | most |")
    print("|---|---|---|---|---|---|")
    for name, costs in rows.items():
        ratios = [moved / bound for moved, bound, _ in costs]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        optimal = sum(moved == bound for moved, bound, _ in costs) / len(costs)
        steps = [count for _, _, count in costs]
        print(f"| {name} | {mean:.3f} | {max(ratios):.2f} | {optimal:.0%} | {sum(steps) / len(steps):.2f} | {max(steps)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "build" / "bin", type=Path, help="where tp-opt is (default: %(default)s)")
    tp_opt = parser.parse_args().bin / "tp-opt"
    if not shutil.which(tp_opt):
        parser.error(f"there is no {tp_opt}")

    everything = {name: [] for name in (OURS, OURS_COLLECTIVES, DTENSOR, SHARDY)}
    ordered = {name: [] for name in (OURS, OURS_COLLECTIVES, DTENSOR, GREEDY, SHARDY)}
    worse, planned, seconds = 0, 0, 0.0
    for mesh, shape in itertools.product(MESHES, SHAPES):
        shardings = list(get_shardings(mesh, len(shape)))
        ours, one = plan_all(tp_opt, mesh, shape, shardings, one_shot=True)
        collectives, other = plan_all(tp_opt, mesh, shape, shardings, one_shot=False)
        seconds += one + other
        planned += 2 * len(ours)
        for source in shardings:
            optimum = dtensor_optimum(source, mesh, shape)
            for target in shardings:
                pair = to_bits(source, mesh), to_bits(target, mesh)
                bound = get_missing(*pair, shape)
                costs = {OURS: ours[source, target], OURS_COLLECTIVES: collectives[source, target],
                         DTENSOR: optimum[target], GREEDY: dtensor_greedy(source, target, mesh, shape)}
                worse += costs[OURS][0] != bound or costs[OURS_COLLECTIVES][0] > costs[DTENSOR][0]
                if bound == 0:
                    continue
                costs[SHARDY] = Shardy(*pair, shape).run()
                for table in (everything, ordered) if costs[GREEDY] else (everything,):
                    for name, rows in table.items():
                        rows.append((costs[name][0], bound, costs[name][1]))
    print(f"meshes {', '.join('x'.join(map(str, m)) for m in MESHES)}; "
          f"tensors {', '.join('x'.join(map(str, s)) for s in SHAPES)}; only what moves anything")
    print_table("Any order of mesh dimensions", everything)
    print_table("The mesh's order, which is all that DTensor's placements say", ordered)
    print(f"\ntp-opt: {planned} plans, {1000 * seconds / planned:.2f} ms each, with everything else that it does")
    if worse:
        print(f"{worse} of ours move more than the bound, or than the optimum of DTensor's moves")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
