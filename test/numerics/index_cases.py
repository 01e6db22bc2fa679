"""The cases of sorts, scans, writes at computed indices, and products of groups of rows; see cases.py, which imports this."""

import math

import torch
import torch.nn.functional as F

from cases import FLOATS, INDICES, INTS, case, generator, indices, rand, short

# --- sorting, scans, writes at indices --------------------------------------------------------------------------------

for dtype in FLOATS + INTS:
    suffix = short(dtype)
    for dim, count, word in ((0, 3, ""), (1, 5, "descending "), (1, 2, "descending "), (2, 4, ""), (2, 1, "descending "), (1, 0, "")):
        x = rand(3, 5, 4, dtype=dtype)
        if dtype in FLOATS:
            x = x.mul(2).round().div(2)  # with equal elements
        def sort(x, d=dim, k=count, w=word, i=0):
            return torch.sort(x, dim=d, descending=bool(w), stable=True)[i].narrow(d, 0, k)

        shape = "x".join(str(count if d == dim else size) for d, size in enumerate(x.shape))
        for i, names in enumerate(("%r, %i", "%v, %r")):
            result = "{t}, tensor<" + shape + "xi64>" if i == 0 else f"tensor<{shape}x{suffix}>, {{t}}"
            empty = "" if count else " empty"
            case(
                f"sort{empty} {word}{dim} {count} {suffix} result {i}",
                f"{names} = nn.sort {word}%0 dim {dim} count {count} : {{t0}} -> ({result})",
                [x],
                lambda x, sort=sort, i=i: sort(x, i=i),
            )
    for dim, word in ((0, ""), (1, ""), (2, ""), (1, "reverse "), (2, "reverse ")):
        def cumsum(x, d=dim, w=word):
            return x.flip(d).cumsum(d, dtype=x.dtype).flip(d) if w else x.cumsum(d, dtype=x.dtype)

        case(f"cumsum {word}{dim} {suffix}", f"nn.cumsum {word}%0 dim {dim} : {{t}}", [rand(3, 5, 4, dtype=dtype)], cumsum)
x = torch.tensor([[1.0, math.nan, -math.inf, 0.0, -0.0, math.inf, math.nan, 1.0]])
for word in ("", "descending "):
    case(
        f"sort {word}of special values",
        f"%v, %r = nn.sort {word}%0 dim 1 count 8 : {{t0}} -> ({{t0}}, {{t}})",
        [x],
        lambda x, w=word: torch.sort(x, descending=bool(w), stable=True)[1],
    )
case("cumsum of nothing", "nn.cumsum %0 dim 1 : {t}", [rand(3, 0)], lambda x: x.cumsum(1))

SCATTER = {"copy": None, "add": "sum", "max": "amax", "min": "amin"}


def scatter(x, i, s, dim, kind):
    i = i.long()
    if i.dim() == 1:
        i = i.reshape([-1 if d == dim else 1 for d in range(x.dim())]).expand(s.shape)
    return x.scatter_reduce(dim, i, s, SCATTER[kind]) if SCATTER[kind] else x.scatter(dim, i, s)


def distinct(bound, *shape, dim, dtype=torch.int64):
    """Indices that differ along `dim`; PyTorch leaves open which of equal ones counts."""
    full = list(shape)
    full[dim] = bound
    return torch.rand(full, generator=generator).argsort(dim).narrow(dim, 0, shape[dim]).to(dtype)


for index in INDICES:
    for dtype in FLOATS + (torch.int64, torch.int8):
        for kind in SCATTER:
            function = lambda d, k=kind: lambda x, i, s: scatter(x, i, s, d, k)
            for dim, shape in ((0, (3, 4)), (1, (5, 2)), (1, (3, 6))):
                i = distinct(5 if dim == 0 else 6, *shape, dim=dim, dtype=index) if kind == "copy" else indices(5, *shape, dtype=index)
                case(
                    f"scatter {kind} {dim} {shape} {short(dtype)} {short(index)}",
                    f"nn.scatter {kind} %0, %1, %2 dim {dim} : ({{t0}}, {{t1}}, {{t2}})",
                    [rand(5, 6, dtype=dtype), i, rand(*shape, dtype=dtype)],
                    function(dim),
                )
            for dim in (0, 1, 2):
                i = distinct(4, 3, dim=0, dtype=index) if kind == "copy" else indices(4, 3, dtype=index)
                source = [4, 4, 4]
                source[dim] = 3
                case(
                    f"scatter {kind} slices {dim} {short(dtype)} {short(index)}",
                    f"nn.scatter {kind} %0, %1, %2 dim {dim} : ({{t0}}, {{t1}}, {{t2}})",
                    [rand(4, 4, 4, dtype=dtype), i, rand(*source, dtype=dtype)],
                    function(dim),
                )
