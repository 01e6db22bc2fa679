"""Pieces of programs in upstream dialects, and what PyTorch computes for them.

In the IR of a case, `%@0`, `%@1`, … are its inputs, `%@r`, `%@r1`, … its results; `@` makes a name the case's own.
"""

import dataclasses
import functools
import operator

import torch

from cases import tensor_type

CASES = []
GENERATOR = torch.Generator().manual_seed(5)


@dataclasses.dataclass
class Case:
    name: str
    inputs: list
    ir: str
    expected: list
    exact: bool = False
    # What all inputs and results are placed as, instead of at random.
    placement: str = None


def rand(*shape):
    return torch.rand(shape, generator=GENERATOR) * 2 - 1


def randint(low, high, shape, dtype=torch.int32):
    return torch.randint(low, high, shape, generator=GENERATOR, dtype=dtype)


def add(name, inputs, ir, *expected, exact=False, placement=None):
    """`{t0}`, `{t1}`, … stand for the inputs' types, `{t}` for the result's."""
    types = {f"t{i}": tensor_type(value) for i, value in enumerate(inputs)}
    types |= {f"r{i}": tensor_type(value) for i, value in enumerate(expected)}
    types["t"] = types["r0"]
    for key, type in types.items():
        ir = ir.replace("{" + key + "}", type)
    CASES.append(Case(name, list(inputs), ir, [value.contiguous() for value in expected], exact, placement))


def fill(name, type, value="0.0"):
    """A tensor `%@<name>` of `type`, all of one value."""
    element = type[type.rindex("x") + 1 : -1] if "x" in type else type[7:-1]
    return (
        f"%@{name}_v = arith.constant {value} : {element}\n"
        f"%@{name}_e = tensor.empty() : {type}\n"
        f"%@{name} = linalg.fill ins(%@{name}_v : {element}) outs(%@{name}_e : {type}) -> {type}\n"
    )


# --- linalg -----------------------------------------------------------------------------------------------------------

x, w, b = rand(8, 12), rand(12, 6), rand(6)
add("matmul", [x, w], fill("f", "tensor<8x6xf32>") + "%@r = linalg.matmul ins(%@0, %@1 : {t0}, {t1}) outs(%@f : {t}) -> {t}", x @ w)

c = rand(8, 6)
add("matmul on an initial value", [x, w, c], "%@r = linalg.matmul ins(%@0, %@1 : {t0}, {t1}) outs(%@2 : {t}) -> {t}", x @ w + c)

w2 = rand(6, 10)
add(
    "mlp",
    [x, w, b, w2],
    fill("f", "tensor<8x6xf32>")
    + fill("g", "tensor<8x10xf32>")
    + """%@h = linalg.matmul ins(%@0, %@1 : {t0}, {t1}) outs(%@f : tensor<8x6xf32>) -> tensor<8x6xf32>
%@a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%@h, %@2 : tensor<8x6xf32>, {t2}) outs(%@f_e : tensor<8x6xf32>) {
^bb0(%in: f32, %bias: f32, %out: f32):
  %s = arith.addf %in, %bias : f32
  %m = arith.maximumf %s, %@f_v : f32
  linalg.yield %m : f32
} -> tensor<8x6xf32>
%@r = linalg.matmul ins(%@a, %@3 : tensor<8x6xf32>, {t3}) outs(%@g : {t}) -> {t}""",
    torch.relu(x @ w + b) @ w2,
)

