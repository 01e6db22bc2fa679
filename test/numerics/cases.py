"""Every nn op as a case: IR, random inputs, and the PyTorch function that it must equal.

A case's IR is a template. `%0`, `%1`, … are the inputs, `%r` is the result, other names are local; `{sig}` stands for
`(input types) -> result type`, `{t0}`, `{t1}`, … for input types and `{t}` for the result type.
"""

import dataclasses
import math
from typing import Callable

import torch
import torch.nn.functional as F

MLIR_TYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "ui8",
    torch.bool: "i1",
}
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8)
INDICES = (torch.int64, torch.int32)

# Relative and absolute tolerance by the result's type.
TOLERANCES = {
    torch.float32: (3e-5, 3e-6),
    torch.float64: (1e-9, 1e-10),
    torch.float16: (2e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 8e-3),
}


def tensor_type(tensor):
    dims = "".join(f"{size}x" for size in tensor.shape)
    return f"tensor<{dims}{MLIR_TYPES[tensor.dtype]}>"


@dataclasses.dataclass
class Case:
    name: str
    template: str
    inputs: list
    expected: torch.Tensor
    function: Callable

    def ir(self, prefix):
        """The case as ops whose values all start with `prefix`."""
        types = [tensor_type(value) for value in self.inputs]
        result = tensor_type(self.expected)
        fields = {f"t{i}": type for i, type in enumerate(types)}
        text = self.template.format(sig=f"({', '.join(types)}) -> {result}", t=result, **fields)
        return text.replace("%", f"%{prefix}_")


CASES = []


def case(name, template, inputs, function, exact=False):
    """`exact`: compare with PyTorch in the inputs' own type, instead of in f64 rounded once."""
    computed = function(*inputs)
    if not exact and computed.dtype in FLOATS:
        wide = [value.double() if value.dtype in FLOATS else value for value in inputs]
        computed = function(*wide).to(computed.dtype)
    if "=" not in template.split("\n")[-1].split("nn.")[0]:
        template = "%r = " + template
    CASES.append(Case(name, template, list(inputs), computed.contiguous(), function))


def short(dtype):
    return MLIR_TYPES[dtype]


generator = torch.Generator().manual_seed(20)


def rand(*shape, dtype=torch.float32, low=-3.0, high=3.0):
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype == torch.uint8:  # also what a signed byte isn't
        return torch.randint(0, 256, shape, generator=generator, dtype=dtype)
    if dtype in INTS:
        return torch.randint(int(low), int(high) + 1, shape, generator=generator, dtype=dtype)
    values = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (low + (high - low) * values).to(dtype)


def indices(bound, *shape, dtype=torch.int64):
    return torch.randint(0, bound, shape, generator=generator, dtype=dtype)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 100.0, -100.0, math.inf, -math.inf, math.nan, 1e-30, 3e4]


def special(dtype):
    return torch.tensor(SPECIAL, dtype=torch.float64).to(dtype)


# --- elementwise ------------------------------------------------------------------------------------------------------

UNARY = {
    "neg": torch.neg,
    "abs": torch.abs,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "sin": torch.sin,
    "cos": torch.cos,
    "atan": torch.atan,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "relu": torch.relu,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
}
POSITIVE = {"log": torch.log, "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal}

for dtype in FLOATS:
    for name, function in UNARY.items():
        case(f"{name} {short(dtype)}", f"nn.{name} %0 : {{t}}", [rand(3, 5, 7, dtype=dtype)], function)
    for name, function in POSITIVE.items():
        case(f"{name} {short(dtype)}", f"nn.{name} %0 : {{t}}", [rand(4, 9, dtype=dtype, low=0.1)], function)
for name, function in {**UNARY, **POSITIVE}.items():
    if name not in ("sin", "cos", "gelu", "gelu tanh", "silu"):
        case(f"{name} of special values", f"nn.{name} %0 : {{t}}", [special(torch.float32)], function, exact=True)
for dtype in INTS:
    for name in ("neg", "abs", "relu"):
        case(f"{name} {short(dtype)}", f"nn.{name} %0 : {{t}}", [rand(3, 6, dtype=dtype, low=-9, high=9)], UNARY[name])
case("logical_not", "nn.logical_not %0 : {t}", [rand(3, 6, dtype=torch.bool)], torch.logical_not)

BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}
for dtype in FLOATS + INTS:
    for name, function in BINARY.items():
        inputs = [rand(4, 6, dtype=dtype), rand(4, 6, dtype=dtype)]
        case(f"{name} {short(dtype)}", f"nn.{name} %0, %1 : {{sig}}", inputs, function)
    inputs = [rand(4, 6, dtype=dtype), rand(4, 6, dtype=dtype)]
    if dtype in INTS:
        inputs[1][inputs[1] == 0] = 2
    divide = torch.div if dtype in FLOATS else lambda x, y: torch.div(x, y, rounding_mode="trunc")
    floor_divide = lambda x, y: torch.div(x, y, rounding_mode="floor")
    case(f"div {short(dtype)}", "nn.div %0, %1 : {sig}", inputs, divide)
    case(f"floor_div {short(dtype)}", "nn.floor_div %0, %1 : {sig}", inputs, floor_divide, exact=True)
    case(f"remainder {short(dtype)}", "nn.remainder %0, %1 : {sig}", inputs, torch.remainder, exact=True)

