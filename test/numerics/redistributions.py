"""Checks redistributions between random placements: every rank's block, the bytes, and the certificates.

  redistributions.py [--tools DIRECTORY] [--seed N] [--batches N] [--first N] [--programs N] [--keep DIRECTORY]

A batch is a random mesh of up to 16 ranks and as many redistributions as `--programs` says: of arguments, placed on
whole mesh dimensions or parts of them, in any order, evenly or not, by segments; and of Partial values. Every rank's
block must be the one that follows from torch.chunk, tp-run must count the bytes that report.json predicts, and the
certificates must agree with bounds that are computed here. Exit code 1 when any fails.
"""

import dataclasses
import math
import sys

import torch
import torch.nn.functional as F

import execution
import programs
from cases import FLOATS, INTS, MLIR_TYPES, tensor_type
from execution import Failure, get_block
from ranks import Ranks

MAX_RANKS = 16
SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16)
EVEN_SIZES = (4, 8, 12, 16)
MAX_ELEMENTS = 2000
# How contributions to a Partial value, stacked in dimension 0, are reduced.
REDUCTIONS = {
    "sum": lambda x: x.sum(0),
    "avg": lambda x: x.mean(0),
    "max": lambda x: x.amax(0),
    "min": lambda x: x.amin(0),
    "product": lambda x: x.prod(0),
}


@dataclasses.dataclass
class Redistribution(programs.Program):
    source: str = None  # the placement that the only step starts from, where that is known
    target: str = None


def draw_mesh(source):
    sizes, rest = [], MAX_RANKS
    for _ in range(source.choice((1, 1, 2, 2, 2, 3, 3, 4))):
        candidates = [size for size in (1, 2, 2, 2, 3, 4, 4, 5, 6, 8, 16) if size <= rest]
        sizes.append(source.choice(candidates))
        rest //= sizes[-1]
    ranks = list(range(math.prod(sizes)))
    if source.random() < 0.3:
        source.shuffle(ranks)
    else:
        ranks = []
    return programs.Mesh(tuple(zip("xyzw", sizes)), tuple(ranks))


