#!/usr/bin/env python3
"""The smallest and the largest integers, zeros and equal ones: pointwise ops and reductions of integers beside PyTorch, in each
type, on 1, 2 and 4 ranks with the reduced dimension split.

  integer_edges.py [--tools DIRECTORY] [--filter REGEX]

Results must be PyTorch's exactly. Exit code 1 when any differs.
"""

import argparse
import pathlib
import re
import sys
import tempfile
import warnings

import torch

import edges
from cases import MLIR_TYPES

DTYPES = (torch.int8, torch.int16, torch.int32, torch.int64)


def get_edges(dtype):
    info = torch.iinfo(dtype)
    return [info.min, info.min + 1, info.min // 2, -100, -7, -3, -2, -1, 0, 1, 2, 3, 7, 100, info.max // 2, info.max - 1, info.max]


def get_pairs(dtype):
    left, right = torch.meshgrid(*2 * [torch.tensor(get_edges(dtype), dtype=dtype)], indexing="ij")
    # A size that 4 ranks divide.
    return left.flatten()[:288], right.flatten()[:288]


def get_rows(dtype):
    info = torch.iinfo(dtype)
    rows = [[0] * 8, [1] * 8, [info.min] * 8, [info.max] * 8, [info.min] + [info.max] * 7, [info.max] + [info.min] * 7,
            [info.min, 0] * 4, [0, info.min] * 4, [info.max, 0] * 4, [info.min + 1, info.min] * 4, [-1, info.min] * 4, [info.max, info.max - 1] * 4,
            [5, 3, 3, 5, 3, 5, 4, 4], [-1] * 7 + [1], [1] * 7 + [info.min], list(range(8)), list(range(0, -8, -1))]
    return torch.tensor(rows, dtype=dtype)


def without_overflow(left, right):
    """A divisor for which the quotient has a type: not 0, nor -1."""
    return torch.where((right == 0) | (right == -1), torch.full_like(right, 3), right)


VALUES = {
    "neg": torch.neg, "abs": torch.abs, "square": torch.square, "relu": torch.relu,
    "clamp": lambda x: torch.clamp(x, -2, 2), "clamp min": lambda x: torch.clamp_min(x, 0), "clamp max": lambda x: torch.clamp_max(x, 1),
    "logical_not": torch.logical_not, "to bool": lambda x: x.bool(), "to i8": lambda x: x.to(torch.int8),
    "to i16": lambda x: x.to(torch.int16), "to i32": lambda x: x.to(torch.int32), "to i64": lambda x: x.long(), "to f32": lambda x: x.float(),
    "to f64": lambda x: x.double(), "to f16": lambda x: x.half(), "to bf16": lambda x: x.bfloat16(), "plus 1": lambda x: x + 1,
    "times 3": lambda x: x * 3, "minus": lambda x: 1 - x, "half": lambda x: x / 2, "plus half": lambda x: x + 0.5,
    "floor_divide 3": lambda x: x // 3, "floor_divide -3": lambda x: x // -3, "remainder 3": lambda x: x % 3, "remainder -3": lambda x: x % -3,
    "trunc 3": lambda x: torch.div(x, 3, rounding_mode="trunc"), "eq": lambda x: x == 3, "ne": lambda x: x != -1, "lt": lambda x: x < 2,
    "le": lambda x: x <= 2, "gt": lambda x: x > -2, "ge": lambda x: x >= -2, "lt half": lambda x: x < 0.5,
    "pow 2": lambda x: x**2, "pow 3": lambda x: x**3, "cumsum": lambda x: torch.cumsum(x[:8], 0),
    # A range that doubles have, too, but not with these integers.
    "plus range": lambda x: x[:4] + torch.arange(2**53 + 1, 2**53 + 17, 4),
    "plus two": lambda x: x[:2] + torch.arange(0, 2**54, 2**53 + 1),
}
PAIRS = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum, "eq": torch.eq, "ne": torch.ne,
    "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    "floor_divide": lambda x, y: torch.floor_divide(x, without_overflow(x, y)), "remainder": lambda x, y: torch.remainder(x, without_overflow(x, y)),
    "trunc": lambda x, y: torch.div(x, without_overflow(x, y), rounding_mode="trunc"), "where": lambda x, y: torch.where(x < y, x, y),
    "logical_and": torch.logical_and, "logical_or": torch.logical_or,
}
ROWS = {
    "sum": lambda x: x.sum(1), "sum own": lambda x: x.sum(1, dtype=x.dtype), "prod": lambda x: x.prod(1), "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(1),
    "max": lambda x: x.max(1)[0], "min": lambda x: x.min(1)[0], "argmax": lambda x: x.argmax(1), "argmin": lambda x: x.argmin(1),
    "max at": lambda x: x.max(1)[1], "min at": lambda x: x.min(1)[1], "any": lambda x: x.any(1), "all": lambda x: x.all(1),
    "cumsum": lambda x: torch.cumsum(x, 1), "argmin of all": lambda x: x.argmin(), "mean": lambda x: x.double().mean(1),
}
GRIDS = {"values": VALUES, "pairs": PAIRS, "rows": ROWS}


class Model(torch.nn.Module):
    """The results of functions, (name, grid) pairs."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, values, left, right, rows):
        operands = {"values": (values,), "pairs": (left, right), "rows": (rows,)}
        return tuple(GRIDS[grid][name](*operands[grid]) for name, grid in self.functions)


def check(tools, directory, dtype, functions):
    """The number of results that differ."""
    directory.mkdir()
    left, right = get_pairs(dtype)
    inputs = {"values": torch.tensor(get_edges(dtype), dtype=dtype), "left": left, "right": right, "rows": get_rows(dtype)}
    model = Model(functions)
    expected = model(*inputs.values())
    specs = [word for item in inputs.items() for word in edges.spec(*item)]
    text = edges.import_model(tools, directory, model, tuple(inputs.values()), specs)
    names = [f"output{i}" for i in range(len(functions))]
    results = edges.execute(tools, directory, text, inputs, [], {name: value.dtype for name, value in zip(names, expected)})
    failures = 0
    for ranks, outputs in results.items():
        for (name, grid), output, wanted in zip(functions, names, expected):
            actual = outputs[output]
            if actual.shape == wanted.shape and actual.dtype == wanted.dtype and torch.equal(actual, wanted):
                continue
            failures += 1
            wrong = (actual != wanted).nonzero().tolist() if actual.shape == wanted.shape else []
            print(f"FAIL {name} {MLIR_TYPES[dtype]}, {ranks} ranks: {actual.dtype} {list(actual.shape)}, must be {wanted.dtype} {list(wanted.shape)}")
            for place in wrong[:3]:
                given = {"values": (inputs["values"],), "pairs": (left, right), "rows": (inputs["rows"],)}[grid]
                of = ", ".join(str(operand[place[0]].tolist()) for operand in given) if place else ""
                print(f"  at {place}: is {actual[tuple(place)].item()}, must be {wanted[tuple(place)].item()}, of {of}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only functions whose name matches this regular expression")
    parser.add_argument("--types", default="i8,i16,i32,i64")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    functions = [(name, grid) for grid, of_grid in GRIDS.items() for name in of_grid if re.search(options.filter, name)]
    failures = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for dtype in DTYPES:
            if MLIR_TYPES[dtype] in options.types.split(","):
                failures += check(options.tools, pathlib.Path(scratch) / MLIR_TYPES[dtype], dtype, functions)
                count += len(functions) * len(edges.RANKS)
    print(f"{count - failures} of {count} functions equal PyTorch's at the edges of integers")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