for label, left, right in (
    ("row", (2, 3, 4), (4,)),
    ("column", (2, 3, 4), (3, 1)),
    ("outer", (3, 1), (1, 4)),
    ("both", (2, 1, 4), (3, 1)),
    ("scalar", (2, 3), ()),
    ("scalar on the left", (), (2, 3)),
    ("scalars", (), ()),
    ("unit dimensions", (1, 3, 1), (1, 1, 1)),
    ("nothing", (0, 3), (3,)),
):
    case(f"add {label}", "nn.add %0, %1 : {sig}", [rand(*left), rand(*right)], torch.add)
x, y = special(torch.float32).reshape(-1, 1), special(torch.float32)
for name in ("maximum", "minimum"):
    case(f"{name} of special values", f"nn.{name} %0, %1 : {{sig}}", [x, y], BINARY[name])
for name, function in (("remainder", torch.remainder), ("floor_div", floor_divide)):
    inputs = [torch.tensor([7.0, -7.0, 7.0, -7.0, 0.0, 6.0, 1.0, -0.0]), torch.tensor([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 0.0, 5.0])]
    case(f"{name} of signs", f"nn.{name} %0, %1 : {{sig}}", inputs, function, exact=True)
case(
    "integer division of the smallest number",
    "nn.div %0, %1 : {sig}",
    [torch.tensor([-(2**63), 5]), torch.tensor([-1, -1])],
    lambda x, y: -x,
)
case("integer division by zero", "nn.div %0, %1 : {sig}", [torch.tensor([5, -7]), torch.tensor([0, 0])], lambda x, y: x * 0)

case("pow f32", "nn.pow %0, %1 : {sig}", [rand(4, 5, low=0.1), rand(4, 5)], torch.pow)
case("pow f64", "nn.pow %0, %1 : {sig}", [rand(4, 5, low=0.1, dtype=torch.float64), rand(4, 5, dtype=torch.float64)], torch.pow)
case("pow i64", "nn.pow %0, %1 : {sig}", [rand(40, dtype=torch.int64), rand(40, dtype=torch.int64, low=-3, high=50)], torch.pow)
case("pow i32", "nn.pow %0, %1 : {sig}", [rand(40, dtype=torch.int32), rand(40, dtype=torch.int32, low=0, high=40)], torch.pow)
for exponent in (0.0, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0, 2.5):
    template = f"%c = nn.constant dense<{exponent:e}> : tensor<f32>\n%r = nn.pow %0, %c : ({{t0}}, tensor<f32>) -> {{t}}"
    case(f"pow {exponent}", template, [rand(4, 5, low=0.1)], lambda x, e=exponent: torch.pow(x, e))
for dtype in (torch.float16, torch.bfloat16):
    template = f"%c = nn.constant dense<2.0> : tensor<{short(dtype)}>\n%r = nn.pow %0, %c : ({{t0}}, tensor<{short(dtype)}>) -> {{t}}"
    case(f"pow 2 {short(dtype)}", template, [rand(4, 5, dtype=dtype)], lambda x: torch.pow(x, 2))

for name, function in (("and", torch.logical_and), ("or", torch.logical_or), ("xor", torch.logical_xor)):
    case(f"logical_{name}", f"nn.logical_{name} %0, %1 : {{sig}}", [rand(4, 5, dtype=torch.bool), rand(5, dtype=torch.bool)], function)

PREDICATES = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
for name, function in PREDICATES.items():
    case(f"compare {name} of special values", f"nn.compare {name} %0, %1 : {{sig}}", [x, y], function)
    for dtype in FLOATS + INTS + (torch.bool,):
        inputs = [rand(5, 1, dtype=dtype), rand(5, dtype=dtype)]
        case(f"compare {name} {short(dtype)}", f"nn.compare {name} %0, %1 : {{sig}}", inputs, function)

for dtype in FLOATS + INTS + (torch.bool, torch.uint8):
    inputs = [rand(4, 4, dtype=torch.bool), rand(2, 4, 4, dtype=dtype), rand(dtype=dtype)]
    case(f"where {short(dtype)}", "nn.where %0, %1, %2 : {sig}", inputs, torch.where)
    for target in FLOATS + INTS + (torch.bool, torch.uint8):
        if target != dtype:
            name = f"cast {short(dtype)} to {short(target)}"
            # PyTorch leaves open what a negative float is as a uint8.
            x = rand(3, 7, dtype=dtype, low=0, high=200) if target == torch.uint8 and dtype in FLOATS else rand(3, 7, dtype=dtype)
            case(name, "nn.cast %0 : {t0} -> {t}", [x], lambda x, to=target: x.to(to), exact=True)
