"""Evaluates nn IR in MLIR's generic form with PyTorch: the oracle of the importer's
tests. Every result is checked against the type that the IR states."""

import json
import re
import struct

import torch
import torch.nn.functional as F

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
         "i64": torch.int64, "i32": torch.int32, "i1": torch.bool}
SAFETENSORS = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16,
               "I64": torch.int64, "I32": torch.int32, "BOOL": torch.bool}


def read_weights(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    start = 8 + length
    assert start % 64 == 0, "the data isn't aligned"
    weights = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        dtype = SAFETENSORS[entry["dtype"]]
        begin, end = (start + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype)
        weights[name] = flat.reshape(entry["shape"])
    return weights


def parse_type(text):
    *sizes, element = re.fullmatch(r"tensor<(.*)>", text)[1].split("x")
    return [int(size) for size in sizes], TYPES[element]


def parse_number(text, dtype):
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0x"):
        bits = int(text, 16)
        if dtype == torch.bfloat16:
            return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
        formats = {torch.float16: ("<H", "<e"), torch.float32: ("<I", "<f"), torch.float64: ("<Q", "<d")}
        pack, unpack = formats[dtype]
        return struct.unpack(unpack, struct.pack(pack, bits))[0]
    return float(text) if dtype.is_floating_point else int(text)


def parse_dense(text):
    value, type_text = re.fullmatch(r"dense<(.*)> : (tensor<.*>)", text).groups()
    shape, dtype = parse_type(type_text)
    if value.startswith('"'):
        raw = bytearray.fromhex(value[3:-1])
        if dtype == torch.bool:
            bits = [raw[i // 8] >> i % 8 & 1 for i in range(8 * len(raw))]
            count = torch.Size(shape).numel()
            return torch.tensor(bits[:count], dtype=dtype).reshape(shape)
        return torch.frombuffer(raw, dtype=dtype).reshape(shape)
    if not value:
        return torch.empty(shape, dtype=dtype)
    # Decimal digits of the largest float may round up: not so as a double.
    exact = torch.float64 if dtype.is_floating_point else dtype
    if not value.startswith("["):
        return torch.full(shape, parse_number(value, dtype), dtype=exact).to(dtype)
    numbers = re.sub(r"[\[\]]", "", value).split(",")
    return torch.tensor([parse_number(number, dtype) for number in numbers], dtype=exact).to(dtype).reshape(shape)


def parse_attributes(text):
    attributes = {}
    pattern = r'(\w+)(?: = (dense<.*?> : tensor<[^>]*>|array<i\d+(?:: ([^>]*))?>|"[^"]*"|\[[^\]]*\]|[-\w.+]+))?(?: : \w+)?(?:, |$)'
    for name, value, numbers in re.findall(pattern, text):
        if value.startswith("dense"):
            attributes[name] = parse_dense(value)
        elif value.startswith("array"):
            attributes[name] = [int(number) for number in numbers.split(",") if number.strip()]
        elif value.startswith(('"', "[")):
            attributes[name] = value.strip('"')
        elif value in ("", "unit", "true", "false"):
            attributes[name] = value != "false"
        else:
            is_float = value.startswith("0x") or "." in value or "e" in value
            attributes[name] = parse_number(value, torch.float64 if is_float else torch.int64)
    return attributes


BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum,
          "minimum": torch.minimum, "pow": torch.pow, "floor_div": torch.floor_divide,
          "remainder": torch.remainder}
LOGICAL = {name: getattr(torch, name) for name in ("logical_and", "logical_or", "logical_xor")}
UNARY = {name: getattr(torch, name) for name in
         ("neg", "abs", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tanh", "erf", "expm1", "log1p", "atan", "round",
          "sigmoid", "floor", "ceil", "logical_not", "relu")}
UNARY["silu"] = F.silu
COMPARE = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
REDUCE = [torch.sum, torch.mean, torch.amax, torch.amin, None]
LOSS_REDUCTION = ["none", "mean", "sum"]


def reduce_dims(x, kind, dims, keepdim):
    if REDUCE[kind]:
        return REDUCE[kind](x, dims, keepdim=keepdim).to(x.dtype)
    for dim in reversed(dims):
        x = x.prod(dim, keepdim=keepdim, dtype=x.dtype)
    return x


def windows(x, size, counts, a, outside=0.0):
    """(l…, s…) as (l…, k…, p…)."""
    n = len(size)
    index, borders = [], []
    for i in range(n):
        places = torch.arange(counts[i]) * a["stride"][i] + torch.arange(size[i])[:, None] * a["dilation"][i]
        missing = int(places.max()) + 1 - a["padding"][i] - x.shape[i - n]
        borders = [a["padding"][i], max(0, missing)] + borders
        index.append(places.reshape([*([1] * i), size[i], *([1] * (n - 1)), counts[i], *([1] * (n - 1 - i))]))
    return F.pad(x, borders, value=outside)[(..., *index)]


def fold(x, shape, a):
    """The reverse: the sum of elements at their places."""
    n = len(a["stride"])
    with torch.enable_grad():
        image = torch.zeros(shape, dtype=x.dtype, requires_grad=True)
        windows(image, x.shape[-2 * n:-n], x.shape[-n:], a).backward(x)
    return image.grad


SCATTER = [None, "sum", "amax", "amin"]


def scatter(x, index, source, a):
    if index.dim() == 1:
        at = [-1 if dim == a["dim"] else 1 for dim in range(x.dim())]
        index = index.reshape(at).expand(source.shape)
    kind = SCATTER[a["kind"]]
    if not kind:
        return x.scatter(a["dim"], index.long(), source)
    return x.scatter_reduce(a["dim"], index.long(), source, kind)


def get_groups(bounds):
    return zip(bounds.tolist(), bounds.tolist()[1:])


def run_op(name, x, a, shape, dtype, weights):
    """One op with operands x and attributes a; `shape` and `dtype` are those of its first result."""
    if name in BINARY:
        assert x[0].dtype == x[1].dtype != torch.bool
        return BINARY[name](*x)
    if name in LOGICAL:
        assert x[0].dtype == x[1].dtype == torch.bool
        return LOGICAL[name](*x)
    if name in UNARY:
        return UNARY[name](x[0])
    match name:
        case "div":
            return torch.div(*x, rounding_mode=None if dtype.is_floating_point else "trunc")
        case "matmul":
            return torch.matmul(*x)
        case "linear":
            return F.linear(*x)
        case "convolution":
            n = len(a["stride"])
            columns = windows(x[0], x[1].shape[-n:], shape[-n:], a).flatten(-n).flatten(-n - 2, -2)
            return (x[1].flatten(-n - 1) @ columns).reshape(shape)
        case "windows":
            n = len(a["stride"])
            return windows(x[0], shape[-2 * n:-n], shape[-n:], a, a["outside"])
        case "fold":
            return fold(x[0], shape, a)
        case "pool":
            n = len(a["stride"])
            is_max = a["kind"] == 2
            elements = windows(x[0], a["size"], shape[-n:], a, -float("inf") if is_max else 0.0)
            return (torch.amax if is_max else torch.sum)(elements, tuple(range(-2 * n, -n)))
        case "stop_gradient":
            return x[0]
        case "gelu":
            return F.gelu(x[0], approximate="tanh" if a.get("tanh") else "none")
        case "cast":
            return x[0].to(dtype)
        case "compare":
            assert x[0].dtype == x[1].dtype
            return COMPARE[a["predicate"]](*x)
        case "where":
            assert x[1].dtype == x[2].dtype
            return torch.where(*x)
        case "reshape":
            return x[0].reshape(shape)
        case "transpose":
            return x[0].permute(a["permutation"])
        case "broadcast":
            return x[0].expand(shape)
        case "slice":
            picks = a["start"] + a["step"] * torch.arange(shape[a["dim"]])
            return x[0].index_select(a["dim"], picks)
        case "slice_scatter":
            picks = a["start"] + a["step"] * torch.arange(x[1].shape[a["dim"]])
            return x[0].index_copy(a["dim"], picks, x[1])
        case "concat":
            return torch.cat(x, a["dim"])
        case "gather":
            return torch.gather(x[0], a["dim"], x[1].long())
        case "index_select":
            return torch.index_select(x[0], a["dim"], x[1])
        case "sort":
            found = torch.sort(x[0], dim=a["dim"], descending=bool(a.get("descending")), stable=True)
            return tuple(each.narrow(a["dim"], 0, a["count"]) for each in found)
        case "cumsum":
            x = x[0].flip(a["dim"]) if a.get("reverse") else x[0]
            sums = x.cumsum(a["dim"], dtype=dtype)
            return sums.flip(a["dim"]) if a.get("reverse") else sums
        case "scatter":
            return scatter(*x, a)
        case "grouped_matmul":
            rows = [x[0][begin:end] @ x[1][i] for i, (begin, end) in enumerate(get_groups(x[2]))]
            return F.pad(torch.cat(rows), (0, 0, int(x[2][0]), shape[0] - int(x[2][-1])))
        case "grouped_outer_sum":
            return torch.stack([x[0][begin:end].T @ x[1][begin:end] for begin, end in get_groups(x[2])])
        case "embedding":
            return F.embedding(*x)
        case "constant":
            return a["value"]
        case "iota":
            numbers = (a["start"] + torch.arange(shape[a["dim"]]).double() * a["step"]).to(dtype)
            return numbers.reshape([-1 if i == a["dim"] else 1 for i in range(len(shape))]).expand(shape)
        case "parameter":
            return weights[a["fqn"]]
        case "softmax" | "log_softmax":
            return getattr(torch, name)(x[0], a["dim"])
        case "layer_norm":
            _, has_weight, has_bias = a["operandSegmentSizes"]
            weight = x[1] if has_weight else None
            return F.layer_norm(x[0], x[0].shape[-a["normalized"]:], weight, x[-1] if has_bias else None, a["eps"])
        case "rms_norm":
            return F.rms_norm(x[0], x[0].shape[-a["normalized"]:], x[1] if x[1:] else None, a["eps"])
        case "reduce":
            return reduce_dims(x[0], a["kind"], a["dims"], bool(a.get("keepdim")))
        case "argmax":
            return torch.argmax(x[0], a["dim"], keepdim=bool(a.get("keepdim")))
        case "attention":
            return F.scaled_dot_product_attention(*x[:3], attn_mask=x[3] if x[3:] else None, scale=a["scale"],
                                                  is_causal=bool(a.get("causal")),
                                                  enable_gqa=x[0].shape[-3] != x[1].shape[-3])
        case "cross_entropy":
            return F.cross_entropy(*x, ignore_index=a["ignore_index"], label_smoothing=a["label_smoothing"],
                                   reduction=LOSS_REDUCTION[a["reduction"]])
        case "nll_loss":
            return F.nll_loss(*x, ignore_index=a["ignore_index"], reduction=LOSS_REDUCTION[a["reduction"]])
    raise ValueError(f"no op 'nn.{name}'")


OP = re.compile(r'(?:(%\w+)(?::\d+)? = )?"(\w+)\.(\w+)"\(([^)]*)\)(.*)$')


def evaluate(text, weights_path, inputs, assigned=None):
    """The results of @main; puts what it assigns into `assigned`."""
    weights = read_weights(weights_path)
    values, modules, results = {}, [], []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("^bb0"):
            names = re.findall(r"(%\w+): (tensor<[^>]*>)", line)
            outer = [values[name] for name in modules[-1]["operands"]] if modules else inputs
            for (name, type_text), value in zip(names, outer, strict=True):
                assert parse_type(type_text) == (list(value.shape), value.dtype), line
                values[name] = value
            continue
        if re.match(r"}\) (\{.*\} )?:", line) and modules:
            module = modules.pop()
            yielded = [values[name] for name in module["yielded"]]
            for i, value in enumerate(yielded):
                values[f"{module['result']}#{i}"] = value
            if len(yielded) == 1:
                values[module["result"]] = yielded[0]
            continue
        match = OP.match(line)
        if not match:
            continue
        result, dialect, name, operand_text, rest = match.groups()
        operands = [operand.strip() for operand in operand_text.split(",") if operand.strip()]
        if (dialect, name) == ("nn", "module"):
            modules.append({"result": result, "operands": operands})
        elif (dialect, name) == ("nn", "yield"):
            modules[-1]["yielded"] = operands
        elif (dialect, name) == ("func", "return"):
            results = [values[operand] for operand in operands]
        elif (dialect, name) == ("nn", "assign"):
            assigned[re.search(r'fqn = "([^"]*)"', rest)[1]] = values[operands[0]]
        elif dialect == "nn":
            properties = re.search(r"<\{(.*)\}>", rest)
            attributes = parse_attributes(properties[1]) if properties else {}
            types = [parse_type(text) for text in re.findall(r"tensor<[^>]*>", rest.rsplit("-> ", 1)[1])]
            found = run_op(name, [values[operand] for operand in operands], attributes, *types[0], weights)
            found = found if isinstance(found, tuple) else (found,)
            for i, (value, (shape, dtype)) in enumerate(zip(found, types, strict=True)):
                assert (list(value.shape), value.dtype) == (shape, dtype), f"{line}: {value.shape} {value.dtype}"
                values[f"{result}#{i}"] = value
            values[result] = found[0]
    return results
