#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare what a product of placed operands moves in tp-mlir and in Shardy, on the cases of Shardy's own tests.

The cases are those of dot_dot_general.mlir (insert-explicit-reshards), each once: a product, the placements of its
operands and of its result. For Shardy it is what the test expects: its split of the product, then its order of
collectives (redistribution_peers.py) for the operands and the result. For tp-mlir it is what tp-opt --tp-parallelize
decides, by bytes alone (latency-bytes=0), with and without one-shot exchanges. Elements that all ranks receive are counted.

The bound is the least over all ways to split the product by the mesh dimensions, or their parts, that the case
mentions: what ranks need and don't have, and what sums need to meet and to spread, wherever they meet. Not every bound
can be reached: sums may meet in other places for each element, which no collective does.

Exit code 1 when one of ours moves more than Shardy's, or more with one-shot than without."""

import argparse
import functools
import itertools
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import redistribution_peers as peers
import short

ROOT = Path(__file__).resolve().parent.parent

# A mesh and a product; then sizes, placements, and the placements by which Shardy computes. "=": one value is both
# operands. Indented: the rest of the line before.
CASES = """
# x4 y2; ik,kj->ij
i8 k32 j16; [x][] * [][y] -> [x][y]; [x][] * [][y] -> [x][y]
i8 k32 j16; [x][y] * [y][] -> [x][]; [x][y] * [y][] -> [x][]
i8 k32 j16; [x][y] * [y][] -> [x][y]; [x][y] * [y][] -> [x][]
i8 k32 j16; [x][y] * [y][] -> [x,y][]; [x][y] * [y][] -> [x][]
i8 k32 j16; [x][y] * [y][] -> [y,x][]; [x][y] * [y][] -> [x][]
i8 k32 j16; [x][y] * [][y] -> [x][y]; [x][] * [][y] -> [x][y]
i8 k32 j16; [x:(1)2][y] * [y][] -> [][x:(2)2]; [x:(1)2][y] * [y][x:(2)2] -> [x:(1)2][x:(2)2]
i8 k32 j16; [][y] * [y][x] -> [][x]; [][y] * [y][x] -> [][x]
i8 k32 j16; [][y] * [y][] -> [][]; [][y] * [y][] -> [][]
i8 k32 j16; [][] * [][] -> [][]; [][] * [][] -> [][]
i8 k32 j16; [x][y] * [y][x] -> [][]; [][y] * [y][x] -> [][x]
=i16 k16 j16; [x][y] * [x][y] -> [x][y]; [x][] * [][y] -> [x][y]
i4 k4096 j4096; [x][] * [x][] -> [x][]; [][x] * [x][] -> [][]
i8 k32 j16; [x][y] * [y][x] -> [x][]; [][y] * [y][x] -> [][x]
i8 k32 j16; [x][y] * [y][x] -> [][x]; [][y] * [y][x] -> [][x]
i8 k32 j16; [x][y] * [y][] -> [][]; [x][y] * [y][] -> [x][]
i8 k32 j16; [][y] * [y][] -> [x][]; [x][y] * [y][] -> [x][]
i8 k32 j16; [][y] * [y][] -> [y][]; [][y] * [y][] -> [][]
i8 k32 j16; [][y] * [y][] -> [][y]; [][y] * [y][] -> [][]
i8 k32 j16; [x][y] * [y][] -> [y][]; [x][y] * [y][] -> [x][]
i8 k4 j16; [x][y] * [y][] -> [][x]; [][y] * [y][x] -> [][x]
i8 k32 j16; [x][y] * [y][] -> [][x]; [x][y] * [y][] -> [x][]
i8 k16 j16; [x][y] * [y][] -> [][x]; [][y] * [y][x] -> [][x]
i8 k32 j16; [][y] * [y][x] -> [x][]; [][y] * [y][x] -> [][x]
i8 k32 j16; [x][] * [][y] -> [y][x]; [x][] * [][y] -> [x][y]
i16 k32 j8; [x][] * [][y] -> [y][x]; [x][] * [][y] -> [x][y]
i128 k4 j256; [x][] * [][y] -> [y][x]; [y][] * [][x] -> [y][x]
i8 k1024 j16; [x][] * [][y] -> [y][x]; [x][] * [][y] -> [x][y]
i8 k32 j16; [x:(2)2][y] * [y][] -> [][x]; [x:(2)2][y] * [y][x:(1)2] -> [x:(2)2][x:(1)2]
i8 k32 j16; [x][y] * [x][y] -> [y][x]; [][x] * [x][y] -> [][y]
i8 k4 j16; [x][y] * [x][y] -> [y][x]; [y][] * [][x] -> [y][x]
i16 k8 j8; [][x] * [][x] -> [x][]; [x][] * [][] -> [x][]
i8 k16 j8; [][x] * [][x] -> [x][]; [][] * [][x] -> [][x]
i8 k8 j16; [][x] * [][x] -> [x][]; [][] * [][x] -> [][x]
i8 k8 j8; [][x] * [][x] -> [x][]; [][] * [][x] -> [][x]
i8 k8 j8; [][y] * [][y] -> [][]; [][] * [][y] -> [][y]
i8 k2 j8; [][y] * [][y] -> [][]; [][] * [][y] -> [][y]
i8 k16 j8; [][y] * [][y] -> [][]; [][] * [][y] -> [][y]
i8 k2 j8; [][y] * [][] -> [][y]; [][] * [][y] -> [][y]
i8 k16 j8; [][y] * [][] -> [][y]; [][y] * [y][] -> [][]
# x4 y2 z4; ik,kj->ij
i8 k32 j16; [][z] * [][] -> [][x,y]; [][z] * [z][x,y] -> [][x,y]
i8 k32 j16; [][z,x:(2)2] * [][x,y] -> [][x,y]; [][z] * [z][x,y] -> [][x,y]
i8 k32 j16; [][z,x:(2)2] * [][x,y,z:(2)2] -> [][x,y,z:(2)2]; [][z:(1)2] * [z:(1)2][x,y,z:(2)2] -> [][x,y,z:(2)2]
i8 k32 j16; [x:(1)2][x:(2)2] * [x][] -> [x][]; [][x] * [x][] -> [][]
i8 k4 j16; [x:(1)2][x:(2)2] * [x][] -> [x][]; [x][] * [][] -> [x][]
i4 k2 j4; [][x] * [x][] -> [x][]; [x][] * [][] -> [x][]
# x4 y2 z4; bik,bkj->bij
b4 i8 k32 j16; [y][][x,z] * [y][x,z][] -> [y][][]; [y][][x,z] * [y][x,z][] -> [y][][]
b4 i8 k32 j16; [x][][] * [y][][] -> [z][][]; [y][][] * [y][][] -> [y][][]
b4 i8 k32 j16; [y,x:(1)2][][] * [y][][] -> [][][]; [y,x:(1)2][][] * [y,x:(1)2][][] -> [y,x:(1)2][][]
b4 i8 k32 j16; [y,x:(1)2][][] * [y,x][][] -> [z][][]; [y,x][][] * [y,x][][] -> [y,x][][]
b4 i8 k8 j16; [y,x:(1)2][x:(2)2][] * [y,x][][] -> [][x:(2)2][];
  [y,x:(1)2][x:(2)2][] * [y,x:(1)2][][] -> [y,x:(1)2][x:(2)2][]
# x4 y2 z4; ikl,klj->ij
i4 k8 l32 j16; [][y][x,z] * [y][x,z][] -> [][]; [][y][x,z] * [y][x,z][] -> [][]
# x4 y4 z4 t8; ikl,klj->ij
i16 k32 l64 j128; [x][z][t] * [z][t][x,y] -> [x][z,t]; [][z][t] * [z][t][x,y] -> [][x,y]
# x4 y2; bik,bkj->bij
b4 i8 k32 j16; [x][y][] * [x][][y] -> [][x][y]; [x][][] * [x][][y] -> [x][][y]
# x4 y4 z4 t8; bik,bkj->bij
b64 i8 k32 j16; [y,x:(1)2,t:(1)2][t:(2)2][] * [y,x:(1)2,t:(2)2][][t:(1)2] -> [][t:(2)2][t:(1)2];
  [y,x:(1)2,t:(2)2][][] * [y,x:(1)2,t:(2)2][][t:(1)2] -> [y,x:(1)2,t:(2)2][][t:(1)2]
b64 i8 k32 j16; [y:(1)2][][] * [y:(1)2][][] -> [][x,y,z][]; [y:(1)2][x][] * [y:(1)2][][] -> [y:(1)2][x][]
b64 i8 k32 j16; [y:(1)2][][] * [y:(1)2][][] -> [][y][]; [y:(1)2][][] * [y:(1)2][][] -> [y:(1)2][][]
b64 i8 k32 j16; [y:(2)2][][] * [y:(2)2][][] -> [][y][]; [y:(2)2][y:(1)2][] * [y:(2)2][][] -> [y:(2)2][y:(1)2][]
b64 i8 k32 j16; [y:(2)2][][] * [y:(2)2][][] -> [][x,y,z][];
  [y:(2)2][x,y:(1)2][] * [y:(2)2][][] -> [y:(2)2][x,y:(1)2][]
# x4 y2 z4; ihk,kj->ihj
i8 h32 k64 j256; [x][z][y] * [y][] -> [x,y][z][]; [x,y][z][] * [][] -> [x,y][z][]
# x16 y4 z2; ihk,jk->ihj
i64 h1024 k8192 j256; [][y,z][x] * [][x] -> [y][x,z][]; [][y,z][x] * [][x] -> [][y,z][]
"""