q, k, v = rand(4, 6, 8), rand(4, 6, 8), rand(4, 6, 8)
add(
    "attention",
    [q, k, v],
    fill("f", "tensor<4x6x6xf32>")
    + fill("mi", "tensor<4x6xf32>", "0xFF800000")
    + fill("si", "tensor<4x6xf32>")
    + fill("g", "tensor<4x6x8xf32>")
    + """%@s = linalg.generic {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>,
    affine_map<(b, i, j, d) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%@0, %@1 : {t0}, {t1}) outs(%@f : tensor<4x6x6xf32>) {
^bb0(%l: f32, %n: f32, %acc: f32):
  %p = arith.mulf %l, %n : f32
  %t = arith.addf %acc, %p : f32
  linalg.yield %t : f32
} -> tensor<4x6x6xf32>
%@c = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
    iterator_types = ["parallel", "parallel", "parallel"]} ins(%@s : tensor<4x6x6xf32>) outs(%@f_e : tensor<4x6x6xf32>) {
^bb0(%in: f32, %out: f32):
  %i = linalg.index 1 : index
  %j = linalg.index 2 : index
  %past = arith.cmpi ule, %j, %i : index
  %m = arith.select %past, %in, %@mi_v : f32
  linalg.yield %m : f32
} -> tensor<4x6x6xf32>
%@m = linalg.reduce { arith.maximumf } ins(%@c : tensor<4x6x6xf32>) outs(%@mi : tensor<4x6xf32>) dimensions = [2]
%@x = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>,
    affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%@c, %@m : tensor<4x6x6xf32>, tensor<4x6xf32>) outs(%@f_e : tensor<4x6x6xf32>) {
^bb0(%in: f32, %max: f32, %out: f32):
  %d = arith.subf %in, %max : f32
  %e = math.exp %d : f32
  linalg.yield %e : f32
} -> tensor<4x6x6xf32>
%@t = linalg.reduce { arith.addf } ins(%@x : tensor<4x6x6xf32>) outs(%@si : tensor<4x6xf32>) dimensions = [2]
%@o = linalg.batch_matmul ins(%@x, %@2 : tensor<4x6x6xf32>, {t2}) outs(%@g : {t}) -> {t}
%@r = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i)>,
    affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%@o, %@t : {t}, tensor<4x6xf32>) outs(%@g_e : {t}) {
^bb0(%in: f32, %sum: f32, %out: f32):
  %d = arith.divf %in, %sum : f32
  linalg.yield %d : f32
} -> {t}""",
    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0),
)

y = rand(8, 6, 4)
for combiner, torch_reduce in (
    ("arith.addf", lambda value: value.sum(1)),
    ("arith.mulf", lambda value: value.prod(1)),
    ("arith.maximumf", lambda value: value.amax(1)),
    ("arith.minimumf", lambda value: value.amin(1)),
):
    init = rand(8, 4)
    stacked = torch.cat([init[:, None], y], 1)
    add(
        f"reduce {combiner} on an initial value",
        [y, init],
        f"%@r = linalg.reduce {{ {combiner} }} ins(%@0 : {{t0}}) outs(%@1 : {{t}}) dimensions = [1]",
        torch_reduce(stacked),
    )

n = randint(-9, 9, (6, 8))
for combiner, expected in (
    ("arith.addi", n.sum(1, dtype=torch.int32)),
    ("arith.maxsi", n.amax(1)),
    ("arith.ori", torch.tensor([functools.reduce(operator.or_, row) for row in n.tolist()], dtype=torch.int32)),
):
    start = "-2147483648" if combiner == "arith.maxsi" else "0"
    add(
        f"reduce {combiner}",
        [n],
        fill("f", "tensor<6xi32>", start) + f"%@r = linalg.reduce {{ {combiner} }} ins(%@0 : {{t0}}) outs(%@f : {{t}}) dimensions = [1]",
        expected,
        exact=True,
    )

