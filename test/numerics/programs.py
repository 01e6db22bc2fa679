"""Random programs over nn ops with random placements, and what PyTorch computes for them.

A program is a piece of one function: its values are named by a prefix, so that many programs make one module, and one
run of the tools checks them all.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F

from cases import MLIR_TYPES, tensor_type

SIZES = (1, 2, 3, 4, 6, 8, 12)
MAX_ELEMENTS = 6000
# Beyond this a value is squashed, so that errors of rounding stay comparable.
MAX_MAGNITUDE = 50


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Names and sizes of the mesh's dimensions, major first; the ranks by position, where they aren't in order."""

    axes: tuple
    devices: tuple = ()

    @property
    def num_ranks(self):
        return math.prod(size for _, size in self.axes)

    def ir(self):
        devices = f" devices {list(self.devices)}" if self.devices else ""
        return f"tp.mesh @mesh({', '.join(f'{name} = {size}' for name, size in self.axes)}){devices}"


@dataclasses.dataclass
class Program:
    name: str
    arguments: list = dataclasses.field(default_factory=list)  # (name, tensor, placement or None)
    parameters: dict = dataclasses.field(default_factory=dict)  # FQN → tensor
    body: list = dataclasses.field(default_factory=list)  # lines of IR
    results: list = dataclasses.field(default_factory=list)  # (SSA name, output name, expected, placement or None)
    exact: bool = False  # whether results must be equal to the bit


class Placer:
    """Draws placements, most of which divide evenly."""

    def __init__(self, mesh, random):
        self.mesh, self.random = mesh, random

    def draw(self, shape):
        """`<@mesh, [{…}, …]>`: each mesh dimension splits one tensor dimension, or none."""
        split = [[] for _ in shape]
        ranks = [1] * len(shape)
        axes = [part for axis in self.mesh.axes for part in self.parts(*axis)]
        self.random.shuffle(axes)
        for name, size in axes:
            uneven = self.random.random() < 0.3
            candidates = [d for d, extent in enumerate(shape) if uneven or (extent > 0 and extent % (ranks[d] * size) == 0)]
            if candidates and self.random.random() < 0.65:
                dim = self.random.choice(candidates)
                split[dim].append(name)
                ranks[dim] *= size
        # An axis list must not be followed by '>' without a blank.
        return "<@mesh, [" + ", ".join("{" + ", ".join(names) + "}" for names in split) + " ]>"

    def parts(self, name, size):
        """A mesh dimension, sometimes in two parts."""
        if size == 4 and self.random.random() < 0.15:
            return [(f"{name}:(1)2", 2), (f"{name}:(2)2", 2)]
        return [(name, size)]

    def maybe(self, shape, probability=0.7):
        return self.draw(shape) if self.random.random() < probability else None


def attribute(placement):
    return f"tp.sharding = #tp.sharding{placement}"