case("cast of special values to i1", "nn.cast %0 : {t0} -> {t}", [special(torch.float32)], lambda x: x.bool())

# --- contractions -----------------------------------------------------------------------------------------------------

for dtype in FLOATS:
    for x, w in (((6, 16), (8, 16)), ((2, 5, 16), (7, 16)), ((2, 1, 3, 4), (5, 4)), ((8,), (3, 8)), ((1, 1), (1, 1))):
        case(f"linear {short(dtype)} {x} {w}", "nn.linear %0, %1 : {sig}", [rand(*x, dtype=dtype), rand(*w, dtype=dtype)], F.linear)
    for x, y in (
        ((4, 6), (6, 5)),
        ((2, 3, 4, 6), (2, 3, 6, 5)),
        ((2, 3, 4, 6), (6, 5)),
        ((4, 6), (3, 6, 5)),
        ((2, 1, 4, 6), (1, 3, 6, 5)),
        ((2, 3, 1, 6), (3, 6, 1)),
        ((1, 4, 6), (1, 6, 5)),
        ((2, 2, 2, 3, 4), (2, 2, 2, 4, 3)),
    ):
        case(f"matmul {short(dtype)} {x} {y}", "nn.matmul %0, %1 : {sig}", [rand(*x, dtype=dtype), rand(*y, dtype=dtype)], torch.matmul)
case("linear larger", "nn.linear %0, %1 : {sig}", [rand(2, 37, 96, low=0), rand(131, 96, low=0)], F.linear)
case("matmul i64", "nn.matmul %0, %1 : {sig}", [rand(3, 4, 6, dtype=torch.int64), rand(6, 5, dtype=torch.int64)], torch.matmul)
case(
    "matmul of transposed operands",
    "%q = nn.transpose %0 [0, 2, 1, 3] : {t0} -> tensor<2x3x5x4xf32>\n"
    "%k = nn.transpose %1 [0, 2, 3, 1] : {t1} -> tensor<2x3x4x6xf32>\n"
    "%s = nn.matmul %q, %k : (tensor<2x3x5x4xf32>, tensor<2x3x4x6xf32>) -> tensor<2x3x5x6xf32>\n"
    "%r = nn.transpose %s [0, 2, 1, 3] : tensor<2x3x5x6xf32> -> {t}",
    [rand(2, 5, 3, 4), rand(2, 6, 3, 4)],
    lambda q, k: (q.permute(0, 2, 1, 3) @ k.permute(0, 2, 3, 1)).permute(0, 2, 1, 3),
)
case("linear of ones", "%o = nn.constant dense<1.0> : {t0}\n%r = nn.linear %o, %1 : {sig}", [rand(3, 8), rand(4, 8)], lambda x, w: F.linear(torch.ones_like(x), w))


# --- windows ----------------------------------------------------------------------------------------------------------


def get_windows(x, size, counts, stride, padding, dilation, outside=0.0):
    """(l…, s…) as (l…, k…, p…)."""
    n = len(size)
    index, borders = [], []
    for i in range(n):
        places = torch.arange(counts[i]) * stride[i] + (torch.arange(size[i]) * dilation[i])[:, None]
        end = (counts[i] - 1) * stride[i] + (size[i] - 1) * dilation[i] + 1
        borders = [padding[i], max(0, end - padding[i] - x.shape[i - n])] + borders
        index.append(places.reshape([*([1] * i), size[i], *([1] * (n - 1)), counts[i], *([1] * (n - 1 - i))]))
    return F.pad(x, borders, value=outside)[(..., *index)]


def fold(x, shape, stride, padding, dilation):
    """(l…, k…, p…) as (l…, s…), added at each element's place; what lies outside is dropped."""
    n = len(stride)
    places = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape) + 1
    places = get_windows(places, x.shape[-2 * n : -n], x.shape[-n:], stride, padding, dilation).flatten().long()
    lead = x.shape[: -2 * n]
    sums = x.new_zeros(math.prod(lead), math.prod(shape) + 1).index_add(1, places, x.reshape(-1, places.numel()))
    return sums[:, 1:].reshape(*lead, *shape)


def convolve(x, w, counts, stride, padding, dilation):
    n = len(stride)
    windows = get_windows(x, w.shape[-n:], counts, stride, padding, dilation)
    columns = windows.flatten(-n).flatten(-n - 2, -2)  # channels and elements
    return (w.flatten(-n - 1) @ columns).unflatten(-1, counts)