add(
    "two reductions in one op",
    [x],
    fill("f", "tensor<8xf32>")
    + """%@r, %@r1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%@0 : {t0}) outs(%@f, %@f : {t}, {t}) {
^bb0(%in: f32, %sum: f32, %squares: f32):
  %s = arith.addf %sum, %in : f32
  %p = arith.mulf %in, %in : f32
  %q = arith.addf %squares, %p : f32
  linalg.yield %s, %q : f32, f32
} -> ({t}, {t})""",
    x.sum(1),
    (x * x).sum(1),
)
add(
    "arg max",
    [x],
    fill("f", "tensor<8xf32>", "0xFF800000")
    + fill("g", "tensor<8xi64>", "0")
    + """%@m, %@r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%@0 : {t0}) outs(%@f, %@g : tensor<8xf32>, {t}) {
^bb0(%in: f32, %max: f32, %at: i64):
  %j = linalg.index 1 : index
  %n = arith.index_cast %j : index to i64
  %more = arith.cmpf ogt, %in, %max : f32
  %m = arith.select %more, %in, %max : f32
  %i = arith.select %more, %n, %at : i64
  linalg.yield %m, %i : f32, i64
} -> (tensor<8xf32>, {t})""",
    x.argmax(1),
    exact=True,
)
add(
    "weights by position",
    [x],
    fill("f", "tensor<8xf32>")
    + """%@r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%@0 : {t0}) outs(%@f : {t}) {
^bb0(%in: f32, %acc: f32):
  %j = linalg.index 1 : index
  %n = arith.index_cast %j : index to i32
  %s = arith.sitofp %n : i32 to f32
  %p = arith.mulf %in, %s : f32
  %a = arith.addf %acc, %p : f32
  linalg.yield %a : f32
} -> {t}""",
    (x * torch.arange(12)).sum(1),
)
u = rand(6, 6)
add(
    "product of a product",
    [x, w, u],
    fill("f", "tensor<8x6xf32>")
    + "%@h = linalg.matmul ins(%@0, %@1 : {t0}, {t1}) outs(%@f : {t}) -> {t}\n"
    + "%@r = linalg.matmul ins(%@h, %@2 : {t}, {t2}) outs(%@f : {t}) -> {t}",
    x @ w @ u,
)
add("matvec", [w, b], fill("f", "tensor<12xf32>") + "%@r = linalg.matvec ins(%@0, %@1 : {t0}, {t1}) outs(%@f : {t}) -> {t}", w @ b)
add("dot", [b, u[0].clone()], fill("f", "tensor<f32>") + "%@r = linalg.dot ins(%@0, %@1 : {t0}, {t1}) outs(%@f : {t}) -> {t}", b @ u[0])
add("transpose", [y], "%@e = tensor.empty() : {t}\n%@r = linalg.transpose ins(%@0 : {t0}) outs(%@e : {t}) permutation = [2, 0, 1]", y.permute(2, 0, 1))
add("broadcast", [w], "%@e = tensor.empty() : {t}\n%@r = linalg.broadcast ins(%@0 : {t0}) outs(%@e : {t}) dimensions = [1]", w[:, None].expand(12, 4, 6))
add("map", [x, x.abs()], "%@e = tensor.empty() : {t}\n%@r = linalg.map { arith.subf } ins(%@0, %@1 : {t0}, {t1}) outs(%@e : {t})", x - x.abs())
add("softmax", [y], "%@e = tensor.empty() : {t}\n%@r = linalg.softmax dimension(1) ins(%@0 : {t0}) outs(%@e : {t}) -> {t}", y.softmax(1))
add("elementwise", [x], "%@e = tensor.empty() : {t}\n%@r = linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%@0 : {t0}) outs(%@e : {t}) -> {t}", x.exp())
image, kernel = rand(2, 6, 6, 4), rand(3, 3, 4, 8)
add(
    "convolution",
    [image, kernel],
    fill("f", "tensor<2x4x4x8xf32>") + "%@r = linalg.conv_2d_nhwc_hwcf ins(%@0, %@1 : {t0}, {t1}) outs(%@f : {t}) -> {t}",
    torch.nn.functional.conv2d(image.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1)).permute(0, 2, 3, 1),
)
add(
    "pooling",
    [image],
    fill("f", "tensor<2x5x5x4xf32>")
    + "%@w = tensor.empty() : tensor<2x2xf32>\n%@r = linalg.pooling_nhwc_sum ins(%@0, %@w : {t0}, tensor<2x2xf32>) outs(%@f : {t}) -> {t}",
    torch.nn.functional.avg_pool2d(image.permute(0, 3, 1, 2), 2, 1).permute(0, 2, 3, 1) * 4,
)
add("pack", [x], "%@e = tensor.empty() : {t}\n%@r = linalg.pack %@0 inner_dims_pos = [1] inner_tiles = [4] into %@e : {t0} -> {t}", x.reshape(8, 3, 4))
add(
    "pack in another order",
    [y],
    "%@e = tensor.empty() : {t}\n%@r = linalg.pack %@0 outer_dims_perm = [2, 0, 1] inner_dims_pos = [1, 0] inner_tiles = [3, 2] into %@e : {t0} -> {t}",
    y.reshape(4, 2, 2, 3, 4).permute(4, 0, 2, 3, 1),
)
tiles = rand(8, 3, 4)
add("unpack", [tiles], "%@e = tensor.empty() : {t}\n%@r = linalg.unpack %@0 inner_dims_pos = [1] inner_tiles = [4] into %@e : {t0} -> {t}", tiles.reshape(8, 12))
add(
    "what a body reads",
    [x, b],
    "%@c1 = arith.constant 1 : index\n%@n = tensor.extract %@1[%@c1] : {t1}\n%@e = tensor.empty() : {t}\n"
    + """%@r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%@0 : {t0}) outs(%@e : {t}) {
^bb0(%in: f32, %out: f32):
  %i = linalg.index 0 : index
  %six = arith.constant 6 : index
  %at = arith.remui %i, %six : index
  %f = tensor.extract %@1[%at] : {t1}
  %p = arith.mulf %in, %@n : f32
  %s = arith.addf %p, %f : f32
  linalg.yield %s : f32
} -> {t}""",
    x * b[1] + b[torch.arange(8) % 6][:, None],
)