def parse_axis(text, mesh):
    part = re.fullmatch(r"(\w+):\((\d+)\)(\d+)", text)
    return (part[1], int(part[2]), int(part[3])) if part else (text, 1, dict(mesh)[text])


def parse_placements(text, mesh):
    def parse(one):
        dims = re.findall(r"\[(.*?)\]", one)
        return tuple(tuple(parse_axis(axis, mesh) for axis in dim.split(",") if axis) for dim in dims)

    return [parse(one) for one in re.split(r"\*|->", text)]


def read_cases():
    for line in CASES.strip().replace("\n  ", " ").splitlines():
        if line.startswith("#"):
            mesh, rule = line[2:].split("; ")
            mesh = tuple((axis[0], int(axis[1:])) for axis in mesh.split())
            continue
        sizes, have, theirs = line.lstrip("=").split("; ")
        yield Case(line, mesh, rule, {size[0]: int(size[1:]) for size in sizes.split()}, parse_placements(have, mesh),
                   parse_placements(theirs, mesh), line.startswith("="))


class Case:
    def __init__(self, text, mesh, rule, sizes, have, theirs, is_same):
        self.text, self.mesh, self.sizes, self.is_same = text, mesh, sizes, is_same
        self.have, self.theirs = have, theirs
        self.letters = re.split(r",|->", rule)

    def get_shape(self, tensor):
        return tuple(self.sizes[letter] for letter in self.letters[tensor])

    def is_summed(self, letter):
        return letter not in self.letters[2]

    def get_module(self):
        def print_type(tensor):
            return f"tensor<{'x'.join(map(str, self.get_shape(tensor)))}xf32>"

        def print_axis(axis):
            name, pre, size = axis
            return name if size == dict(self.mesh)[name] else f"{name}:({pre}){size}"

        def place(tensor):
            dims = ", ".join("{" + ", ".join(map(print_axis, dim)) + "}" for dim in self.have[tensor])
            return f"{print_type(tensor)} {{tp.sharding = #tp.sharding<@m, [{dims}]>}}"

        maps = ", ".join(f"affine_map<({', '.join(self.sizes)}) -> ({', '.join(letters)})>" for letters in self.letters)
        kinds = ", ".join('"reduction"' if self.is_summed(letter) else '"parallel"' for letter in self.sizes)
        left, right, result = map(print_type, range(3))
        return f"""
tp.mesh @m({', '.join(f'{name} = {size}' for name, size in self.mesh)})
func.func @f(%l: {place(0)}{'' if self.is_same else f', %r: {place(1)}'}) -> ({place(2)}) {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %dot = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%l, {'%l' if self.is_same else '%r'} : {left}, {right}) outs(%init : {result}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }} -> {result}
  return %dot : {result}
}}
"""