for dtype in FLOATS:
    # The input, the weight, the windows of the result, stride, padding, dilation.
    for x, w, *numbers in (
        ((2, 3, 7, 9), (4, 3, 3, 2), [5, 8], [1, 1], [0, 0], [1, 1]),
        ((2, 3, 7, 9), (4, 3, 3, 2), [3, 4], [2, 3], [1, 2], [2, 1]),
        ((2, 3, 7, 9), (4, 3, 3, 2), [9, 3], [1, 3], [1, 0], [1, 1]),  # more at the end, less at the end
        ((1, 2, 2, 8, 8), (2, 3, 2, 3, 3), [4, 4], [2, 2], [1, 1], [1, 1]),  # groups
        ((2, 6, 1, 5, 5), (6, 1, 1, 3, 3), [5, 3], [1, 2], [1, 2], [1, 2]),  # depthwise
        ((2, 6, 1, 5, 5), (6, 2, 1, 2, 2), [4, 4], [1, 1], [0, 0], [1, 1]),
        ((2, 4, 5, 6), (3, 4, 1, 1), [5, 6], [1, 1], [0, 0], [1, 1]),
        ((2, 4, 5, 6), (3, 4, 1, 1), [4, 10], [2, 1], [1, 2], [1, 1]),
        ((2, 3, 8, 4), (5, 3, 4, 2), [2, 2], [4, 2], [0, 0], [1, 1]),  # patches
        ((0, 4, 5, 6), (3, 4, 2, 2), [4, 5], [1, 1], [0, 0], [1, 1]),
        ((2, 3, 11), (4, 3, 3), [5], [2], [1], [2]),
        ((2, 4, 1, 11), (4, 1, 1, 3), [11], [1], [1], [1]),
        ((1, 2, 4, 5, 3), (3, 2, 2, 3, 2), [3, 2, 4], [1, 2, 1], [0, 1, 1], [1, 1, 1]),
    ):
        counts, stride, padding, dilation = numbers
        empty = " empty" if 0 in x else ""
        case(
            f"convolution{empty} {short(dtype)} {x} {w} {numbers}",
            f"nn.convolution %0, %1 stride {stride} padding {padding} dilation {dilation} : {{sig}}",
            [rand(*x, dtype=dtype), rand(*w, dtype=dtype)],
            lambda x, w, numbers=numbers: convolve(x, w, *numbers),
        )
    # The image, the size and the number of windows, stride, padding, dilation.
    for x, *numbers in (
        ((2, 3, 7, 9), [3, 2], [5, 8], [1, 1], [0, 0], [1, 1]),
        ((2, 7, 9), [3, 3], [4, 5], [2, 2], [1, 1], [1, 1]),
        ((7, 9), [2, 3], [3, 4], [3, 2], [0, 1], [2, 1]),
        ((2, 8, 6), [4, 3], [2, 2], [4, 3], [0, 0], [1, 1]),  # side by side
        ((2, 8, 6), [2, 1], [3, 3], [3, 2], [0, 0], [1, 1]),  # with gaps
        ((2, 5, 4), [2, 3], [6, 7], [2, 1], [1, 0], [1, 2]),  # beyond the end
        ((3, 9), [3], [4], [2], [0], [1]),
        ((2, 4, 3, 5), [2, 2, 3], [3, 4, 2], [1, 1, 2], [0, 1, 1], [1, 1, 1]),
    ):
        size, counts, stride, padding, dilation = numbers
        attributes = f"stride {stride} padding {padding} dilation {dilation}"
        name = f"{short(dtype)} {x} {numbers}"
        windows = (*x[: -len(size)], *size, *counts)
        for outside in (0.0, 2.5):
            case(
                f"windows {outside} {name}",
                f"nn.windows %0 {attributes} outside {outside} : {{t0}} -> {{t}}",
                [rand(*x, dtype=dtype)],
                lambda x, numbers=numbers, outside=outside: get_windows(x, *numbers, outside),
            )
        case(
            f"fold {name}",
            f"nn.fold %0 {attributes} : {{t0}} -> {{t}}",
            [rand(*windows, dtype=dtype)],
            lambda y, shape=x[-len(size) :], rest=numbers[2:]: fold(y, shape, *rest),
        )
        for kind in ("max", "sum"):
            def pool(x, kind=kind, numbers=numbers):
                n = len(numbers[0])
                elements = get_windows(x, *numbers, 0.0 if kind == "sum" else -math.inf).flatten(-2 * n, -n - 1)
                return elements.sum(-n - 1) if kind == "sum" else elements.max(-n - 1).values

            case(
                f"pool {kind} {name}",
                f"nn.pool {kind} %0 size {size} {attributes} : {{t0}} -> {{t}}",
                [rand(*x, dtype=dtype)],
                pool,
            )


def attention(scale, causal=False):
    return lambda q, k, v, mask=None: F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=scale, is_causal=causal, enable_gqa=q.dim() == 4
    )