# --- tensor -----------------------------------------------------------------------------------------------------------

add("expand_shape", [x], "%@r = tensor.expand_shape %@0 [[0, 1], [2, 3]] output_shape [4, 2, 3, 4] : {t0} into {t}", x.reshape(4, 2, 3, 4))
add("collapse_shape", [y], "%@r = tensor.collapse_shape %@0 [[0], [1, 2]] : {t0} into {t}", y.reshape(8, 24))
add("extract_slice", [x], "%@r = tensor.extract_slice %@0[2, 4][4, 8][1, 1] : {t0} to {t}", x[2:6, 4:12], exact=True)
add("extract_slice of a row", [y], "%@r = tensor.extract_slice %@0[0, 2, 0][8, 1, 4][1, 1, 1] : {t0} to {t}", y[:, 2], exact=True)
add("extract_slice with steps", [x], "%@r = tensor.extract_slice %@0[1, 0][4, 12][2, 1] : {t0} to {t}", x[1::2], exact=True)
at = torch.tensor([3], dtype=torch.int64)
add(
    "extract_slice at a place that is computed",
    [x, at],
    "%@z = arith.constant 0 : index\n%@i = tensor.extract %@1[%@z] : {t1}\n%@j = arith.index_cast %@i : i64 to index\n"
    "%@r = tensor.extract_slice %@0[%@j, 0][4, 12][1, 1] : {t0} to {t}",
    x[3:7],
    exact=True,
)
part = rand(8, 4)
inserted = x.clone()
inserted[:, 2:6] = part
add("insert_slice", [part, x], "%@r = tensor.insert_slice %@0 into %@1[0, 2][8, 4][1, 1] : {t0} into {t1}", inserted, exact=True)
row = rand(12)
inserted = x.clone()
inserted[5] = row
add("insert_slice of a row", [row, x], "%@r = tensor.insert_slice %@0 into %@1[5, 0][1, 12][1, 1] : {t0} into {t1}", inserted, exact=True)
add("concat", [x, part], "%@r = tensor.concat dim(1) %@0, %@1 : ({t0}, {t1}) -> {t}", torch.cat([x, part], 1), exact=True)
heads = rand(8, 12)
add(
    "parts of one",
    [heads],
    "%@a = tensor.extract_slice %@0[0, 0][8, 4][1, 1] : {t0} to tensor<8x4xf32>\n%@b = tensor.extract_slice %@0[0, 4][8, 4][1, 1] : {t0} to tensor<8x4xf32>\n"
    "%@c = tensor.extract_slice %@0[0, 8][8, 4][1, 1] : {t0} to tensor<8x4xf32>\n%@d = arith.mulf %@a, %@b : tensor<8x4xf32>\n"
    "%@r = tensor.concat dim(1) %@d, %@c : (tensor<8x4xf32>, tensor<8x4xf32>) -> {t}",
    torch.cat([heads[:, :4] * heads[:, 4:8], heads[:, 8:]], 1),
)
add(
    "pad",
    [x],
    "%@z = arith.constant 2.0 : f32\n%@r = tensor.pad %@0 low[0, 1] high[0, 3] {\n^bb0(%i: index, %j: index):\n  tensor.yield %@z : f32\n} : {t0} to {t}",
    torch.nn.functional.pad(x, (1, 3), value=2.0),
    exact=True,
)
add(
    "generate",
    [x],
    "%@g = tensor.generate {\n^bb0(%i: index, %j: index):\n  %c = arith.constant 12 : index\n  %p = arith.muli %i, %c : index\n  %s = arith.addi %p, %j : index\n"
    "  %n = arith.index_cast %s : index to i32\n  %f = arith.sitofp %n : i32 to f32\n  tensor.yield %f : f32\n} : {t}\n%@r = arith.addf %@0, %@g : {t}",
    x + torch.arange(96.0).reshape(8, 12),
)
add("splat", [x, torch.tensor(3.0)], "%@v = tensor.extract %@1[] : {t1}\n%@s = tensor.splat %@v : {t}\n%@r = arith.mulf %@0, %@s : {t}", x * 3)
add(
    "dim",
    [x],
    "%@c = arith.constant 1 : index\n%@d = tensor.dim %@0, %@c : {t0}\n%@i = arith.index_cast %@d : index to i64\n%@r = tensor.from_elements %@i : {t}",
    torch.tensor([12]),
    exact=True,
)

