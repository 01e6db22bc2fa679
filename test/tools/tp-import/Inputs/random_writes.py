"""Random programs that make views of tensors and write them in place compute what PyTorch computes:
random_writes.py <tp-import> <dir> <programs> [<seed>]

A program has a tensor of its own, its input and a buffer, and views of all of these. It reads and writes them in any order,
partly in a module. Several programs are imported at once, traced, exported and in core ATen."""

import copy
import random
import subprocess
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

import nneval

TOGETHER = 20
SHAPES = (4, 6), (2, 3, 4), (3, 4), (2, 2, 6), (5,), (1, 4, 3)


def views(random, t):
    """Functions that make views of a tensor like `t`."""
    dims = t.dim()
    made = [lambda t: t.unsqueeze(-1), lambda t: t[None], lambda t: t.squeeze()]
    if dims:
        d = random.randrange(dims)
        size = t.shape[d]
        start = random.randrange(size + 1)
        stop, step = random.randint(start, size), random.choice((1, 1, 2, 3))
        made += 2 * [lambda t: t[(slice(None),) * d + (slice(start, stop, step),)]]
        if size:
            index, count = random.randrange(-size, size), random.randint(1, size)
            made += [lambda t: t.select(d, index), lambda t: t.narrow(d, size - count, count), lambda t: t.chunk(2, d)[-1],
                     lambda t: t.split(count, d)[0], lambda t: t.unbind(d)[index]]
        pairs = [(n, size // n) for n in (2, 3) if size and size % n == 0]
        if pairs:
            made += 2 * [lambda t: t.unflatten(d, pairs[0])]
    if dims > 1:
        order = random.sample(range(dims), dims)
        a, b = random.sample(range(dims), 2)
        offset = random.choice((0, 0, 1, -1))
        made += [lambda t: t.permute(order), lambda t: t.transpose(a, b), lambda t: t.diagonal(offset, a, b), lambda t: t.movedim(a, b)]
        if t.is_contiguous():
            made += 2 * [lambda t: t.view(-1), lambda t: t.flatten(0, 1)]
    return made


def writes(random):
    """Functions that write a tensor; `s` is a scalar that another one gives."""
    number = random.randint(-3, 3)
    return [lambda t, s: t.zero_(), lambda t, s: t.fill_(number), lambda t, s: t.add_(s), lambda t, s: t.mul_(0.5),
            lambda t, s: t.copy_(t.clone() + s), lambda t, s: t.neg_(), lambda t, s: t.masked_fill_(t > s, number),
            lambda t, s: t.index_put_((t > s,), torch.tensor(float(number))), lambda t, s: t.clamp_(max=number), lambda t, s: t.sub_(t.sum())]


class Steps(nn.Module):
    """A part of a program: its steps append to the list of tensors or change one."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, *tensors):
        tensors, first = list(tensors), len(tensors)
        for function, i, j in self.steps:
            tensors.append(function(tensors[i])) if j is None else function(tensors[i], tensors[j].sum())
        return tensors[first:]


def make_program(random, shape):
    """Steps, made while they run on data."""
    base = torch.randn(shape)
    tensors = [base.clone(), base.clone(), base.clone() + 0]
    steps = []
    for _ in range(random.randint(5, 12)):
        i = random.randrange(len(tensors))
        t = tensors[i]
        if random.random() < 0.5:
            function, j = random.choice(views(random, t)), None
            tensors.append(function(t))
        else:
            function, j = random.choice(writes(random)), random.randrange(len(tensors))
            function(t, tensors[j].sum())
        steps.append((function, i, j))
    return steps


class Programs(nn.Module):
    def __init__(self, random):
        super().__init__()
        self.shapes = [random.choice(SHAPES) for _ in range(TOGETHER)]
        for n, shape in enumerate(self.shapes):
            self.register_buffer(f"state{n}", torch.randn(shape))
            steps = make_program(random, shape)
            cut = random.randrange(len(steps) + 1), random.randrange(len(steps) + 1)
            parts = [steps[: min(cut)], steps[min(cut) : max(cut)], steps[max(cut) :]]
            self.add_module(f"program{n}", nn.ModuleList(Steps(part) for part in parts))

    def forward(self, *inputs):
        results = []
        for n, x in enumerate(inputs):
            tensors = [x.clone(), x, getattr(self, f"state{n}")]
            for part in getattr(self, f"program{n}"):
                if part.steps:
                    tensors += part(*tensors)
            results += [t * 1 for t in tensors]
        return tuple(results)


def check(tool, stem, mode, model, inputs):
    def fresh():
        return tuple(t.clone() for t in inputs)

    after = copy.deepcopy(model)
    if mode == "trace":
        path = stem.with_suffix(".pt")
        torch.jit.trace(copy.deepcopy(model), fresh(), check_trace=False).save(path)
        after = torch.jit.load(path) # a trace is another program
    else:
        path = stem.with_suffix(".pt2")
        program = torch.export.export(copy.deepcopy(model), fresh())
        torch.export.save(program.run_decompositions() if mode == "core" else program, path)
    specs = []
    for i, t in enumerate(inputs):
        specs += ["--input", f"in{i}={'x'.join(map(str, t.shape))}xf32"]
    process = subprocess.run([tool, path, *specs, "--weights", f"{stem}.safetensors", "--mlir-print-op-generic"],
                             capture_output=True, text=True)
    if process.returncode:
        print(process.stderr)
        return False
    assigned = {}
    results = nneval.evaluate(process.stdout, f"{stem}.safetensors", inputs, assigned)
    expected = after(*fresh())
    buffers = dict(after.named_buffers())
    correct = len(results) == len(expected)
    pairs = [*zip(results, expected), *((assigned.get(name, model.get_buffer(name)), t) for name, t in buffers.items())]
    for i, (result, wanted) in enumerate(pairs):
        try:
            torch.testing.assert_close(result, wanted, equal_nan=True)
        except AssertionError as error:
            correct = False
            print(f"{stem} {mode}: value {i}: {error}")
    return correct


def main():
    tool, directory, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    warnings.filterwarnings("ignore")
    directory.mkdir(parents=True, exist_ok=True)
    correct = True
    with torch.no_grad():
        for number in range(seed, seed + count // TOGETHER):
            torch.manual_seed(number)
            model = Programs(random.Random(number)).eval()
            inputs = [torch.randn(shape) for shape in model.shapes]
            for mode in ("trace", "export", "core"):
                correct &= check(tool, directory / f"{number}-{mode}", mode, model, inputs)
    print(f"{count} programs {'agree' if correct else 'DIFFER'}")
    return 0 if correct else 1


sys.exit(main())