for dtype in FLOATS:
    def qkv(heads=4, key_heads=4, length=5, key_length=7, e=6):
        return [
            rand(2, heads, length, 8, dtype=dtype),
            rand(2, key_heads, key_length, 8, dtype=dtype),
            rand(2, key_heads, key_length, e, dtype=dtype),
        ]

    suffix = short(dtype)
    case(f"attention {suffix}", "nn.attention %0, %1, %2 scale 0.5 : {sig}", qkv(), attention(0.5))
    case(f"attention causal {suffix}", "nn.attention causal %0, %1, %2 scale 0.25 : {sig}", qkv(key_length=5), attention(0.25, True))
    for shape in ((2, 1, 1, 7), (5, 7), (2, 4, 5, 7), (1, 1, 5, 7), (1, 4, 1, 7)):
        inputs = qkv() + [rand(*shape, dtype=dtype)]
        case(f"attention mask {shape} {suffix}", "nn.attention %0, %1, %2 mask %3 scale 0.5 : {sig}", inputs, attention(0.5))
        keep = rand(*shape, dtype=torch.bool)
        keep[..., 0] = True
        inputs = qkv(key_heads=2) + [keep]
        case(f"attention grouped, bool mask {shape} {suffix}", "nn.attention %0, %1, %2 mask %3 scale 0.5 : {sig}", inputs, attention(0.5))
        # Rows that see nothing: one, or all of a sequence or head.
        keep = keep.clone()
        keep[(-1,) * (len(shape) - 1)] = False
        inputs = qkv(key_heads=2) + [keep]
        case(f"attention hidden rows, bool mask {shape} {suffix}", "nn.attention %0, %1, %2 mask %3 scale 0.5 : {sig}", inputs, attention(0.5))
        inputs = qkv() + [rand(*shape, dtype=dtype).masked_fill(~keep, -math.inf)]
        case(f"attention hidden rows, mask {shape} {suffix}", "nn.attention %0, %1, %2 mask %3 scale 0.5 : {sig}", inputs, attention(0.5))
        # Hidden by numbers, a row sees all alike. In f16, scores count beside them.
        if dtype != torch.float16:
            inputs = qkv() + [torch.zeros(shape, dtype=dtype).masked_fill(~keep, torch.finfo(dtype).min)]
            case(f"attention lowest numbers, mask {shape} {suffix}", "nn.attention %0, %1, %2 mask %3 scale 0.5 : {sig}", inputs, attention(0.5))
    case(f"attention grouped, causal {suffix}", "nn.attention causal %0, %1, %2 scale 0.5 : {sig}", qkv(8, 2, key_length=5), attention(0.5, True))
    case(f"attention one key head {suffix}", "nn.attention %0, %1, %2 scale 0.5 : {sig}", qkv(4, 1), attention(0.5))
case("attention rank 3", "nn.attention %0, %1, %2 scale 0.5 : {sig}", [rand(2, 5, 8), rand(2, 7, 8), rand(2, 7, 6)], attention(0.5))


def naive_attention(q, k, v, mask):
    return torch.softmax((q @ k).masked_fill(~mask, -math.inf), -1) @ v


# A softmax that isn't attention's gives NaN for a row of -inf.
keep = torch.tensor([[True, False, True], [False, False, False]])
case(
    "special, attention by hand",
    "%s = nn.matmul %0, %1 : ({t0}, {t1}) -> tensor<2x3xf32>\n"
    "%l = nn.constant dense<0xFF800000> : tensor<f32>\n"
    "%h = nn.where %3, %s, %l : ({t3}, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>\n"
    "%w = nn.softmax %h dim 1 : tensor<2x3xf32>\n"
    "%r = nn.matmul %w, %2 : (tensor<2x3xf32>, {t2}) -> {t}",
    [rand(2, 4), rand(4, 3), rand(3, 4), keep],
    naive_attention,
)
case(
    "attention from and to (batch, length, heads)",
    "%q = nn.transpose %0 [0, 2, 1, 3] : {t0} -> tensor<2x4x5x8xf32>\n"
    "%k = nn.transpose %1 [0, 2, 1, 3] : {t1} -> tensor<2x2x5x8xf32>\n"
    "%v = nn.transpose %2 [0, 2, 1, 3] : {t2} -> tensor<2x2x5x8xf32>\n"
    "%a = nn.attention causal %q, %k, %v scale 0.5 : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x4x5x8xf32>\n"
    "%t = nn.transpose %a [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>\n"
    "%r = nn.reshape %t : tensor<2x5x4x8xf32> -> {t}",
    [rand(2, 5, 4, 8), rand(2, 5, 2, 8), rand(2, 5, 2, 8)],
    lambda q, k, v: attention(0.5, True)(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2).reshape(2, 5, 32),
)

# --- normalization and reductions -------------------------------------------------------------------------------------