# --- segments, split each on its own ----------------------------------------------------------------------------------

SEGMENTS = "<@mesh, [{}, {tp|4, 8} ]>"
add(
    "index in segments",
    [x],
    """%@r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%@0 : {t0}) {
^bb0(%in: f32):
  %j = linalg.index 1 : index
  %n = arith.index_cast %j : index to i32
  %s = arith.sitofp %n : i32 to f32
  %p = arith.mulf %in, %s : f32
  linalg.yield %p : f32
} -> {t}""",
    x * torch.arange(12),
    placement=SEGMENTS,
)
add(
    "generate in segments",
    [x],
    "%@g = tensor.generate {\n^bb0(%i: index, %j: index):\n  %n = arith.index_cast %j : index to i32\n  %f = arith.sitofp %n : i32 to f32\n"
    "  tensor.yield %f : f32\n} : {t}\n%@r = arith.mulf %@0, %@g : {t}",
    x * torch.arange(12),
    placement=SEGMENTS,
)
steps = ", ".join(["[" + ", ".join(f"{v}.0" for v in range(12)) + "]"] * 8)
add("constant in segments", [x], f"%@c = arith.constant dense<[{steps}]> : {{t}}\n%@r = arith.mulf %@0, %@c : {{t}}", x * torch.arange(12), placement=SEGMENTS)
add(
    "a segment taken, and put back",
    [x],
    "%@a = tensor.extract_slice %@0[0, 4][8, 8][1, 1] : {t0} to tensor<8x8xf32>\n%@b = math.exp %@a : tensor<8x8xf32>\n"
    "%@r = tensor.insert_slice %@b into %@0[0, 4][8, 8][1, 1] : tensor<8x8xf32> into {t0}",
    torch.cat([x[:, :4], x[:, 4:].exp()], 1),
    placement=SEGMENTS,
)

# --- arith, math ------------------------------------------------------------------------------------------------------

z = rand(8, 12)
for name, expected in (("addf", x + z), ("subf", x - z), ("mulf", x * z), ("divf", x / (z + 2))):
    divisor = z + 2 if name == "divf" else z
    add(f"arith.{name}", [x, divisor], f"%@r = arith.{name} %@0, %@1 : {{t}}", expected)
add("arith.negf", [x], "%@r = arith.negf %@0 : {t}", -x)
add("arith.addi", [n, n * 3], "%@r = arith.addi %@0, %@1 : {t}", n * 4, exact=True)
add("arith.extf", [x.to(torch.bfloat16)], "%@r = arith.extf %@0 : {t0} to {t}", x.to(torch.bfloat16).float(), exact=True)
add("arith.sitofp", [n], "%@r = arith.sitofp %@0 : {t0} to {t}", n.float(), exact=True)
add("arith.cmpf, select", [x, z], "%@c = arith.cmpf olt, %@0, %@1 : {t}\n%@r = arith.select %@c, %@0, %@1 : tensor<8x12xi1>, {t}", torch.minimum(x, z))
add(
    "select by a scalar",
    [x, z, torch.tensor(True)],
    "%@c = tensor.extract %@2[] : {t2}\n%@r = arith.select %@c, %@0, %@1 : {t}",
    x,
)
table = rand(8, 12)
values = ", ".join("[" + ", ".join(f"{v:.9e}" for v in line) + "]" for line in table.tolist())
add("constant", [x], f"%@c = arith.constant dense<[{values}]> : {{t}}\n%@r = arith.addf %@0, %@c : {{t}}", x + table)
add(
    "sum of products",
    [x, w, c],
    fill("f", "tensor<8x6xf32>") + "%@h = linalg.matmul ins(%@0, %@1 : {t0}, {t1}) outs(%@f : {t}) -> {t}\n%@n = arith.negf %@h : {t}\n%@r = arith.subf %@n, %@2 : {t}",
    -(x @ w) - c,
)
add("math.exp", [x], "%@r = math.exp %@0 : {t}", x.exp())
add("math.fma", [x, z, table], "%@r = math.fma %@0, %@1, %@2 : {t}", x * z + table)
add("math.rsqrt", [x.abs() + 0.5], "%@r = math.rsqrt %@0 : {t}", (x.abs() + 0.5).rsqrt())

# --- tosa -------------------------------------------------------------------------------------------------------------


def shape(name, *sizes):
    """A constant shape `%@<name>`."""
    return f"%@{name} = tosa.const_shape {{values = dense<{list(sizes)}> : tensor<{len(sizes)}xindex>}} : () -> !tosa.shape<{len(sizes)}>\n"