def count_ours(tp_opt, case, one_shot):
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        options = f"--tp-parallelize=report={report} latency-bytes=0 one-shot={str(one_shot).lower()}"
        subprocess.run([tp_opt, "-", options, "-o", "/dev/null"], input=case.get_module(), text=True, check=True)
        rows = json.loads(report.read_text())["redistributions"]
    return sum(row["bytes_received_total"] for row in rows) // 4


def count_shardy(case):
    moves = {(case.get_shape(i), case.have[i], case.theirs[i], i * (not case.is_same)) for i in (0, 1)}
    moved = sum(peers.shardy_greedy(case.mesh, shape, have, need)[0] for shape, have, need, _ in moves)
    dims = zip(case.letters[0], case.theirs[0])
    summed = tuple(axis for letter, dim in dims if case.is_summed(letter) for axis in dim)
    return moved + peers.shardy_greedy(case.mesh, case.get_shape(2), case.theirs[2], case.have[2], summed)[0]


def get_parts(case):
    """The coarsest parts of which the axes of the case consist."""
    bounds = {}
    for name, pre, size in (axis for sharding in case.have for dim in sharding for axis in dim):
        bounds.setdefault(name, {1, dict(case.mesh)[name]}).update((pre, pre * size))
    return [(name, a, b // a) for name, _ in case.mesh if name in bounds
            for a, b in zip(sorted(bounds[name]), sorted(bounds[name])[1:])]


def get_bound(case):
    parts, letters = get_parts(case), list(case.sizes)
    wanted = sum(peers.get_sizes(case.mesh, case.get_shape(2), case.have[2]))
    elements = math.prod(case.get_shape(2))

    @functools.lru_cache(None)
    def get_missing(tensor, placed):
        pair = (placed, case.have[2]) if tensor == 2 else (case.have[tensor], placed)
        return peers.get_missing(case.mesh, case.get_shape(tensor), *pair)

    def splits(index, lists):
        if index == len(parts):
            yield {letter: peers.join(axes) for letter, axes in zip(letters, lists)}
            return
        yield from splits(index + 1, lists)
        for i, axes in enumerate(lists):
            if case.sizes[letters[i]] % (peers.get_size(axes) * parts[index][2]) == 0:
                for place in range(len(axes) + 1):
                    more = axes[:place] + (parts[index],) + axes[place:]
                    yield from splits(index + 1, lists[:i] + (more,) + lists[i + 1:])

    @functools.lru_cache(None)
    def get_kept(placed):
        return peers.get_kept(case.mesh, case.get_shape(2), placed, case.have[2])

    least = math.inf
    for split in splits(0, ((),) * len(letters)):
        left, right, result = (tuple(split[letter] for letter in tensor) for tensor in case.letters)
        moved = get_missing(0, left) + (get_missing(1, right) if not case.is_same or left != right else 0)
        summed = peers.get_size(axis for letter in letters if case.is_summed(letter) for axis in split[letter])
        # Of n parts of a sum n - 1 move until a rank has the whole, or n where that rank has no part; then one more to each
        # further rank that needs it.
        moved += wanted + (summed - 2) * elements if summed > 1 else get_missing(2, result)
        if summed > 1 and moved < least:
            moved += elements - get_kept(result)
        least = min(least, moved)
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tp-opt", type=Path, default=ROOT / "build/bin/tp-opt")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    parser.add_argument("--no-bound", action="store_true", help="leave the bound out, which takes a while on 512 ranks")
    short.add_option(parser)
    arguments = parser.parse_args()
    count = worse = at_bound = below = 0
    for case in itertools.islice(read_cases(), 12 if arguments.short else None):
        ours, without = (count_ours(arguments.tp_opt, case, one_shot) for one_shot in (True, False))
        theirs, bound = count_shardy(case), None if arguments.no_bound else get_bound(case)
        count += 1
        at_bound += bound is not None and ours <= bound
        below += without < theirs
        is_worse = max(ours, without) > theirs or ours > without
        worse += is_worse
        if is_worse or arguments.verbose:
            print(f"{ours}, without one-shot {without}, Shardy {theirs}, bound {'not sought' if bound is None else bound}: "
                  f"{case.text} over {' '.join(f'{name}{size}' for name, size in case.mesh)}")
    reach = "" if arguments.no_bound else f"{at_bound} move no more than the bound, "
    print(f"{count} products: {reach}{below} move less than Shardy's without one-shot, "
          f"{worse} more than Shardy's, or more with one-shot than without")
    return worse != 0


if __name__ == "__main__":
    sys.exit(main())
