#!/usr/bin/env python3
"""Infinities, NaN, zeros of both signs, denormals and the largest numbers: every pointwise op, reduction and loss that
tp-import knows beside PyTorch, in each float type, on 1, 2 and 4 ranks with the reduced dimension split; and gradients.

  edges.py [--tools DIRECTORY] [--filter REGEX] [--keep DIRECTORY]

A type's functions are one model. A result must be PyTorch's, in its type or in f64 and rounded: a finite one within some units
in the last place, what isn't finite exactly. DIFFERENCES lists what else there is, with the reason. Exit code 1 when anything
differs that it doesn't list.
"""

import argparse
import dataclasses
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings
from typing import Callable

import torch
import torch.nn.functional as F

import sampling
from cases import MLIR_TYPES
from ops import get_tool, load, save

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
RANKS = (1, 2, 4)
COLUMNS = 16


@dataclasses.dataclass
class Function:
    name: str
    function: Callable
    # Of which grids: "values", "pairs" of values, "rows".
    grid: str
    # Units in the last place of the result, or of the operand.
    ulps: float = 4
    of_operand: bool = False
    has_gradient: bool = True
    # In f64, where PyTorch's own result isn't exact.
    ulps_of_f64: float = None

    def get_ulps(self, dtype):
        return self.ulps_of_f64 or self.ulps if dtype == torch.float64 else self.ulps


FUNCTIONS = []


def add(grid, functions, **options):
    FUNCTIONS.extend(Function(name, function, grid, **options) for name, function in functions.items())


def get_tensor(values, dtype):
    return torch.tensor(values, dtype=torch.float64).to(dtype)


def get_values(dtype):
    """Values at the edges of `dtype`, and of functions on it."""
    info = torch.finfo(dtype)
    # Below -88 and -708, exp is denormal; above 88 and 709 it overflows; a denormal number of f16 is none of others.
    least = math.ldexp(info.tiny, round(math.log2(info.eps)))
    positive = [0.0, least, 3 * least, info.tiny / 2, info.tiny, 2 * info.tiny, info.eps, 6e-8, 1e-3, 0.25, 0.5, 1.0, 1.0 + info.eps,
                1.5, 2.0, 2.5, 3.0, 5.5, 8.0, 9.5, 10.5, 14.5, 17.0, 20.5, 50.0, 87.25, 87.5, 88.5, 89.0, 95.0, 103.0, 104.5, 127.0, 150.0,
                708.0, 709.5, 710.0, 730.0, 745.0, 746.0, 1000.0, 65504.0, 1e30, info.max / 2, info.max, math.inf]
    values = [value for value in positive if value <= info.max or value == math.inf] + [math.nan]
    return get_tensor([sign * value for value in values for sign in (1, -1)], dtype)


def get_pairs(dtype):
    info = torch.finfo(dtype)
    some = [0.0, info.tiny / 4, info.tiny, 0.5, 1.0, 2.0, 2.5, 3.0, 7.0, info.max, math.inf, math.nan]
    some = get_tensor([sign * value for value in some for sign in (1, -1)], dtype)
    left, right = torch.meshgrid(some, some, indexing="ij")
    return left.flatten(), right.flatten()