for dtype in FLOATS:
    suffix = short(dtype)
    for dim in (0, 1, 2):
        case(f"softmax {dim} {suffix}", f"nn.softmax %0 dim {dim} : {{t}}", [rand(3, 5, 7, dtype=dtype)], lambda x, d=dim: torch.softmax(x, d))
        case(f"log_softmax {dim} {suffix}", f"nn.log_softmax %0 dim {dim} : {{t}}", [rand(3, 5, 7, dtype=dtype)], lambda x, d=dim: torch.log_softmax(x, d))
    x, w, bias = rand(2, 5, 16, dtype=dtype), rand(16, dtype=dtype), rand(16, dtype=dtype)
    norm = lambda x, w=None, b=None: F.layer_norm(x, (16,), w, b, 1e-5)
    case(f"layer_norm {suffix}", "nn.layer_norm %0 weight %1 bias %2 over 1 eps 1.0e-5 : {sig}", [x, w, bias], norm)
    case(f"layer_norm without bias {suffix}", "nn.layer_norm %0 weight %1 over 1 eps 1.0e-5 : {sig}", [x, w], norm)
    case(f"layer_norm plain {suffix}", "nn.layer_norm %0 over 1 eps 1.0e-5 : {sig}", [x], norm)
    case(f"rms_norm {suffix}", "nn.rms_norm %0 weight %1 over 1 eps 1.0e-5 : {sig}", [x, w], lambda x, w: F.rms_norm(x, (16,), w, 1e-5))
    case(f"rms_norm plain {suffix}", "nn.rms_norm %0 over 1 eps 1.0e-5 : {sig}", [x], lambda x: F.rms_norm(x, (16,), None, 1e-5))
    w, bias = rand(5, 16, dtype=dtype), rand(5, 16, dtype=dtype)
    case(f"layer_norm over 2 {suffix}", "nn.layer_norm %0 weight %1 bias %2 over 2 eps 1.0e-5 : {sig}", [x, w, bias], lambda x, w, b: F.layer_norm(x, (5, 16), w, b, 1e-5))
    case(f"rms_norm over 2 {suffix}", "nn.rms_norm %0 weight %1 over 2 eps 1.0e-5 : {sig}", [x, w], lambda x, w: F.rms_norm(x, (5, 16), w, 1e-5))
case("layer_norm of values far from 0", "nn.layer_norm %0 over 1 eps 1.0e-5 : {sig}", [rand(4, 64, low=4, high=5)], lambda x: F.layer_norm(x, (64,)))
case("softmax of large values", "nn.softmax %0 dim 1 : {t}", [rand(4, 8, low=500, high=1000)], lambda x: torch.softmax(x, 1))
case("softmax of -inf", "nn.softmax %0 dim 1 : {t}", [torch.tensor([[0.0, -math.inf, 1.0], [-math.inf] * 3])], lambda x: torch.softmax(x, 1))
case("log_softmax of large values", "nn.log_softmax %0 dim 1 : {t}", [rand(4, 8, low=500, high=1000)], lambda x: torch.log_softmax(x, 1))


def product(x, dims, keepdim):
    for dim in reversed(dims):
        x = torch.prod(x, dim, keepdim, dtype=x.dtype)
    return x


def mean(x, dims, keepdim):
    if x.dtype in FLOATS:
        return torch.mean(x, dims, keepdim)
    count = math.prod(x.shape[dim] for dim in dims)
    return torch.div(torch.sum(x, dims, keepdim, dtype=x.dtype), count, rounding_mode="trunc")


REDUCTIONS = {
    "sum": lambda x, dims, keepdim: torch.sum(x, dims, keepdim, dtype=x.dtype),
    "mean": mean,
    "max": torch.amax,
    "min": torch.amin,
    "product": product,
}
for dtype in FLOATS + INTS:
    for name, function in REDUCTIONS.items():
        for dims in ([2], [0, 1], [0, 1, 2], [1]):
            for keepdim in (False, True):
                template = f"nn.reduce {name} %0 dims {dims}{' keepdim' if keepdim else ''} : {{t0}} -> {{t}}"
                inputs = [rand(3, 4, 5, dtype=dtype, low=-2, high=2)]
                case(f"reduce {name} {dims} {keepdim} {short(dtype)}", template, inputs, lambda x, f=function, d=dims, k=keepdim: f(x, d, k))
    for dim in (0, 1, 2):
        x = rand(3, 4, 5, dtype=dtype)
        case(f"argmax {dim} {short(dtype)}", f"nn.argmax %0 dim {dim} : {{t0}} -> {{t}}", [x], lambda x, d=dim: torch.argmax(x, d))
        case(f"argmax {dim} keepdim {short(dtype)}", f"nn.argmax %0 dim {dim} keepdim : {{t0}} -> {{t}}", [x], lambda x, d=dim: torch.argmax(x, d, True))
for name in ("max", "min", "sum"):
    x = torch.tensor([[1.0, math.nan, 2.0], [math.inf, -math.inf, 0.0], [-math.inf] * 3])
    case(f"reduce {name} of special values", f"nn.reduce {name} %0 dims [1] : {{t0}} -> {{t}}", [x], lambda x, f=REDUCTIONS[name]: f(x, [1], False))