def zeros(element, *names):
    """Constants of one element 0: shifts and zero points."""
    value = "0.0" if element.startswith("f") else "0"
    return "".join(f'%@{name} = "tosa.const"() {{values = dense<{value}> : tensor<1x{element}>}} : () -> tensor<1x{element}>\n' for name in names)


wide = rand(8, 1, 4)
for name, expected in (("add", y + wide), ("sub", y - wide), ("maximum", torch.maximum(y, wide)), ("minimum", torch.minimum(y, wide))):
    add(f"tosa.{name}", [y, wide], f"%@r = tosa.{name} %@0, %@1 : ({{t0}}, {{t1}}) -> {{t}}", expected)
add("tosa.mul", [y, wide], zeros("i8", "s") + "%@r = tosa.mul %@0, %@1, %@s : ({t0}, {t1}, tensor<1xi8>) -> {t}", y * wide)
for name, expected in (("exp", y.exp()), ("tanh", y.tanh()), ("sigmoid", y.sigmoid()), ("abs", y.abs())):
    add(f"tosa.{name}", [y], f"%@r = tosa.{name} %@0 : ({{t0}}) -> {{t}}", expected)
add("tosa.clamp", [y], "%@r = tosa.clamp %@0 {min_val = -0.5 : f32, max_val = 0.25 : f32} : ({t0}) -> {t}", y.clamp(-0.5, 0.25))
add("tosa.negate", [y], zeros("f32", "a", "b") + "%@r = tosa.negate %@0, %@a, %@b : ({t0}, tensor<1xf32>, tensor<1xf32>) -> {t}", -y)
add("tosa.select", [y, wide.abs()], "%@c = tosa.greater %@0, %@1 : ({t0}, {t1}) -> tensor<8x6x4xi1>\n%@r = tosa.select %@c, %@0, %@1 : (tensor<8x6x4xi1>, {t0}, {t1}) -> {t}", torch.maximum(y, wide.abs()))
left, right = rand(2, 6, 8), rand(2, 8, 4)
add(
    "tosa.matmul",
    [left, right],
    zeros("f32", "a", "b") + "%@r = tosa.matmul %@0, %@1, %@a, %@b : ({t0}, {t1}, tensor<1xf32>, tensor<1xf32>) -> {t}",
    left @ right,
)
for name, expected in (("sum", y.sum(1, True)), ("max", y.amax(1, True)), ("min", y.amin(1, True)), ("product", y.prod(1, keepdim=True))):
    add(f"tosa.reduce_{name}", [y], f"%@r = tosa.reduce_{name} %@0 {{axis = 1 : i32}} : ({{t0}}) -> {{t}}", expected)