def get_rows(dtype):
    info, inf, nan = torch.finfo(dtype), math.inf, math.nan
    least = math.ldexp(info.tiny, round(math.log2(info.eps)))
    rows = [
        [0.0] * 8, [-0.0] * 8, [0.0, -0.0] * 4, [1.0] * 8, [0.5, -2.0, 3.0, 1.5, -0.25, 2.0, 0.0, -1.0],
        [inf, 1.0] + [0.0] * 6, [0.0] * 6 + [1.0, inf], [-inf, 1.0] + [2.0] * 6, [1.0] * 7 + [-inf], [inf] * 8, [-inf] * 8,
        [inf, -inf] + [0.0] * 6, [inf] + [0.0] * 6 + [-inf], [inf] * 2 + [1.0] * 6, [-inf] * 4 + [1.0] * 4, [1.0, -inf] * 4,
        [nan] + [1.0] * 7, [1.0] * 7 + [nan], [nan] * 8, [nan, inf] + [1.0] * 6, [-inf] * 7 + [nan],
        [info.max] + [0.0] * 7, [info.max] * 8, [-info.max] * 8, [info.max / 32] * 8, [-info.max] + [1.0] * 7,
        [least] * 8, [info.tiny / 2] * 8, [info.tiny] * 8, [-info.tiny / 2] * 8, [info.tiny, -info.tiny / 2] * 4,
        [100.0] * 8, [100.0] + [-100.0] * 7, [95.0, 0.0] * 4, [-1000.0] * 8, [1000.0, 0.0] * 4, [88.0, 89.0] * 4, [17.0, 0.0] * 4,
        [3.0, 3.0, 1.0, 3.0, 0.0, -1.0, 3.0, 2.0], [2.0, 0.0, 3.0, 1.0, 2.0, 1.0, 1.5, 4.0], [-0.0, 2.0, 0.0, 3.0, 1.0, 1.0, 2.0, 1.0],
    ]
    if dtype == torch.float16:
        # Sums that overflow f16 on the way, or in a part, and not in all; in f32 nothing overflows.
        rows += [[info.max] * 4 + [-info.max] * 4, [info.max] * 3 + [-info.max] + [1.0] * 4, [info.max / 2] * 8, [info.max, -info.max] * 4,
                 [info.max / 4] * 7 + [0.0], [info.max / 2] * 4 + [-info.max / 4] * 4, [300.0, 1.0] * 4, [200.0] * 8, [1e-4] * 8]
    # Twice each: the sum over a rank's part is less to send than the part.
    return get_tensor(rows, dtype).repeat_interleave(2, 1)


NUM_ROWS = {str(len(get_rows(dtype))) for dtype in DTYPES}

# --- functions --------------------------------------------------------------------------------------------------------

flat = {"has_gradient": False}
add("values", {"neg": torch.neg, "abs": torch.abs, "relu": torch.relu, "square": torch.square, "sqrt": torch.sqrt,
               "reciprocal": torch.reciprocal, "leaky_relu": lambda x: F.leaky_relu(x, 0.1), "relu6": F.relu6, "hardtanh": F.hardtanh,
               "clamp": lambda x: torch.clamp(x, -2.0, 2.0), "clamp_min": lambda x: torch.clamp_min(x, 0.0),
               "clamp_max": lambda x: torch.clamp_max(x, 1.0)}, ulps=1)
add("values", {"floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "isnan": torch.isnan, "isinf": torch.isinf,
               "nan_to_num": torch.nan_to_num, "logical_not": torch.logical_not, "to_bool": lambda x: x.bool(), "to_f16": torch.Tensor.half,
               "to_bf16": torch.Tensor.bfloat16, "to_f32": torch.Tensor.float, "to_f64": torch.Tensor.double,
               "cumsum": lambda x: torch.cumsum(x[:8], 0)}, ulps=1, **flat)
add("values", {"exp": torch.exp, "log": torch.log, "rsqrt": torch.rsqrt, "sin": lambda x: torch.sin(x.clamp(-1000, 1000)),
               "cos": lambda x: torch.cos(x.clamp(-1000, 1000)), "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid, "silu": F.silu,
               "softplus": F.softplus, "softplus 800": lambda x: F.softplus(x, threshold=800.0), "log_sigmoid": F.logsigmoid,
               "expm1": torch.expm1, "log1p": torch.log1p, "atan": torch.atan, "round": torch.round,
               "hardshrink": F.hardshrink, "softshrink": F.softshrink})