x = torch.tensor([[1.0, math.nan, math.nan], [-math.inf, -math.inf, -math.inf], [2.0, 5.0, 5.0]])
case("argmax of special values", "nn.argmax %0 dim 1 : {t0} -> {t}", [x], lambda x: torch.tensor([1, 0, 1]))
case("reduce over nothing", "nn.reduce sum %0 dims [] : {t0} -> {t}", [rand(2, 3)], lambda x: x)
case("reduce of nothing", "nn.reduce sum %0 dims [1] : {t0} -> {t}", [rand(2, 0)], lambda x: x.sum(1))
case("reduce of a constant", "%c = nn.constant dense<2.0> : {t0}\n%r = nn.reduce sum %c dims [1] : {t0} -> {t}", [rand(2, 3)], lambda x: torch.full((2,), 6.0))
case(
    "normalization by a kept dimension",
    "%s = nn.reduce mean %0 dims [2] keepdim : {t0} -> tensor<2x3x1xf32>\n%r = nn.sub %0, %s : ({t0}, tensor<2x3x1xf32>) -> {t}",
    [rand(2, 3, 8)],
    lambda x: x - x.mean(2, True),
)

# --- shapes -----------------------------------------------------------------------------------------------------------

for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int16, torch.int8, torch.uint8, torch.bool):
    suffix = short(dtype)
    for source, target in (
        ((2, 8, 16), (2, 8, 4, 4)),
        ((2, 8, 4, 4), (16, 16)),
        ((2, 3, 4), (4, 3, 2)),
        ((6, 4), (2, 3, 2, 2)),
        ((2, 6, 4), (4, 3, 4)),
        ((1, 4), (4, 1)),
        ((1, 1), ()),
        ((), (1, 1, 1)),
        ((2, 1, 3), (1, 2, 3, 1)),
        ((4,), (1, 4, 1)),
        ((0, 3), (3, 0, 2)),
    ):
        case(f"reshape {source} {target} {suffix}", "nn.reshape %0 : {t0} -> {t}", [rand(*source, dtype=dtype)], lambda x, s=target: x.reshape(s))
    for shape, permutation in (((2, 3, 4), (2, 0, 1)), ((2, 3, 4, 5), (0, 2, 1, 3)), ((1, 3, 4), (1, 0, 2)), ((3, 4), (1, 0)), ((2, 3), (0, 1))):
        case(f"transpose {shape} {permutation} {suffix}", f"nn.transpose %0 {list(permutation)} : {{t0}} -> {{t}}", [rand(*shape, dtype=dtype)], lambda x, p=permutation: x.permute(p))
    for source, target in (((2, 1, 8), (2, 4, 8)), ((3,), (2, 3)), ((), (2, 2)), ((1, 3), (1, 3)), ((3, 1), (2, 3, 4)), ((2, 3), (1, 2, 3))):
        case(f"broadcast {source} {target} {suffix}", "nn.broadcast %0 : {t0} -> {t}", [rand(*source, dtype=dtype)], lambda x, s=target: x.expand(s))
    case(f"slice {suffix}", "nn.slice %0 dim 1 start 2 step 1 : {t0} -> {t}", [rand(2, 8, 3, dtype=dtype)], lambda x: x[:, 2:6])
    case(f"slice with a step {suffix}", "nn.slice %0 dim 1 start 1 step 3 : {t0} -> {t}", [rand(2, 8, 3, dtype=dtype)], lambda x: x[:, 1::3])
    case(f"slice to nothing {suffix}", "nn.slice %0 dim 1 start 8 step 1 : {t0} -> {t}", [rand(2, 8, dtype=dtype)], lambda x: x[:, 8:])
    for start, stop, step in ((2, 6, 1), (1, 8, 3), (8, 8, 1), (0, 8, 1)):
        case(
            f"slice_scatter {start} {stop} {step} {suffix}", f"nn.slice_scatter %0, %1 dim 1 start {start} step {step} : ({{t0}}, {{t1}}) -> {{t}}",
            [rand(2, 8, 3, dtype=dtype), rand(2, len(range(start, stop, step)), 3, dtype=dtype)],
            lambda x, y, s=(start, stop, step): x.slice_scatter(y, 1, *s),
        )
    for dim in (0, 1, 2):
        case(f"concat {dim} {suffix}", f"nn.concat %0, %1, %0 dim {dim} : ({{t0}}, {{t1}}, {{t0}}) -> {{t}}", [rand(2, 3, 4, dtype=dtype), rand(2, 3, 4, dtype=dtype)], lambda x, y, d=dim: torch.cat([x, y, x], d))
    case(f"concat of one {suffix}", "nn.concat %0 dim 0 : ({t0}) -> {t}", [rand(2, 3, dtype=dtype)], lambda x: x.clone())
    case(f"concat with nothing {suffix}", "nn.concat %0, %1 dim 0 : {sig}", [rand(2, 3, dtype=dtype), rand(0, 3, dtype=dtype)], lambda x, y: torch.cat([x, y]))