add("tosa.argmax", [y], "%@r = tosa.argmax %@0 {axis = 1 : i32} : ({t0}) -> {t}", y.argmax(1).int(), exact=True)
add("tosa.reshape", [y], shape("s", 8, 2, 12) + "%@r = tosa.reshape %@0, %@s : ({t0}, !tosa.shape<3>) -> {t}", y.reshape(8, 2, 12), exact=True)
add("tosa.transpose", [y], "%@r = tosa.transpose %@0 {perms = array<i32: 1, 2, 0>} : ({t0}) -> {t}", y.permute(1, 2, 0), exact=True)
add("tosa.concat", [y, wide], "%@r = tosa.concat %@0, %@1 {axis = 1 : i32} : ({t0}, {t1}) -> {t}", torch.cat([y, wide], 1), exact=True)
add("tosa.slice", [y], shape("b", 2, 0, 0) + shape("s", 4, 6, 2) + "%@r = tosa.slice %@0, %@b, %@s : ({t0}, !tosa.shape<3>, !tosa.shape<3>) -> {t}", y[2:6, :, :2], exact=True)
add(
    "tosa.pad",
    [y],
    shape("p", 0, 0, 1, 2, 0, 0) + zeros("f32", "z") + "%@r = tosa.pad %@0, %@p, %@z : ({t0}, !tosa.shape<6>, tensor<1xf32>) -> {t}",
    torch.nn.functional.pad(y, (0, 0, 1, 2)),
    exact=True,
)
add("tosa.tile", [x], shape("m", 1, 3) + "%@r = tosa.tile %@0, %@m : ({t0}, !tosa.shape<2>) -> {t}", x.repeat(1, 3), exact=True)
add("tosa.reverse", [x], "%@r = tosa.reverse %@0 {axis = 0 : i32} : ({t0}) -> {t}", x.flip(0), exact=True)
add("tosa.cast", [n], "%@r = tosa.cast %@0 : ({t0}) -> {t}", n.float(), exact=True)
rows = randint(0, 6, (8, 5))
add("tosa.gather", [y, rows], "%@r = tosa.gather %@0, %@1 : ({t0}, {t1}) -> {t}", torch.stack([block[at.long()] for block, at in zip(y, rows)]), exact=True)
filters, offsets = rand(8, 3, 3, 4), rand(8)
add(
    "tosa.conv2d",
    [image, filters, offsets],
    zeros("f32", "a", "b")
    + "%@r = tosa.conv2d %@0, %@1, %@2, %@a, %@b {acc_type = f32, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}"
    " : ({t0}, {t1}, {t2}, tensor<1xf32>, tensor<1xf32>) -> {t}",
    torch.nn.functional.conv2d(image.permute(0, 3, 1, 2), filters.permute(0, 3, 1, 2), offsets, padding=1).permute(0, 2, 3, 1),
)
depthwise = rand(3, 3, 4, 2)
add(
    "tosa.depthwise_conv2d",
    [image, depthwise, offsets],
    zeros("f32", "a", "b")
    + "%@r = tosa.depthwise_conv2d %@0, %@1, %@2, %@a, %@b {acc_type = f32, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}"
    " : ({t0}, {t1}, {t2}, tensor<1xf32>, tensor<1xf32>) -> {t}",
    torch.nn.functional.conv2d(image.permute(0, 3, 1, 2), depthwise.permute(2, 3, 0, 1).reshape(8, 1, 3, 3), offsets, groups=4).permute(0, 2, 3, 1),
)
add(
    "tosa.max_pool2d",
    [image],
    "%@r = tosa.max_pool2d %@0 {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : ({t0}) -> {t}",
    torch.nn.functional.max_pool2d(image.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1),
)
values = ", ".join("[" + ", ".join(f"{v:.9e}" for v in line) + "]" for line in table.tolist())
add("tosa.const", [x], f'%@c = "tosa.const"() {{{{values = dense<[{values}]> : {{t}}}}}} : () -> {{t}}\n%@r = tosa.add %@0, %@c : ({{t}}, {{t}}) -> {{t}}'.replace("{{", "{").replace("}}", "}"), x + table)

# --- narrow integers ---------------------------------------------------------------------------------------------------

for dtype, wide in ((torch.int8, torch.int32), (torch.int16, torch.int32), (torch.int16, torch.int64), (torch.int8, torch.int8)):
    left, right = randint(-100, 100, (8, 12), dtype), randint(-100, 100, (12, 6), dtype)
    add(
        f"matmul {dtype} to {wide}",
        [left, right],
        fill("f", tensor_type(torch.zeros(8, 6, dtype=wide)), "0") + "%@r = linalg.matmul ins(%@0, %@1 : {t0}, {t1}) outs(%@f : {t}) -> {t}",
        (left.long() @ right.long()).to(wide),
    )
for dtype in (torch.int8, torch.int16):
    narrow, other = randint(-100, 100, (8, 12), dtype), randint(-100, 100, (8, 12), dtype)
    add(f"{dtype} arith", [narrow, other], "%@p = arith.muli %@0, %@1 : {t}\n%@r = arith.maxsi %@p, %@1 : {t}", torch.maximum(narrow * other, other))
    add(
        f"{dtype} linalg.reduce",
        [narrow],
        fill("f", tensor_type(torch.zeros(12, dtype=dtype)), "-128") + "%@r = linalg.reduce {arith.maxsi} ins(%@0 : {t0}) outs(%@f : {t}) dimensions = [0]",
        narrow.amax(0),
    )
pixels = randint(0, 256, (8, 12), torch.uint8)
add("ui8 slices", [pixels], "%@r = tensor.extract_slice %@0[0, 4][8, 8][1, 1] : {t0} to {t}", pixels[:, 4:])
add("ui8 transpose", [pixels], "%@e = tensor.empty() : {t}\n%@r = linalg.transpose ins(%@0 : {t0}) outs(%@e : {t}) permutation = [1, 0]", pixels.T)
add(
    "ui8 with nn",
    [pixels, w],
    "%@f = nn.cast %@0 : {t0} -> tensor<8x12xf32>\n"
    + fill("z", "tensor<8x6xf32>")
    + "%@r = linalg.matmul ins(%@f, %@1 : tensor<8x12xf32>, {t1}) outs(%@z : {t}) -> {t}",
    pixels.float() @ w,
)