def get_module(mesh, programs):
    """All `programs` in one function over `mesh`."""
    arguments, body, names, types, results = [], [], [], [], []
    for program in programs:
        for name, tensor, placement in program.arguments:
            attributes = [f'tp.name = "{name}"'] + ([attribute(placement)] if placement else [])
            arguments.append(f"%{name}: {tensor_type(tensor)} {{{', '.join(attributes)}}}")
        body += [f"// {program.name}", *program.body]
        for value, name, expected, placement in program.results:
            attributes = [f'tp.name = "{name}"'] + ([attribute(placement)] if placement else [])
            names.append(value)
            types.append(tensor_type(expected))
            results.append(f"{types[-1]} {{{', '.join(attributes)}}}")
    lines = [mesh.ir(), f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{", *body]
    return "\n".join(lines + [f"return {', '.join(names)} : {', '.join(types)}", "}", ""])


# --- one op -----------------------------------------------------------------------------------------------------------


def from_case(case, prefix, placer):
    """A single-op case, its inputs and its result placed at random."""
    program = Program(case.name)
    for i, value in enumerate(case.inputs):
        program.arguments.append((f"{prefix}_{i}", value, placer.maybe(value.shape)))
    program.body = [case.ir(prefix)]
    program.results = [(f"%{prefix}_r", f"{prefix}_r", case.expected, placer.maybe(case.expected.shape, 0.5))]
    return program


# --- graphs -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Value:
    name: str
    tensor: torch.Tensor

    @property
    def type(self):
        return tensor_type(self.tensor)

    @property
    def shape(self):
        return tuple(self.tensor.shape)


class Graph:
    """A program that grows op by op from f64, i64 and i1 values."""

    def __init__(self, prefix, placer, random, generator):
        self.prefix, self.placer, self.random, self.generator = prefix, placer, random, generator
        self.program = Program(prefix)
        self.values = []
        self.unused = []
        self.counter = 0

    # Values

    def fresh(self):
        self.counter += 1
        return f"{self.prefix}_{self.counter}"

    def source(self, shape, dtype=torch.float64, low=-3, high=9):
        """A new argument, or, sometimes, a parameter."""
        if dtype == torch.float64:
            tensor = torch.rand(shape, generator=self.generator, dtype=dtype) * 2 - 1
        elif dtype == torch.bool:
            tensor = torch.rand(shape, generator=self.generator) < 0.6
        else:
            tensor = torch.randint(low, high, shape, generator=self.generator, dtype=dtype)
        name = self.fresh()
        placement = self.placer.maybe(shape)
        value = Value(f"%{name}", tensor)
        if dtype == torch.float64 and self.random.random() < 0.5:
            self.program.parameters[name] = tensor
            attributes = f" {{{attribute(placement)}}}" if placement else ""
            self.program.body.append(f'%{name} = nn.parameter "{name}"{attributes} : {value.type}')
        else:
            self.program.arguments.append((name, tensor, placement))
        return value

    def emit(self, text, tensor, *operands):
        """`text` with `{0}`, `{1}`, … for the operands and `{sig}`, `{t0}`, `{t}` for types; the new value.

        Sometimes the op itself has a placement, sometimes its result is redistributed.
        """
        value = Value(f"%{self.fresh()}", tensor.contiguous())
        types = {f"t{i}": operand.type for i, operand in enumerate(operands)}
        sig = f"({', '.join(operand.type for operand in operands)}) -> {value.type}"
        text = text.format(*(operand.name for operand in operands), sig=sig, t=value.type, **types)
        if operands and self.random.random() < 0.08:
            text = text.replace(" : ", f" {{{attribute(self.placer.draw(value.shape))}}} : ", 1)
        self.program.body.append(f"{value.name} = {text}")
        for operand in operands:
            self.unused = [other for other in self.unused if other is not operand]
        value = self.tame(value)
        if self.random.random() < 0.2:
            value = self.redistribute(value)
        self.values.append(value)
        self.unused.append(value)
        return value

    def redistribute(self, value):
        placed = Value(f"%{self.fresh()}", value.tensor)
        placement = self.placer.draw(value.shape)
        self.program.body.append(f"{placed.name} = tp.redistribute {value.name} to {placement} : {value.type}")
        return placed

    def tame(self, value):
        if not value.tensor.is_floating_point() or value.tensor.numel() == 0:
            return value
        if value.tensor.abs().max() <= MAX_MAGNITUDE:
            return value
        tamed = Value(f"%{self.fresh()}", torch.tanh(value.tensor))
        self.program.body.append(f"{tamed.name} = nn.tanh {value.name} : {value.type}")
        return tamed

    def pick(self, rank=0, dtype=torch.float64):
        """An earlier value of at least `rank` dimensions, a recent one most of the time, or a new source."""
        fitting = [v for v in self.values if v.tensor.dim() >= rank and v.tensor.dtype == dtype]
        if fitting and self.random.random() < 0.85:
            return fitting[-1] if self.random.random() < 0.6 else self.random.choice(fitting)
        shape = self.shape(max(rank, self.random.choice((1, 2, 2, 3, 3, 4))))
        value = self.source(shape, dtype)
        self.values.append(value)
        return value

    def shape(self, rank):
        while True:
            shape = tuple(self.random.choice(SIZES) for _ in range(rank))
            if math.prod(shape) <= MAX_ELEMENTS // 4:
                return shape

    def broadcastable(self, shape, dtype=torch.float64):
        """A value whose shape broadcasts to `shape`: of equal shape if there is one."""
        equal = [v for v in self.values if v.shape == tuple(shape) and v.tensor.dtype == dtype]
        if equal and self.random.random() < 0.6:
            return self.random.choice(equal)
        kept = shape[self.random.randint(0, len(shape)) :] if self.random.random() < 0.5 else shape
        return self.source(tuple(1 if self.random.random() < 0.2 else extent for extent in kept), dtype)

    def dim(self, value):
        return self.random.randrange(value.tensor.dim())

    # Ops

    def unary(self):
        x = self.pick()
        name, function = self.random.choice(
            [
                ("gelu", F.gelu),
                ("gelu tanh", lambda x: F.gelu(x, approximate="tanh")),
                ("relu", torch.relu),
                ("neg", torch.neg),
                ("neg", torch.neg),
                ("abs", torch.abs),
                ("tanh", torch.tanh),
                ("sigmoid", torch.sigmoid),
                ("silu", F.silu),
            ]
        )
        self.emit(f"nn.{name} {{0}} : {{t}}", function(x.tensor), x)

    def binary(self):
        x = self.pick()
        y = self.broadcastable(x.shape)
        names = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum}
        name = self.random.choice(["add", "add", "mul", "mul", "sub", "maximum", "minimum"])
        if self.random.random() < 0.3:
            x, y = y, x
        self.emit(f"nn.{name} {{0}}, {{1}} : {{sig}}", names[name](x.tensor, y.tensor), x, y)

    def integer_binary(self):
        x = self.pick(dtype=torch.int64)
        y = self.broadcastable(x.shape, torch.int64)
        name, function = self.random.choice([("add", torch.add), ("sub", torch.sub), ("mul", torch.mul)])
        self.emit(f"nn.{name} {{0}}, {{1}} : {{sig}}", function(x.tensor, y.tensor), x, y)

    def divide(self):
        x = self.pick()
        y = self.source(x.shape[-1:])
        y = self.emit("nn.sigmoid {0} : {t}", torch.sigmoid(y.tensor), y)
        self.emit("nn.div {0}, {1} : {sig}", x.tensor / y.tensor, x, y)

    def constant(self):
        x = self.pick()
        if self.random.random() < 0.5:
            tensor = torch.full(x.shape, 0.75, dtype=torch.float64)
            text = "nn.constant dense<0.75> : {t}"
        else:
            tensor = (1 + 0.5 * torch.arange(x.shape[-1], dtype=torch.float64)).expand(x.shape) if x.shape else None
            text = f"nn.iota dim {len(x.shape) - 1} start 1.0 step 0.5 : {{t}}"
        if tensor is not None:
            c = self.emit(text, tensor)
            self.emit("nn.mul {0}, {1} : {sig}", x.tensor * c.tensor, x, c)

    def linear(self):
        x = self.pick(1)
        w = self.source((self.random.choice(SIZES), x.shape[-1]))
        self.emit("nn.linear {0}, {1} : {sig}", F.linear(x.tensor, w.tensor), x, w)

    def mlp(self):
        x = self.pick(2)
        hidden = self.random.choice((4, 8, 12))
        up, down = self.source((hidden, x.shape[-1])), self.source((x.shape[-1], hidden))
        h = self.emit("nn.linear {0}, {1} : {sig}", F.linear(x.tensor, up.tensor), x, up)
        h = self.emit("nn.gelu {0} : {t}", F.gelu(h.tensor), h)
        y = self.emit("nn.linear {0}, {1} : {sig}", F.linear(h.tensor, down.tensor), h, down)
        self.emit("nn.add {0}, {1} : {sig}", x.tensor + y.tensor, x, y)

    def matmul(self):
        x = self.pick(2)
        batch = x.shape[self.random.randint(0, len(x.shape) - 2) : -2] if len(x.shape) > 2 else ()
        batch = tuple(1 if self.random.random() < 0.2 else extent for extent in batch)
        y = self.source((*batch, x.shape[-1], self.random.choice(SIZES)))
        self.emit("nn.matmul {0}, {1} : {sig}", x.tensor @ y.tensor, x, y)

    def attention(self):
        heads, groups = self.random.choice(((4, 4), (4, 2), (6, 3), (12, 4), (8, 8), (4, 1), (2, 1), (6, 6)))
        batch, length, size = self.random.choice((1, 2, 4)), self.random.choice((2, 3, 4)), self.random.choice((2, 4))
        width = heads * size
        fitting = [v for v in self.values if v.shape == (batch, length, width) and v.tensor.dtype == torch.float64]
        x = self.random.choice(fitting) if fitting else self.source((batch, length, width))

        def project(count):
            w = self.source((count * size, width))
            y = self.emit("nn.linear {0}, {1} : {sig}", F.linear(x.tensor, w.tensor), x, w)
            y = self.emit("nn.reshape {0} : {t0} -> {t}", y.tensor.reshape(batch, length, count, size), y)
            return self.emit("nn.transpose {0} [0, 2, 1, 3] : {t0} -> {t}", y.tensor.transpose(1, 2), y)

        q, k, v = project(heads), project(groups), project(groups)
        kind = self.random.choice(("plain", "causal", "mask", "bool mask"))
        operands, causal, mask, text = [q, k, v], kind == "causal", None, ""
        if kind in ("mask", "bool mask"):
            shape = self.random.choice(
                ((length, length), (batch, 1, 1, length), (batch, heads, length, length), (1, heads, 1, length))
            )
            mask = self.source(shape, torch.float64 if kind == "mask" else torch.bool)
            operands.append(mask)
            text = "mask {3} "
        expected = F.scaled_dot_product_attention(
            q.tensor, k.tensor, v.tensor, mask and mask.tensor, is_causal=causal, scale=0.5, enable_gqa=True
        )
        y = self.emit(f"nn.attention {'causal ' if causal else ''}{{0}}, {{1}}, {{2}} {text}scale 0.5 : {{sig}}", expected, *operands)
        y = self.emit("nn.transpose {0} [0, 2, 1, 3] : {t0} -> {t}", y.tensor.transpose(1, 2), y)
        y = self.emit("nn.reshape {0} : {t0} -> {t}", y.tensor.reshape(batch, length, width), y)
        w = self.source((width, width))
        self.emit("nn.linear {0}, {1} : {sig}", F.linear(y.tensor, w.tensor), y, w)

    def embedding(self):
        rows = self.random.choice((4, 6, 8, 12))
        indices = self.source(self.shape(self.random.randint(0, 2)), torch.int64, 0, rows)
        w = self.source((rows, self.random.choice(SIZES)))
        self.emit("nn.embedding {0}, {1} : {sig}", w.tensor[indices.tensor], indices, w)

    def index_select(self):
        x = self.pick(1)
        dim = self.dim(x)
        indices = self.source((self.random.choice(SIZES),), torch.int64, 0, x.shape[dim])
        self.emit(f"nn.index_select {{0}}, {{1}} dim {dim} : {{sig}}", torch.index_select(x.tensor, dim, indices.tensor), x, indices)

    def gather(self):
        x = self.pick(1)
        dim = self.dim(x)
        shape = [extent if self.random.random() < 0.7 else self.random.randint(1, extent) for extent in x.shape]
        shape[dim] = self.random.choice(SIZES)
        indices = self.source(tuple(shape), torch.int64, 0, x.shape[dim])
        self.emit(f"nn.gather {{0}}, {{1}} dim {dim} : {{sig}}", torch.gather(x.tensor, dim, indices.tensor), x, indices)

    def softmax(self):
        x = self.pick(1)
        dim = self.dim(x)
        name, function = self.random.choice((("softmax", torch.softmax), ("log_softmax", torch.log_softmax)))
        self.emit(f"nn.{name} {{0}} dim {dim} : {{t}}", function(x.tensor, dim), x)

    def layer_norm(self):
        x = self.pick(1)
        count = self.random.randint(1, min(2, len(x.shape)))
        shape = x.shape[-count:]
        operands, text = [x], ""
        for i, name in enumerate(("weight", "bias")[: self.random.randint(0, 2)]):
            operands.append(self.source(shape))
            text += f"{name} {{{i + 1}}} "
        # A large eps: values that hardly differ must not be blown up to what rounding left of them.
        expected = F.layer_norm(x.tensor, shape, *(operand.tensor for operand in operands[1:]), eps=0.1)
        self.emit(f"nn.layer_norm {{0}} {text}over {count} eps 0.1 : {{sig}}", expected, *operands)

    def rms_norm(self):
        x = self.pick(1)
        w = self.source(x.shape[-1:])
        self.emit("nn.rms_norm {0} weight {1} over 1 eps 0.1 : {sig}", F.rms_norm(x.tensor, x.shape[-1:], w.tensor, 0.1), x, w)

    def reduce(self):
        x = self.pick(1, self.random.choice((torch.float64, torch.float64, torch.int64)))
        dims = sorted(self.random.sample(range(len(x.shape)), self.random.randint(1, min(2, len(x.shape)))))
        keepdim = self.random.random() < 0.5
        name, function = self.random.choice(
            [
                ("sum", torch.sum),
                ("sum", torch.sum),
                ("mean", lambda x, d, k: torch.mean(x, d, k) if x.is_floating_point() else torch.div(
                    x.sum(d, k), math.prod(x.shape[i] for i in d), rounding_mode="trunc")),
                ("max", torch.amax),
                ("min", torch.amin),
                ("product", lambda x, d, k: self.product(x, d, k)),
            ]
        )
        text = f"nn.reduce {name} {{0}} dims {dims}{' keepdim' if keepdim else ''} : {{t0}} -> {{t}}"
        y = self.emit(text, function(x.tensor, dims, keepdim), x)
        if keepdim and x.tensor.is_floating_point():
            self.emit("nn.sub {0}, {1} : {sig}", x.tensor - y.tensor, x, y)

    @staticmethod
    def product(x, dims, keepdim):
        for dim in reversed(dims):
            x = torch.prod(x, dim, keepdim)
        return x

    def argmax(self):
        x = self.source(self.shape(self.random.randint(1, 3)))
        dim = self.dim(x)
        self.emit(f"nn.argmax {{0}} dim {dim} : {{t0}} -> {{t}}", torch.argmax(x.tensor, dim), x)

    def transpose(self):
        x = self.pick(2)
        permutation = list(range(len(x.shape)))
        self.random.shuffle(permutation)
        self.emit(f"nn.transpose {{0}} {permutation} : {{t0}} -> {{t}}", x.tensor.permute(permutation), x)

    def reshape(self):
        x = self.pick(1)
        shape = list(x.shape)
        for _ in range(self.random.randint(1, 3)):
            action = self.random.choice(("merge", "split", "unit"))
            if action == "merge" and len(shape) > 1:
                i = self.random.randrange(len(shape) - 1)
                shape[i : i + 2] = [shape[i] * shape[i + 1]]
            elif action == "split" and shape:
                i = self.random.randrange(len(shape))
                factors = [f for f in range(2, shape[i]) if shape[i] % f == 0]
                if factors:
                    f = self.random.choice(factors)
                    shape[i : i + 1] = [f, shape[i] // f]
            elif 1 in shape and self.random.random() < 0.5:
                shape.remove(1)
            else:
                shape.insert(self.random.randint(0, len(shape)), 1)
        if len(shape) > 5:
            shape = [math.prod(shape)]
        self.emit("nn.reshape {0} : {t0} -> {t}", x.tensor.reshape(shape), x)

    def slice(self):
        x = self.pick(1)
        dim = self.dim(x)
        step, start = self.random.choice((1, 1, 2)), self.random.randrange(x.shape[dim])
        stop = self.random.randint(start + 1, x.shape[dim])
        index = (slice(None),) * dim + (slice(start, stop, step),)
        self.emit(f"nn.slice {{0}} dim {dim} start {start} step {step} : {{t0}} -> {{t}}", x.tensor[index], x)

    def slice_scatter(self):
        x = self.pick(1)
        dim = self.dim(x)
        step, start = self.random.choice((1, 1, 2)), self.random.randrange(x.shape[dim])
        stop = self.random.randint(start + 1, x.shape[dim])
        shape = list(x.shape)
        shape[dim] = len(range(start, stop, step))
        if shape == list(x.shape):  # tp-compile drops what is overwritten completely, which isn't predicted
            return
        y = self.source(tuple(shape))
        expected = x.tensor.slice_scatter(y.tensor, dim, start, stop, step)
        self.emit(f"nn.slice_scatter {{0}}, {{1}} dim {dim} start {start} step {step} : {{sig}}", expected, x, y)

    def concat(self):
        x = self.pick(1)
        dim = self.dim(x)
        shape = list(x.shape)
        shape[dim] = self.random.choice(SIZES)
        y = self.source(tuple(shape)) if self.random.random() < 0.6 else x
        operands = [x, y] if self.random.random() < 0.7 else [y, x, y]
        names = ", ".join(f"{{{i}}}" for i in range(len(operands)))
        self.emit(f"nn.concat {names} dim {dim} : {{sig}}", torch.cat([v.tensor for v in operands], dim), *operands)

    def broadcast(self):
        x = self.pick()
        if math.prod(x.shape) > MAX_ELEMENTS // 12:
            return
        shape = [self.random.choice((2, 3, 4)) if extent == 1 else extent for extent in x.shape]
        if len(shape) < 4 and self.random.random() < 0.6:
            shape.insert(0, self.random.choice((2, 3, 4)))
        self.emit("nn.broadcast {0} : {t0} -> {t}", x.tensor.expand(shape), x)

    def where(self):
        x = self.pick()
        y = self.broadcastable(x.shape)
        condition = self.broadcastable(x.shape, torch.bool)
        if self.random.random() < 0.4:
            other = self.source(x.shape, torch.int64)
            zero = self.source((), torch.int64)
            condition = self.emit("nn.compare gt {0}, {1} : {sig}", other.tensor > zero.tensor, other, zero)
        expected = torch.where(condition.tensor, x.tensor, y.tensor)
        self.emit("nn.where {0}, {1}, {2} : {sig}", expected, condition, x, y)

    def cast(self):
        x = self.pick(dtype=self.random.choice((torch.int64, torch.bool)))
        self.emit("nn.cast {0} : {t0} -> {t}", x.tensor.double(), x)

    def narrow(self):
        """f64 → f32 → f64, with an op in between."""
        x = self.pick()
        y = self.emit("nn.cast {0} : {t0} -> {t}", x.tensor.float(), x)
        z = self.emit("nn.cast {0} : {t0} -> {t}", y.tensor.double(), y)

    def loss(self):
        reduction = self.random.choice(("none", "mean", "sum"))
        rows, classes = self.random.choice((2, 4, 8)), self.random.choice((4, 6))
        x, t = self.source((rows, classes)), self.source((rows,), torch.int64, 0, classes)
        smoothing = self.random.choice((0.0, 0.3))
        expected = F.cross_entropy(x.tensor, t.tensor, reduction=reduction, label_smoothing=smoothing)
        self.emit(f"nn.cross_entropy {reduction} {{0}}, {{1}} ignore -100 smoothing {smoothing:e} : {{sig}}", expected, x, t)


WEIGHTED_OPS = {
    Graph.unary: 5, Graph.binary: 8, Graph.integer_binary: 1, Graph.divide: 1, Graph.constant: 2, Graph.linear: 8,
    Graph.mlp: 3, Graph.matmul: 5, Graph.attention: 2, Graph.embedding: 3, Graph.index_select: 1, Graph.gather: 1,
    Graph.softmax: 2, Graph.layer_norm: 2, Graph.rms_norm: 2, Graph.reduce: 5, Graph.argmax: 1, Graph.transpose: 4,
    Graph.reshape: 6, Graph.slice: 2, Graph.slice_scatter: 2, Graph.concat: 2, Graph.broadcast: 2, Graph.where: 2, Graph.cast: 1,
    Graph.narrow: 1, Graph.loss: 1,
}


def random_graph(prefix, placer, random, generator):
    graph = Graph(prefix, placer, random, generator)
    ops, weights = list(WEIGHTED_OPS), list(WEIGHTED_OPS.values())
    target = random.randint(5, 12)
    while len(graph.program.body) < target or not graph.unused:
        before = len(graph.values)
        random.choices(ops, weights)[0](graph)
        # What has grown too large goes no further.
        graph.values[before:] = [v for v in graph.values[before:] if v.tensor.numel() <= MAX_ELEMENTS]
    outputs = list(graph.unused)
    if random.random() < 0.3:
        outputs.append(random.choice(graph.values or outputs))
    for i, value in enumerate(outputs):
        placement = placer.maybe(value.shape, 0.5)
        graph.program.results.append((value.name, f"{prefix}_r{i}", value.tensor, placement))
    return graph.program