class Drawer:
    """Draws redistributions over one mesh."""

    def __init__(self, mesh, source, generator):
        self.mesh, self.random, self.generator = mesh, source, generator

    def axes(self):
        """All mesh dimensions, some of them in two parts, in any order."""
        axes = []
        for name, size in self.mesh.axes:
            divisors = [d for d in range(2, size) if size % d == 0]
            if divisors and self.random.random() < 0.3:
                d = self.random.choice(divisors)
                axes += [(f"{name}:(1){d}", d), (f"{name}:({d}){size // d}", size // d)]
            else:
                axes.append((name, size))
        self.random.shuffle(axes)
        return axes

    def lists(self, shape, axes, even):
        """Axes by tensor dimension; and those that are left."""
        lists, blocks, left = [[] for _ in shape], [1] * len(shape), []
        for name, size in axes:
            fitting = [d for d, extent in enumerate(shape) if not even or extent % (blocks[d] * size) == 0]
            if fitting and self.random.random() < 0.75:
                dim = self.random.choice(fitting)
                lists[dim].append(name)
                blocks[dim] *= size
            else:
                left.append((name, size))
        return lists, left

    @staticmethod
    def text(lists, segments=None, partial=None):
        dims = []
        for dim, names in enumerate(lists):
            pieces = (segments or {}).get(dim)
            dims.append("{" + ", ".join(names) + (f" | {', '.join(map(str, pieces))}" if pieces else "") + "}")
        kinds = ", ".join(f"{name}: {kind}" for name, kind in (partial or {}).items())
        # An axis list must not be followed by '>' without a blank.
        return f"<@mesh, [{', '.join(dims)} ]" + (f", partial = {{{kinds}}}>" if kinds else ">")

    def placement(self, shape):
        lists, _ = self.lists(shape, self.axes(), self.random.random() < 0.4)
        segments = {}
        for dim, extent in enumerate(shape):
            if lists[dim] and extent >= 3 and self.random.random() < 0.1:
                cuts = sorted(self.random.sample(range(1, extent), self.random.choice((1, 2))))
                segments[dim] = [b - a for a, b in zip([0, *cuts], [*cuts, extent])]
        return self.text(lists, segments)

    def shape(self, sizes=SIZES, ranks=(0, 1, 1, 2, 2, 2, 2, 3, 3, 4)):
        while True:
            shape = tuple(self.random.choice(sizes) for _ in range(self.random.choice(ranks)))
            if math.prod(shape) <= MAX_ELEMENTS:
                return shape

    def values(self, shape, dtype, kind=None):
        if dtype == torch.bool:
            return torch.rand(shape, generator=self.generator) < 0.5
        # Whole numbers that all types hold exactly, and their sums too.
        values = torch.randint(-100, 101, shape, generator=self.generator)
        if kind:
            values = values % 2 * 2 - 1 if kind == "product" else values // 20
        return values.to(dtype)

    # Programs

    def draw(self, name):
        draws = (self.plain, self.chain, self.local_partial, self.reduced, self.linear)
        return self.random.choices(draws, (10, 2, 5, 2, 2))[0](Redistribution(name))

    def finish(self, program, value, expected):
        """`value`, which is `expected`, placed at random, as the program's result."""
        program.target = self.placement(expected.shape)
        result = f"%{program.name}_r"
        program.body.append(
            f'{result} = tp.redistribute {value} to {program.target} {{fqn = "{program.name}"}} : {tensor_type(expected)}'
        )
        program.results = [(result, f"{program.name}_r", expected, program.target)]
        return program

    def plain(self, program):
        """An argument."""
        tensor = self.values(self.shape(), self.random.choice(list(MLIR_TYPES)))
        program.exact = True
        program.source = self.placement(tensor.shape)
        program.arguments = [(f"{program.name}_x", tensor, program.source)]
        return self.finish(program, f"%{program.name}_x", tensor)

    def chain(self, program):
        """An argument by way of other placements, with an op in between."""
        tensor = self.values(self.shape(), self.random.choice((*FLOATS, *INTS)))
        program.exact = True
        program.arguments = [(f"{program.name}_x", tensor, self.placement(tensor.shape))]
        value = f"%{program.name}_x"
        for i in range(self.random.randint(1, 2)):
            placement, type = self.placement(tensor.shape), tensor_type(tensor)
            program.body.append(
                f'{value}{i} = tp.redistribute {value} to {placement} {{fqn = "{program.name}"}} : {type}'
            )
            value = f"{value}{i}"
            if self.random.random() < 0.5:
                program.body.append(f"{value}n = nn.neg {value} : {type}")
                value, tensor = f"{value}n", -tensor
        return self.finish(program, value, tensor)

    def local_partial(self, program):
        """Blocks that are declared to be Partial; sometimes only some of it is reduced at first."""
        shape = self.shape(EVEN_SIZES, (1, 2, 2, 3))
        lists, left = self.lists(shape, self.axes(), even=True)
        axes = [axis for axis in left if self.random.random() < 0.8]
        dtype = self.random.choice((*FLOATS, *INTS, torch.uint8))
        kind = self.random.choice([kind for kind in REDUCTIONS if kind != "avg" or dtype in FLOATS])
        kinds = [self.random.choice(("sum", "avg")) if kind == "avg" else kind for _ in axes]
        contributions = self.values((*(size for _, size in axes), *shape), dtype, kind)

        # The contributions are the major part of one dimension of the argument.
        dim = self.random.randrange(len(shape))
        stacked = contributions.reshape(-1, *shape)
        tensor = torch.cat(list(stacked), dim)
        outer = [list(names) for names in lists]
        outer[dim] = [name for name, _ in axes] + outer[dim]
        source = self.text(outer)
        local = get_block(tensor, source, self.mesh, 0)
        expected = contributions.double() if kind == "avg" else contributions
        for k in kinds:
            expected = REDUCTIONS[k](expected)
        expected = expected.to(dtype)
        program.exact = "avg" not in kinds

        n = f"%{program.name}"
        partial = dict(zip((name for name, _ in axes), kinds))
        program.arguments = [(f"{program.name}_x", tensor, source)]
        program.body = [
            f"{n}_l = tp.to_local {n}_x as {source} : {tensor_type(tensor)} -> {tensor_type(local)}",
            f"{n}_g = tp.from_local {n}_l as {self.text(lists, partial=partial)} : {tensor_type(local)} -> {tensor_type(expected)}",
        ]
        value = f"{n}_g"
        if len(axes) > 1 and self.random.random() < 0.5:
            kept = axes[self.random.randrange(len(axes))]
            overlapping = kept[0].split(":")[0]
            others = [axis for axis in self.axes() if axis[0].split(":")[0] != overlapping]
            lists, _ = self.lists(shape, others, even=True)
            middle = self.text(lists, partial={kept[0]: partial[kept[0]]})
            block = get_block(expected, middle, self.mesh, 0)
            program.body += [
                f"{n}_m = tp.to_local {value} as {middle} : {tensor_type(expected)} -> {tensor_type(block)}",
                f"{n}_h = tp.from_local {n}_m as {middle} : {tensor_type(block)} -> {tensor_type(expected)}",
            ]
            value = f"{n}_h"
        return self.finish(program, value, expected)

    def reduced(self, program):
        """What nn.reduce leaves Partial, of blocks of any size."""
        shape = self.shape(SIZES[1:], (1, 2, 2, 3))
        kind = self.random.choice(("sum", "max", "min", "product"))
        tensor = self.values(shape, torch.float64, kind)
        dim = self.random.randrange(len(shape))
        expected = REDUCTIONS[kind](tensor.movedim(dim, 0))
        n = f"%{program.name}"
        program.exact = True
        program.arguments = [(f"{program.name}_x", tensor, self.placement(shape))]
        program.body = [f"{n}_y = nn.reduce {kind} {n}_x dims [{dim}] : {tensor_type(tensor)} -> {tensor_type(expected)}"]
        return self.finish(program, f"{n}_y", expected)

    def linear(self, program):
        """A product whose contracted dimension is split."""
        rows, columns, inner = (self.random.choice(SIZES[1:]) for _ in range(3))
        x, w = (self.values((size, inner), torch.float64, "sum") for size in (rows, columns))
        (own, contracted), _ = self.lists((rows, inner), self.axes(), even=False)
        expected = F.linear(x, w)
        n = f"%{program.name}"
        program.exact = True
        program.arguments = [
            (f"{program.name}_x", x, self.text([own, contracted])),
            (f"{program.name}_w", w, self.text([[], contracted])),
        ]
        signature = f"({tensor_type(x)}, {tensor_type(w)}) -> {tensor_type(expected)}"
        program.body = [f"{n}_y = nn.linear {n}_x, {n}_w : {signature}"]
        return self.finish(program, f"{n}_y", expected)


# --- certificates -----------------------------------------------------------------------------------------------------


def get_bounds(mesh, program):
    """What must be received in total and by one rank, and the largest of all blocks, in bytes."""
    (_, tensor, _), = program.arguments
    indices = torch.arange(tensor.numel()).reshape(tensor.shape)
    missing, largest = [], 0
    for rank in range(mesh.num_ranks):
        have = get_block(indices, program.source, mesh, rank)
        want = get_block(indices, program.target, mesh, rank)
        missing.append(int((~torch.isin(want, have)).sum()) * tensor.element_size())
        largest = max(largest, have.numel() * tensor.element_size(), want.numel() * tensor.element_size())
    return sum(missing), max(missing), largest


def check_certificate(certificate, one_shot, memory):
    def require(condition, text):
        if not condition:
            raise Failure(f"{text}: {certificate}")

    received, bound = certificate["bytes_received_total"], certificate["lower_bound_total"]
    require(received >= bound, "received less than the bound")
    require(certificate["bytes_received_max"] >= certificate["lower_bound_max"], "a rank received less than its bound")
    require(certificate["peak_bytes"] >= certificate["peak_lower_bound"], "the peak is below its bound")
    require(certificate["optimal"] == (received == bound), "'optimal' is wrong")
    if memory:
        require(certificate["peak_bytes"] == certificate["peak_lower_bound"], "the peak exceeds its bound")
    is_partial = "partial" in certificate["from"]
    if one_shot and not is_partial:
        require(received == bound, "one exchange does better")
    # Segments, and blocks that no collective leads to without a larger one on the way, take an exchange.
    has_segments = "|" in certificate["from"] + certificate["to"]
    if not one_shot and not memory and not has_segments:
        require(all(step["kind"] != "exchange" for step in certificate["steps"]), "an exchange, with one-shot=false")


def get_check(mesh, one_shot, memory):
    def check(report, batch):
        ranks = Ranks(report)
        for certificate in report["redistributions"]:
            check_certificate(certificate, one_shot, memory)
        for program in batch:
            certificates = [c for c in report["redistributions"] if c["fqn"] == program.name]
            planned = sum(c["bytes_received_total"] for c in certificates)
            moved = sum(ranks.sum(c["bytes_by_class"]) for c in report["collectives"] if c["fqn"] == program.name)
            if moved > planned or program.source and moved != planned:
                raise Failure(f"{program.name}: its collectives move {moved} bytes, its certificates say {planned}")
            if not program.source:
                continue
            found = [(c["lower_bound_total"], c["lower_bound_max"], c["peak_lower_bound"]) for c in certificates]
            bounds = get_bounds(mesh, program)
            if found != [bounds] and (found or bounds[0]):
                raise Failure(f"{program.name}: its bounds are {bounds}, the report has {found}")

    return check


def draw_batch(options, source, generator):
    mesh = draw_mesh(source)
    drawer = Drawer(mesh, source, generator)
    batch = [drawer.draw(f"r{i}") for i in range(options.programs)]
    one_shot, memory = source.random() < 0.5, source.random() < 0.4
    words = f"one-shot={str(one_shot).lower()} memory={str(memory).lower()}"
    return execution.Batch(
        mesh,
        batch,
        lambda report: [f"--tp-parallelize=report={report} machine=cpu {words}"],
        get_check(mesh, one_shot, memory),
    )


def main():
    parser = execution.get_parser(__doc__, batches=20)
    parser.add_argument("--programs", type=int, default=30, help="redistributions a batch")
    return execution.check_batches(parser.parse_args(), draw_batch)


if __name__ == "__main__":
    sys.exit(main())