ROTATE_HALF = (
    "%a = nn.slice %0 dim 1 start 0 step 1 : {t0} -> tensor<6x4xf32>\n"
    "%b = nn.slice %0 dim 1 start 4 step 1 : {t0} -> tensor<6x4xf32>\n"
    "%n = nn.neg %b : tensor<6x4xf32>\n"
    "%h = nn.concat %n, %a dim 1 : (tensor<6x4xf32>, tensor<6x4xf32>) -> {t}\n"
    "%c = nn.mul %0, %1 : ({t0}, {t1}) -> {t}\n"
    "%s = nn.mul %h, %2 : ({t}, {t2}) -> {t}\n"
    "%r = nn.add %c, %s : ({t}, {t}) -> {t}"
)
case("rotary embedding", ROTATE_HALF, [rand(6, 8), rand(8), rand(8)], lambda x, c, s: x * c + torch.cat([-x[:, 4:], x[:, :4]], 1) * s)

for dtype in (torch.float32, torch.float64, torch.bfloat16) + INTS:
    template = "nn.iota dim 1 start 2.0 step 3.0 : {t}"
    case(f"iota {short(dtype)}", template, [], lambda d=dtype: (2 + 3 * torch.arange(7)).to(d).expand(4, 7))
case("iota of fractions", "nn.iota dim 0 start 0.5 step 0.1 : {t}", [], lambda: torch.arange(9, dtype=torch.float64).mul(0.1).add(0.5).float())
case("constant", "nn.constant dense<[[1.5, 2.5], [-3.0, 4.0]]> : {t}", [], lambda: torch.tensor([[1.5, 2.5], [-3.0, 4.0]]))
case("constant plus", "%c = nn.constant dense<0.3> : tensor<f16>\n%r = nn.add %0, %c : ({t0}, tensor<f16>) -> {t}", [rand(2, 3, dtype=torch.float16)], lambda x: x + torch.tensor(0.3, dtype=torch.float16).to(x.dtype))

for index in INDICES:
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int8, torch.uint8):
        suffix = f"{short(dtype)} {short(index)}"
        case(f"embedding {suffix}", "nn.embedding %0, %1 : {sig}", [indices(10, 2, 5, dtype=index), rand(10, 6, dtype=dtype)], lambda i, w: w[i.long()])
        for dim in (0, 1):
            case(f"gather {dim} {suffix}", f"nn.gather %0, %1 dim {dim} : {{sig}}", [rand(4, 6, dtype=dtype), indices(4, 3, 5, dtype=index)], lambda x, i, d=dim: torch.gather(x, d, i.long()))
            case(f"index_select {dim} {suffix}", f"nn.index_select %0, %1 dim {dim} : {{sig}}", [rand(4, 6, 3, dtype=dtype), indices(4, 5, dtype=index)], lambda x, i, d=dim: torch.index_select(x, d, i.long()))
case("embedding of one index", "nn.embedding %0, %1 : {sig}", [indices(10), rand(10, 6)], lambda i, w: w[i])

# --- losses -----------------------------------------------------------------------------------------------------------

for dtype in FLOATS:
    for reduction in ("none", "mean", "sum"):
        for shape, target in (((8, 5), (8,)), ((2, 5, 3), (2, 3)), ((5,), ())):
            t = indices(5, *target)
            if target:
                t.view(-1)[1] = -100
            logits, weight = rand(*shape, dtype=dtype), rand(5, dtype=dtype, low=0.2, high=2)
            suffix = f"{reduction} {shape} {short(dtype)}"
            for smoothing in (0.0, 0.3):
                loss = lambda x, t, w=None, r=reduction, s=smoothing: F.cross_entropy(x, t, w, reduction=r, label_smoothing=s)
                template = f"nn.cross_entropy {reduction} %0, %1 ignore -100 smoothing {smoothing:e} : {{sig}}"
                case(f"cross_entropy smoothing {smoothing} {suffix}", template, [logits, t], loss)
                template = f"nn.cross_entropy {reduction} %0, %1 weight %2 ignore -100 smoothing {smoothing:e} : {{sig}}"
                case(f"cross_entropy weighted, smoothing {smoothing} {suffix}", template, [logits, t, weight], loss)
            nll = lambda x, t, w=None, r=reduction: F.nll_loss(x, t, w, reduction=r)
            case(f"nll_loss {suffix}", f"nn.nll_loss {reduction} %0, %1 ignore -100 : {{sig}}", [logits, t], nll)
            case(f"nll_loss weighted {suffix}", f"nn.nll_loss {reduction} %0, %1 weight %2 ignore -100 : {{sig}}", [logits, t, weight], nll)
case("cross_entropy of ignored targets", "nn.cross_entropy mean %0, %1 ignore 2 smoothing 0.0 : {sig}", [rand(2, 4), torch.tensor([2, 2])], lambda x, t: F.cross_entropy(x, t, ignore_index=2))


def difference(expected, actual):
    """What is wrong with `actual`, or None."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"is {tensor_type(actual)}, must be {tensor_type(expected)}"
    rtol, atol = TOLERANCES.get(expected.dtype, (0, 0))
    try:
        torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return None


import index_cases  # at the end: it adds its cases with the functions above
