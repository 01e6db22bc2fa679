#!/usr/bin/env python3
"""The gradient of every nn op, by tp-grad and executed, beside PyTorch's.

A batch is one program: the sum over all cases of (result * a random tensor), differentiated with respect to the float
inputs. What has a kink in the random inputs, or no gradient in PyTorch, is left out by name.
"""

import argparse
import pathlib
import re
import sys
import tempfile

import torch

import cases
from ops import draw_sample, get_tool, load, run, save

generator = torch.Generator().manual_seed(7)

# The gradient of a composition in a small type is rounded at each op.
TOLERANCES = {torch.float32: (2e-4, 2e-5), torch.float64: (1e-8, 1e-9), torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1)}


def is_differentiable(case):
    return (
        case.expected.dtype in cases.FLOATS
        and any(value.dtype in cases.FLOATS for value in case.inputs)
        and not re.search("special|floor|ceil|round|no keys|empty|nothing", case.name)
    )


def get_expected(case, weight):
    """The gradients of the float inputs; None where PyTorch has none."""
    wide = [value.double() if value.dtype in cases.FLOATS else value for value in case.inputs]
    # PyTorch takes the weights of a loss as constants, and so do we.
    constant = 2 if re.match("cross_entropy|nll_loss", case.name) else len(wide)
    wanted = [
        value.clone().requires_grad_() if value.dtype in cases.FLOATS and j != constant else value
        for j, value in enumerate(wide)
    ]
    result = case.function(*wanted)
    leaves = [value for value in wanted if value.requires_grad]
    given = [torch.zeros_like(value) for value in leaves]
    if result.requires_grad:
        total = (result * weight.double()).sum()
        given = list(torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True))
    if constant < len(wide):
        given.append(torch.zeros_like(wide[constant]))
    return given


def get_program(batch, weights):
    arguments, body, total = [], ["%t = nn.constant dense<0.0> : tensor<f64>"], "%t"
    for i, (case, weight) in enumerate(zip(batch, weights)):
        for j, value in enumerate(case.inputs):
            arguments.append(f'%c{i}_{j}: {cases.tensor_type(value)} {{tp.name = "c{i}_{j}"}}')
        # An integer input, so that it gets no gradient.
        arguments.append(f'%w{i}: {cases.tensor_type(weight)} {{tp.name = "w{i}"}}')
        type = cases.tensor_type(case.expected)
        wide = cases.tensor_type(case.expected.double())
        body.append(case.ir(f"c{i}"))
        body.append(f"%f{i} = nn.cast %w{i} : {cases.tensor_type(weight)} -> {type}")
        body.append(f"%p{i} = nn.mul %c{i}_r, %f{i} : ({type}, {type}) -> {type}")
        body.append(f"%d{i} = nn.cast %p{i} : {type} -> {wide}")
        dims = ", ".join(map(str, range(case.expected.dim())))
        body.append(f"%s{i} = nn.reduce sum %d{i} dims [{dims}] : {wide} -> tensor<f64>")
        body.append(f"%t{i} = nn.add {total}, %s{i} : (tensor<f64>, tensor<f64>) -> tensor<f64>")
        total = f"%t{i}"
    return "\n".join(
        [f"func.func @main({', '.join(arguments)}) -> tensor<f64> {{", *body, f"return {total} : tensor<f64>", "}", ""]
    )