for dtype in (torch.bool, torch.uint8):
    i = torch.tensor([2, 0])
    case(f"scatter copy slices {short(dtype)}", "nn.scatter copy %0, %1, %2 dim 0 : ({t0}, {t1}, {t2})", [rand(4, 3, dtype=dtype), i, rand(2, 3, dtype=dtype)], lambda x, i, s: x.index_copy(0, i, s))
case("scatter of nothing", "nn.scatter add %0, %1, %2 dim 0 : ({t0}, {t1}, {t2})", [rand(4, 3), indices(4, 0), rand(0, 3)], lambda x, i, s: x.index_add(0, i, s))

# --- products of groups -----------------------------------------------------------------------------------------------


def get_groups(bounds):
    return list(zip(bounds.tolist(), bounds.tolist()[1:]))


def grouped_matmul(x, w, bounds):
    rows = [x[begin:end] @ w[i] for i, (begin, end) in enumerate(get_groups(bounds))]
    return F.pad(torch.cat(rows), (0, 0, int(bounds[0]), x.shape[0] - int(bounds[-1])))


def grouped_outer_sum(x, y, bounds):
    return torch.stack([x[begin:end].T @ y[begin:end] for begin, end in get_groups(bounds)])


for dtype in FLOATS:
    t = short(dtype)
    for bounds in ([0, 3, 3, 7, 9], [0, 0, 0, 0, 9], [2, 5, 5, 5, 6], [0, 0, 0, 0, 0]):
        for index in INDICES:
            x, w, bounds = rand(9, 6, dtype=dtype), rand(4, 6, 5, dtype=dtype), torch.as_tensor(bounds, dtype=index)
            suffix = f"{t} {bounds.tolist()} {short(index)}"
            case(f"grouped_matmul {suffix}", "nn.grouped_matmul %0, %1 bounds %2 : {sig}", [x, w, bounds], grouped_matmul)
            inputs = [x, rand(9, 5, dtype=dtype), bounds]
            case(f"grouped_outer_sum {suffix}", "nn.grouped_outer_sum %0, %1 bounds %2 : {sig}", inputs, grouped_outer_sum)
    bounds = torch.tensor([0, 2, 4, 7, 9])
    case(
        f"grouped_matmul of transposed operands {t}",
        f"%a = nn.transpose %0 [1, 0] : {{t0}} -> tensor<9x6x{t}>\n"
        f"%b = nn.transpose %1 [0, 2, 1] : {{t1}} -> tensor<4x6x5x{t}>\n"
        f"%r = nn.grouped_matmul %a, %b bounds %2 : (tensor<9x6x{t}>, tensor<4x6x5x{t}>, {{t2}}) -> {{t}}",
        [rand(6, 9, dtype=dtype), rand(4, 5, 6, dtype=dtype), bounds],
        lambda x, w, bounds: grouped_matmul(x.T, w.mT, bounds),
    )
    case(
        f"grouped_matmul, groups in the last dimension {t}",
        f"%b = nn.transpose %1 [2, 1, 0] : {{t1}} -> tensor<4x6x5x{t}>\n"
        f"%r = nn.grouped_matmul %0, %b bounds %2 : ({{t0}}, tensor<4x6x5x{t}>, {{t2}}) -> {{t}}",
        [rand(9, 6, dtype=dtype), rand(5, 6, 4, dtype=dtype), bounds],
        lambda x, w, bounds: grouped_matmul(x, w.permute(2, 1, 0), bounds),
    )
