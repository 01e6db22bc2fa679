"""Checks that a sum of Partial and whole values takes one reduction, however it is written.

  sums.py [--tools DIRECTORY] [--seed N] [--sample N] [--keep DIRECTORY]

All orders and all parentheses of a residual and of the results of two or three row-parallel products, as GPT-J, NeoX, Phi
and Cohere add them: with and without biases and, drawn at random, signs, factors, reshapes and transposes in between; with
results that are whole and with such as stay split along the sequence. Each program must have one all_reduce, or one
reduce_scatter, and every rank must have what PyTorch computes. Exit code 1 when any fails.
"""

import itertools
import random
import sys
import tempfile
from pathlib import Path

import torch

import execution
import programs
from cases import tensor_type
from execution import Failure

ROWS, WIDTH, INNER = 4, 6, 8
MESHES = ((("tp", 2),), (("tp", 4),), (("dp", 2), ("tp", 2)))


def get_trees(leaves):
    """All binary trees over `leaves`, in all orders."""
    if len(leaves) == 1:
        yield leaves[0]
        return
    for size in range(1, len(leaves)):
        for left in itertools.combinations(leaves, size):
            right = [leaf for leaf in leaves if leaf not in left]
            for a in get_trees(left):
                for b in get_trees(right):
                    yield (a, b)


class Writer:
    """Writes one tree as a program."""

    def __init__(self, name, is_split, source, generator):
        self.program = programs.Program(name)
        self.is_split, self.source, self.generator = is_split, source, generator
        self.count = 0

    def random(self, *shape):
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def argument(self, tensor, placement=None):
        name = self.fresh()
        self.program.arguments.append((name, tensor, placement))
        return f"%{name}", tensor

    def fresh(self):
        self.count += 1
        return f"{self.program.name}_{self.count}"

    def emit(self, text, tensor, *operands):
        name = f"%{self.fresh()}"
        types = ", ".join(tensor_type(operand[1]) for operand in operands)
        text = text.format(*(operand[0] for operand in operands))
        self.program.body.append(f"{name} = {text} : ({types}) -> {tensor_type(tensor)}")
        return name, tensor

    @property
    def placement(self):
        return "<@mesh, [{tp}, {} ]>" if self.is_split else "<@mesh, [{}, {} ]>"

    def leaf(self, kind):
        if kind == "x":
            return self.argument(self.random(ROWS, WIDTH), self.placement)
        h = self.argument(self.random(ROWS, INNER), "<@mesh, [{}, {tp} ]>")
        w = self.argument(self.random(WIDTH, INNER), "<@mesh, [{}, {tp} ]>")
        partial, tensor = self.emit("nn.linear {0}, {1}", h[1] @ w[1].T, h, w)
        name = f"%{self.fresh()}"
        self.program.body.append(f"{name} = tp.redistribute {partial} to {self.placement} : {tensor_type(tensor)}")
        value = name, tensor
        if "bias" in kind:
            bias = self.argument(self.random(WIDTH))
            value = self.emit("nn.add {0}, {1}", tensor + bias[1], value, bias)
        return value

    def vary(self, value):
        """`value`, maybe scaled, or moved there and back."""
        name, tensor = value
        choice = self.source.random()
        t = tensor_type(tensor)
        other = f"%{self.fresh()}"
        if choice < 0.15:
            factor = f"%{self.fresh()}"
            self.program.body += [f"{factor} = nn.constant dense<0.5> : tensor<f64>",
                                  f"{other} = nn.mul {name}, {factor} : ({t}, tensor<f64>) -> {t}"]
            return other, tensor * 0.5
        if choice < 0.25:
            self.program.body.append(f"{other} = nn.neg {name} : {t}")
            return other, -tensor
        if choice < 0.4:
            there = f"%{self.fresh()}"
            shape = f"tensor<{ROWS}x2x{WIDTH // 2}xf64>"
            self.program.body += [f"{there} = nn.reshape {name} : {t} -> {shape}", f"{other} = nn.reshape {there} : {shape} -> {t}"]
            return other, tensor
        if choice < 0.5:
            there = f"%{self.fresh()}"
            shape = f"tensor<{WIDTH}x{ROWS}xf64>"
            self.program.body += [f"{there} = nn.transpose {name} [1, 0] : {t} -> {shape}",
                                  f"{other} = nn.transpose {there} [1, 0] : {shape} -> {t}"]
            return other, tensor
        return value

    def write(self, tree, varies):
        if isinstance(tree, str):
            return self.leaf(tree)
        left, right = (self.write(part, varies) for part in tree)
        if varies:
            left, right = self.vary(left), self.vary(right)
        if varies and self.source.random() < 0.3:
            return self.emit("nn.sub {0}, {1}", left[1] - right[1], left, right)
        return self.emit("nn.add {0}, {1}", left[1] + right[1], left, right)


def write(name, tree, is_split, varies, source, generator):
    writer = Writer(name, is_split, source, generator)
    value, tensor = writer.write(tree, varies)
    writer.program.results = [(value, f"{name}_r", tensor, writer.placement)]
    return writer.program


def check_count(kind):
    def check_report(report, batch):
        kinds = [collective["kind"] for collective in report["collectives"]]
        if kinds != [kind] * len(batch):
            raise Failure(f"{len(batch)} sums have {len(kinds)} collectives, {set(kinds)}; each must have one {kind}")
    return check_report


def get_forms():
    """Trees, and whether they vary: of two products with biases as there may be, of three."""
    biases = itertools.product(("a", "a bias"), ("b", "b bias"))
    forms = [(tree, varies) for a, b in biases for tree in get_trees(("x", a, b)) for varies in (False, True)]
    forms += [(tree, True) for tree in get_trees(("x", "a bias", "b", "c bias"))]
    return forms


def main():
    parser = execution.get_parser(__doc__, batches=len(MESHES))
    parser.add_argument("--sample", type=int, default=24, help="how many of the forms on each mesh but the first, which has all")
    options = parser.parse_args()
    source = random.Random(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    failures = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, (axes, is_split) in enumerate(itertools.product(MESHES[: options.batches], (False, True))):
            forms = get_forms() if axes == MESHES[0] else source.sample(get_forms(), options.sample)
            batch = execution.Batch(
                programs.Mesh(axes),
                [write(f"s{i}", tree, is_split, varies, source, generator) for i, (tree, varies) in enumerate(forms)],
                lambda report: [f"--tp-parallelize=report={report} machine=cpu"],
                check_count("reduce_scatter" if is_split else "all_reduce"),
            )
            count += len(batch.programs)
            directory = (options.keep or Path(scratch)) / str(number)
            try:
                execution.check(batch, options.tools, directory)
            except Failure as failure:
                failures += 1
                execution.explain(batch, failure, options.tools, directory)
    print(f"{count} sums have one reduction each" if not failures else f"{failures} batches failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