def check_differences(batch, tools, directory):
    """Of a batch of f64 cases: the slope along a random direction, by central differences of the program's own results."""
    step = 1e-6
    weights = [torch.randint(-3, 4, case.expected.shape, generator=generator) for case in batch]
    directions = [
        [torch.randint(0, 2, value.shape, generator=generator) * 2.0 - 1 for value in case.inputs] for case in batch
    ]
    program, gradients, artifact = (directory / name for name in ("program.mlir", "gradients.mlir", "program.tpx"))
    program.write_text(get_program(batch, weights))
    run([get_tool(tools, "tp-opt"), program, "--tp-grad=inputs=true", "-o", gradients])
    run([get_tool(tools, "tp-compile"), gradients, "-o", artifact])

    def evaluate(shift):
        command = [get_tool(tools, "tp-run"), artifact, "--output", f"result0={directory}/loss.npy"]
        for i, (case, weight) in enumerate(zip(batch, weights)):
            for j, value in enumerate(case.inputs):
                if value.dtype == torch.float64:
                    value = value + shift * step * directions[i][j]
                    command += ["--output", f"grad.c{i}_{j}={directory}/grad.c{i}_{j}.npy"]
                save(directory / f"c{i}_{j}.npy", value)
                command += ["--input", f"c{i}_{j}={directory}/c{i}_{j}.npy"]
            save(directory / f"w{i}.npy", weight)
            command += ["--input", f"w{i}={directory}/w{i}.npy"]
        run(command)
        return load(directory / "loss.npy", torch.float64).item()

    above, below = evaluate(1), evaluate(-1)
    evaluate(0)
    slope = sum(
        (load(directory / f"grad.c{i}_{j}.npy", torch.float64) * directions[i][j]).sum().item()
        for i, case in enumerate(batch)
        for j, value in enumerate(case.inputs)
        if value.dtype == torch.float64
    )
    measured = (above - below) / (2 * step)
    if abs(measured - slope) <= 1e-4 * max(1, abs(slope)):
        return 0
    print(f"FAIL {', '.join(case.name for case in batch)}: slope {slope}, by differences {measured}")
    return len(batch)


def check(batch, tools, directory):
    weights = [torch.randint(-3, 4, case.expected.shape, generator=generator) for case in batch]
    program, gradients, artifact = (directory / name for name in ("program.mlir", "gradients.mlir", "program.tpx"))
    program.write_text(get_program(batch, weights))
    run([get_tool(tools, "tp-opt"), program, "--tp-grad=inputs=true", "-o", gradients])
    run([get_tool(tools, "tp-compile"), gradients, "-o", artifact])
    command = [get_tool(tools, "tp-run"), artifact]
    for i, (case, weight) in enumerate(zip(batch, weights)):
        for name, value in [(f"c{i}_{j}", value) for j, value in enumerate(case.inputs)] + [(f"w{i}", weight)]:
            save(directory / f"{name}.npy", value)
            command += ["--input", f"{name}={directory}/{name}.npy"]
        for j, value in enumerate(case.inputs):
            if value.dtype in cases.FLOATS:
                command += ["--output", f"grad.c{i}_{j}={directory}/grad.c{i}_{j}.npy"]
    run(command)

    failures = 0
    for i, (case, weight) in enumerate(zip(batch, weights)):
        places = [j for j, value in enumerate(case.inputs) if value.dtype in cases.FLOATS]
        for j, expected in zip(places, get_expected(case, weight)):
            dtype = case.inputs[j].dtype
            rtol, atol = TOLERANCES[dtype]
            atol *= max(1, expected.nan_to_num().abs().max().item() if expected.numel() else 1)
            try:
                actual = load(directory / f"grad.c{i}_{j}.npy", dtype)
                torch.testing.assert_close(actual.double(), expected, rtol=rtol, atol=atol, equal_nan=True)
            except AssertionError as error:
                failures += 1
                print(f"FAIL {case.name}, input {j}: {str(error).strip()}")
                break
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where tp-opt, tp-compile and tp-run are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases whose name matches this regular expression")
    parser.add_argument("--sample", type=int, help="only so many of them, some of each op")
    parser.add_argument("--differences", action="store_true",
                        help="compare the f64 cases with differences of the program's own results instead")
    parser.add_argument("--batch", type=int, default=50, help="cases a program")
    parser.add_argument("--keep", type=pathlib.Path, help="keep programs, inputs and outputs here")
    options = parser.parse_args()
    selected = [case for case in cases.CASES if is_differentiable(case) and re.search(options.filter, case.name)]
    compare = check
    if options.differences:
        # The weights of a loss are constants: see get_expected.
        selected = [
            case
            for case in selected
            if all(value.dtype not in cases.FLOATS or value.dtype == torch.float64 for value in case.inputs)
            and case.expected.dtype == torch.float64
            and not re.search("weighted", case.name)
        ]
        compare = check_differences
    if not selected:
        sys.exit(f"no case matches '{options.filter}'")
    if options.sample:
        selected = draw_sample(selected, options.sample)
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for start in range(0, len(selected), options.batch):
            directory = (options.keep or pathlib.Path(scratch)) / str(start)
            directory.mkdir(parents=True, exist_ok=True)
            failures += compare(selected[start : start + options.batch], options.tools, directory)
    equal = "differences" if options.differences else "PyTorch's"
    print(f"{len(selected) - failures} of {len(selected)} gradients equal {equal}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