# --- lookups ----------------------------------------------------------------------------------------------------------

for element in ("index", "i64", "i32", "i8"):
    places = torch.tensor([6, 1, 4])
    constant = f"%@i = arith.constant dense<[[6], [1], [4]]> : tensor<3x1x{element}>\n"
    table, rows = rand(8, 12), rand(3, 12)
    add(
        f"gather {element}",
        [table],
        constant + f"%@r = tensor.gather %@0[%@i] gather_dims([0]) : ({{t0}}, tensor<3x1x{element}>) -> {{t}}",
        table[places],
    )
    add(
        f"gather keeps dimensions, {element}",
        [table],
        constant + f"%@r = tensor.gather %@0[%@i] gather_dims([1]) : ({{t0}}, tensor<3x1x{element}>) -> {{t}}",
        table[:, places].T.unsqueeze(2),
    )
    written = table.clone()
    written[places] = rows
    add(
        f"scatter {element}",
        [rows, table],
        constant + f"%@r = tensor.scatter %@0 into %@1[%@i] scatter_dims([0]) unique : ({{t0}}, {{t1}}, tensor<3x1x{element}>) -> {{t}}",
        written,
    )
cube, columns = rand(4, 6, 5), rand(2, 2, 6)
places = torch.tensor([[[0, 1], [2, 3]], [[3, 4], [1, 0]]])
constant = f"%@i = arith.constant dense<{places.tolist()}> : tensor<2x2x2xindex>\n"
along = (places[..., 0], slice(None), places[..., 1])
written = cube.clone()
written[along] = columns
add(
    "gather along two dimensions",
    [cube],
    constant + "%@r = tensor.gather %@0[%@i] gather_dims([0, 2]) : ({t0}, tensor<2x2x2xindex>) -> {t}",
    cube[along],
)
add(
    "scatter along two dimensions",
    [columns.reshape(2, 2, 1, 6, 1), cube],
    constant + "%@r = tensor.scatter %@0 into %@1[%@i] scatter_dims([0, 2]) unique : ({t0}, {t1}, tensor<2x2x2xindex>) -> {t}",
    written,
)
chosen = randint(0, 8, (5, 1), torch.int64)
add(
    "gather at computed indices",
    [x, chosen],
    "%@r = tensor.gather %@0[%@1] gather_dims([0]) : ({t0}, {t1}) -> {t}",
    x[chosen[:, 0]],
)

# --- scf --------------------------------------------------------------------------------------------------------------

square = rand(12, 12) / 4
add(
    "loop",
    [x, square],
    fill("f", "tensor<8x12xf32>")
    + """%@c0 = arith.constant 0 : index
%@c1 = arith.constant 1 : index
%@c3 = arith.constant 3 : index
%@r = scf.for %i = %@c0 to %@c3 step %@c1 iter_args(%a = %@0) -> {t} {
  %m = linalg.matmul ins(%a, %@1 : {t}, {t1}) outs(%@f : {t}) -> {t}
  %s = math.tanh %m : {t}
  scf.yield %s : {t}
}""",
    torch.tanh(torch.tanh(torch.tanh(x @ square) @ square) @ square),
)
for flag in (True, False):
    add(
        f"branch on {flag}",
        [x, square, torch.tensor(flag)],
        fill("f", "tensor<8x12xf32>")
        + """%@c = tensor.extract %@2[] : {t2}
%@r = scf.if %@c -> {t} {
  %m = linalg.matmul ins(%@0, %@1 : {t}, {t1}) outs(%@f : {t}) -> {t}
  scf.yield %m : {t}
} else {
  %e = math.exp %@0 : {t}
  scf.yield %e : {t}
}""",
        x @ square if flag else x.exp(),
    )

# --- with nn ----------------------------------------------------------------------------------------------------------

wt, bias = rand(10, 12), rand(10)
add(
    "nn and linalg",
    [x, wt, bias],
    "%@h = nn.linear %@0, %@1 : ({t0}, {t1}) -> {t}\n"
    + """%@b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%@h, %@2 : {t}, {t2}) outs(%@h : {t}) {
^bb0(%in: f32, %bias: f32, %out: f32):
  %s = arith.addf %in, %bias : f32
  linalg.yield %s : f32
} -> {t}
%@r = nn.softmax %@b dim 1 : {t}""",
    (x @ wt.T + bias).softmax(1),
)