# x times a sum of 1 and what is near -1.
add("values", {"gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}, of_operand=True, ulps=1)
for exponent in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, -0.5, -1.0, -2.0, 2.5):
    add("values", {f"pow {exponent}": lambda x, e=exponent: torch.pow(x, e)})
add("pairs", {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum},
    ulps=1)
add("pairs", {"pow": torch.pow})
add("pairs", {"remainder": torch.remainder, "floor_divide": torch.floor_divide, "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
              "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
              **{f"lerp {w}": lambda x, y, w=w: torch.lerp(x, y, w) for w in (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)},
              "clamp by tensors": lambda x, y: torch.clamp(x, y, y + 1), "addcdiv": lambda x, y: torch.addcdiv(x, x, y), "addcmul": lambda x, y: torch.addcmul(x, x, y)},
    ulps=1, **flat)

TARGET = torch.arange(64) % COLUMNS


def target(x):
    return TARGET[: x.shape[0]]


rows = {
    "sum": lambda x: x.sum(1), "mean": lambda x: x.mean(1), "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(1),
    "max": lambda x: x.max(1)[0], "min": lambda x: x.min(1)[0], "prod": lambda x: x.prod(1),
    "logsumexp": lambda x: torch.logsumexp(x, 1), "log_softmax": lambda x: torch.log_softmax(x, 1),
    "var": lambda x: x.var(1), "var biased": lambda x: x.var(1, correction=0), "std": lambda x: x.std(1),
    "norm 2": lambda x: torch.linalg.vector_norm(x, 2, 1), "norm 1": lambda x: torch.linalg.vector_norm(x, 1, 1),
    "norm inf": lambda x: torch.linalg.vector_norm(x, math.inf, 1), "norm -inf": lambda x: torch.linalg.vector_norm(x, -math.inf, 1),
    "layer_norm": lambda x: F.layer_norm(x, (COLUMNS,)), "rms_norm": lambda x: F.rms_norm(x, (COLUMNS,), eps=1e-5),
    "group_norm": lambda x: F.group_norm(x.reshape(-1, COLUMNS, 1), 1).reshape(-1, COLUMNS),
    "cross_entropy": lambda x: F.cross_entropy(x, target(x), reduction="none"),
    "cross_entropy smooth": lambda x: F.cross_entropy(x, target(x), reduction="none", label_smoothing=0.25),
    "nll_loss": lambda x: F.nll_loss(x, target(x), reduction="none"),
    "mse_loss": lambda x: F.mse_loss(x, torch.ones_like(x), reduction="none").mean(1),
    "cumsum": lambda x: torch.cumsum(x, 1), "var_mean": lambda x: torch.var_mean(x, 1)[0],
}
add("rows", rows)
# PyTorch's own exponential is off by 2 units on some CPUs.
add("rows", {"softmax": lambda x: torch.softmax(x, 1)}, ulps_of_f64=6)
add("rows", {"argmax": lambda x: x.argmax(1), "argmin": lambda x: x.argmin(1), "max at": lambda x: x.max(1)[1], "any": lambda x: x.any(1),
             "all": lambda x: x.all(1), "glu": lambda x: F.glu(x, 1)}, **flat)
# A column is one of the values above: what is split is the reduced dimension, as always.
add("rows", {"mean of all": lambda x: x[:1].mean() + x[3:5].mean()})

# --- what differs -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Difference:
    """Where `function` (a regular expression) isn't compared, forward or backward: a mask of the elements of its operands, or
    of rows. docs/CodeGeneration.md, "Numbers at the edges", states each."""

    function: str
    where: Callable
    types: str = "f32 f64 f16 bf16"
    backward: bool = False


def is_large(x, share=1.0):
    """Of rows, whether a finite element is above a share of the largest number."""
    return ((x.abs() >= torch.finfo(x.dtype).max * share) & x.isfinite()).any(-1)


DIFFERENCES = [
    # The quotient overflows: PyTorch multiplies infinity back, here the remainder is exact.
    Difference("remainder", lambda x, y: (torch.floor(x / y).isinf() | (torch.floor(x / y) * y).isinf()) & x.isfinite()),
    # PyTorch multiplies and adds with one rounding where its vectors can.
    Difference("addcmul", lambda x, y: (x * y).isinf() & x.isfinite() & y.isfinite()),
    # The order of factors decides whether a product overflows before it meets a 0.
    Difference("prod", is_large),
    # PyTorch updates a mean element by element, and squares f32 in f64; here sums and squares overflow, or become 0.
    Difference("var.*|std|layer_norm|group_norm", lambda x: is_large(x, 1e-20) | (x.abs().amax(-1) < 1e-20), "f32 f64 bf16"),
    # In f64 PyTorch's mean is less exact for it.
    Difference("var.*|std|layer_norm|group_norm", lambda x: x.amax(-1) - x.amin(-1) < x.amax(-1) / 50, "f64"),
    # Equal maxima along a dimension share the gradient; in PyTorch the first one has it.
    Difference("max|min", lambda x: torch.ones_like(x[:, 0], dtype=torch.bool), backward=True),
    # PyTorch's logarithm of the sum is rounded before exponentials are divided by it.
    Difference("logsumexp", lambda x: is_large(x, 1e-3), backward=True),
    # NaN is in the gradient of all elements.
    Difference("norm -?inf", lambda x: x.isnan().any(-1), backward=True),
    # The product is divided by the element, in PyTorch's gradient others are multiplied.
    Difference("prod", lambda x: x.isinf().any(-1), backward=True),
    # Of a square that overflows in f64, times 0.
    Difference("rms_norm|mse_loss", is_large, "f64", backward=True),
    # The gradient of NaN passes a clamp.
    Difference("clamp.*|sin|cos", torch.isnan, backward=True),
    # From the square root's gradient, not from powf.
    Difference("pow -0.5", lambda x: x == -math.inf, backward=True),
]

# Gradients that are differences of what is about 1: compared as such.
DIFFERENCES_OF_ONES = "tanh|sigmoid|gelu.*|softmax|log_softmax|logsumexp|cross_entropy.*|.*_norm"

# A zero's sign isn't compared: of a maximum or minimum PyTorch has it from the order of operands, here -0 < 0; of norms from the
# order of sums.
SIGNLESS_ZEROS = "relu|clamp|maximum|minimum|max|min|norm|log_sigmoid"


# --- models -----------------------------------------------------------------------------------------------------------


def take(functions, values, left, right, rows):
    """Each function's own operands, in their order: a slice of each grid's tensors."""
    grids = {"values": (values,), "pairs": (left, right), "rows": (rows,)}
    counts = dict.fromkeys(grids, 0)
    for function in functions:
        yield tuple(tensor[counts[function.grid]] for tensor in grids[function.grid])
        counts[function.grid] += 1


class Forward(torch.nn.Module):
    """The results of all functions, in their order."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, values, left, right, rows):
        return tuple(f.function(*own) for f, own in zip(self.functions, take(self.functions, values, left, right, rows)))


class Loss(Forward):
    """A sum over the results of all functions."""

    def forward(self, values, left, right, rows):
        total = torch.zeros((), dtype=torch.float64)
        for result in super().forward(values, left, right, rows):
            total = total + (result * weight_of(result)).sum().double()
        return total


def weight_of(result):
    return (torch.arange(result.numel()) % 5 - 1.0).reshape(result.shape).to(result.dtype)


def run(command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command[:2]))} … failed with {process.returncode}:\n{process.stderr[-4000:]}")


def place(text, ranks):
    """The module with a mesh: what has columns is split along them, values and pairs along themselves."""

    def split(match):
        dims = ["{}"] * match[2].count("x")
        is_reduced = match[3].startswith("output") and match[2].split("x")[0] in NUM_ROWS and len(dims) == 1
        if dims and not is_reduced:
            dims[-1] = "{tp}"
        return f'{match[1]} {{tp.name = "{match[3]}", tp.sharding = #tp.sharding<@mesh, [{", ".join(dims)}]>}}'

    text = re.sub(r'(tensor<((?:\d+x)*)[a-z]+\d+>) {tp.name = "([^"]*)"}', split, text)
    return text.replace("module {", f"module {{\ntp.mesh @mesh(tp = {ranks})", 1)


def execute(tools, directory, model, inputs, passes, outputs):
    """The outputs of `model`, a path, by name and number of ranks."""
    results = {}
    for ranks in RANKS:
        placed, local, artifact = (directory / f"{ranks}.{name}" for name in ("placed.mlir", "local.mlir", "tpx"))
        placed.write_text(place(model.read_text(), ranks))
        run([get_tool(tools, "tp-opt"), placed, *passes, "--tp-parallelize=latency-bytes=0", "-o", local])
        run([get_tool(tools, "tp-compile"), local, "-o", artifact])
        command = [get_tool(tools, "tp-run"), artifact]
        for name, value in inputs.items():
            save(directory / f"{name}.npy", value)
            command += ["--input", f"{name}={directory}/{name}.npy"]
        for name in outputs:
            command += ["--output", f"{name}={directory}/{name}.{ranks}.npy"]
        run(command)
        results[ranks] = {name: load(directory / f"{name}.{ranks}.npy", dtype) for name, dtype in outputs.items()}
    return results


# --- comparison -------------------------------------------------------------------------------------------------------


def get_unit(expected):
    """The distance between neighbors in the type of `expected`, where that is finite."""
    if expected.dtype not in DTYPES:
        return 0
    info = torch.finfo(expected.dtype)
    _, exponent = torch.frexp(expected.double().nan_to_num(posinf=0.0, neginf=0.0))
    digits = round(-math.log2(info.eps))
    return torch.ldexp(torch.tensor(1.0, dtype=torch.float64), torch.clamp(exponent - 1, min=round(math.log2(info.tiny))) - digits)


def get_excluded(function, operands, shape, backward):
    """The elements of a result of `shape` that aren't compared."""
    excluded = torch.zeros(operands[0].shape[:1], dtype=torch.bool)
    for difference in DIFFERENCES:
        types = difference.types.split()
        if re.fullmatch(difference.function, function.name) and MLIR_TYPES[operands[0].dtype] in types and backward >= difference.backward:
            excluded |= difference.where(*operands)
    return excluded.reshape(-1, *[1] * (len(shape) - 1)).expand(shape) if shape and shape[0] == len(excluded) else torch.zeros(shape, dtype=torch.bool)


def get_wrong(actual, expected, unit, has_signs):
    if expected.dtype not in DTYPES:
        return actual != expected
    finite = torch.isfinite(expected)
    near = (actual.double() - expected.double()).abs() <= unit
    same = torch.where(finite, near, (actual == expected) | (actual.isnan() & expected.isnan()))
    zeros = (expected == 0) & (actual == 0) & has_signs
    return ~same | (zeros & (actual.signbit() != expected.signbit()))


def report(label, actual, expected, exact, ulps, function, operands, backward=False):
    """Whether `actual` is neither `expected` nor `exact`; says where."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        print(f"FAIL {label}: is {actual.dtype} {list(actual.shape)}, must be {expected.dtype} {list(expected.shape)}")
        return True
    has_signs = not backward and not re.search(SIGNLESS_ZEROS, function.name)
    unit = ulps * get_unit(operands[0] if function.of_operand else expected)
    if backward and re.fullmatch(DIFFERENCES_OF_ONES, function.name):
        unit = unit + 32 * torch.finfo(expected.dtype).eps
    wrong = get_wrong(actual, expected, unit, has_signs) & get_wrong(actual, exact.to(expected.dtype), unit, has_signs)
    wrong = (wrong & ~get_excluded(function, operands, expected.shape, backward)).nonzero().tolist()
    for place in wrong[:6]:
        given = ", ".join(str(operand[place[0]].tolist()) for operand in operands) if place else ""
        print(f"FAIL {label} at {place}: is {actual[tuple(place)].item()}, must be {expected[tuple(place)].item()}, of {given}")
    if len(wrong) > 6:
        print(f"FAIL {label}: and {len(wrong) - 6} more")
    return bool(wrong)


def get_inputs(dtype, functions):
    """The grids, once for each function on them: values (function, n), left and right (function, n), rows (function, n, column)."""
    left, right = get_pairs(dtype)
    grids = {"values": ("values", get_values(dtype)), "left": ("pairs", left), "right": ("pairs", right), "rows": ("rows", get_rows(dtype))}
    count = lambda grid: max(1, sum(f.grid == grid for f in functions))
    return {name: torch.stack([tensor] * count(grid)) for name, (grid, tensor) in grids.items()}


def import_model(tools, directory, model, inputs, specs):
    archive, text = directory / "model.pt", directory / "model.mlir"
    torch.jit.trace(model, inputs, check_trace=False).save(archive)
    run([get_tool(tools, "tp-import"), archive, *specs, "-o", text, "--weights", directory / "model.safetensors"])
    return text


def spec(name, value):
    return ["--input", f"{name}={'x'.join(map(str, value.shape))}x{MLIR_TYPES[value.dtype]}"]


def check_forward(tools, directory, dtype, functions):
    directory.mkdir(parents=True)
    inputs = get_inputs(dtype, functions)
    model = Forward(functions)
    expected, exact = model(*inputs.values()), model(*(value.double() for value in inputs.values()))
    text = import_model(tools, directory, model, tuple(inputs.values()), [word for item in inputs.items() for word in spec(*item)])
    names = [f"output{i}" for i in range(len(functions))] if len(functions) > 1 else ["output"]
    results = execute(tools, directory, text, inputs, [], {name: value.dtype for name, value in zip(names, expected)})
    failures = 0
    for ranks, outputs in results.items():
        for function, name, *wanted, operands in zip(functions, names, expected, exact, take(functions, *inputs.values())):
            label = f"{function.name} {MLIR_TYPES[dtype]}, {ranks} ranks"
            failures += report(label, outputs[name], *wanted, function.get_ulps(dtype), function, operands)
    return failures


def get_gradients(model, inputs):
    """PyTorch's, by name; None where an input isn't used."""
    leaves = {name: value.clone().requires_grad_() for name, value in inputs.items()}
    model(*leaves.values()).backward()
    return {name: value.grad for name, value in leaves.items()}


def check_gradients(tools, directory, dtype, functions):
    directory.mkdir(parents=True)
    inputs = get_inputs(dtype, functions)
    model = Loss(functions)
    expected = get_gradients(model, inputs)
    exact = get_gradients(model, {name: value.double() for name, value in inputs.items()})
    text = import_model(tools, directory, model, tuple(inputs.values()), [word for item in inputs.items() for word in spec(*item)])
    wanted = {f"grad.{name}": dtype for name, value in expected.items() if value is not None}
    results = execute(tools, directory, text, inputs, ["--tp-grad=inputs=true"], wanted)
    zeros = {name: torch.zeros_like(value) for name, value in inputs.items()}
    of_each = lambda gradients: take(functions, *(zeros[name] if value is None else value for name, value in gradients.items()))
    failures = 0
    for ranks, outputs in results.items():
        given = {name: outputs.get(f"grad.{name}") for name in inputs}
        for function, operands, *own in zip(functions, take(functions, *inputs.values()), of_each(given), of_each(expected), of_each(exact)):
            for i, values in enumerate(zip(*own)):
                label = f"gradient of {function.name} {MLIR_TYPES[dtype]}, operand {i}, {ranks} ranks"
                failures += report(label, *values, 4 * function.get_ulps(dtype), function, operands, True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--filter", default="", help="only functions whose name matches this regular expression")
    parser.add_argument("--types", default="f32,f64,f16,bf16")
    parser.add_argument("--gradients", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--keep", type=pathlib.Path, help="keep programs, inputs and outputs here")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    functions = sampling.take(f for f in FUNCTIONS if re.search(options.filter, f.name))
    failures = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for dtype in DTYPES:
            if MLIR_TYPES[dtype] not in options.types.split(","):
                continue
            directory = (options.keep or pathlib.Path(scratch)) / MLIR_TYPES[dtype]
            failures += check_forward(options.tools, directory / "forward", dtype, functions)
            count += len(functions) * len(RANKS)
            differentiable = [f for f in functions if f.has_gradient]
            if differentiable and options.gradients:
                failures += check_gradients(options.tools, directory / "gradients", dtype, differentiable)
                count += len(differentiable) * len(RANKS)
    print(f"{count - failures} of {count} functions equal PyTorch's at the edges")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
