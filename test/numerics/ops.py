"""Checks every nn op, compiled and run, against PyTorch.

  ops.py [--tools DIRECTORY] [--filter REGEX] [--sample N] [--list] [--keep DIRECTORY]

Many cases make one program: each has its own inputs and one output. Exit code 1 when an output differs.
"""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch

import cases


def save(path, tensor):
    # bf16 has no NumPy type; the runtime takes f4 for it, which holds its values exactly.
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    np.save(path, tensor.contiguous().numpy())


def load(path, dtype):
    array = np.load(path)
    if dtype == torch.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).reshape(array.shape)
    return torch.from_numpy(array)


def get_program(batch):
    """One function with the inputs of all cases, c<i>_<j>, and their results, c<i>_r."""
    arguments, body, names, types = [], [], [], []
    for i, case in enumerate(batch):
        for j, value in enumerate(case.inputs):
            arguments.append(f'%c{i}_{j}: {cases.tensor_type(value)} {{tp.name = "c{i}_{j}"}}')
        body.append(case.ir(f"c{i}"))
        names.append(f"%c{i}_r")
        types.append(cases.tensor_type(case.expected))
    results = ", ".join(f'{type} {{tp.name = "c{i}_r"}}' for i, type in enumerate(types))
    lines = [f"func.func @main({', '.join(arguments)}) -> ({results}) {{", *body]
    return "\n".join(lines + [f"return {', '.join(names)} : {', '.join(types)}", "}", ""])


def get_tool(tools, name):
    path = shutil.which(name, path=tools)
    return path or sys.exit(f"there is no '{name}' in {tools or 'PATH'}")


def run(command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command[:2]))} … failed with {process.returncode}:\n{process.stderr[-4000:]}")


def check(batch, tools, directory):
    """The number of cases of `batch` that differ."""
    program, artifact = directory / "program.mlir", directory / "program.tpx"
    program.write_text(get_program(batch))
    run([get_tool(tools, "tp-compile"), program, "-o", artifact])
    command = [get_tool(tools, "tp-run"), artifact]
    for i, case in enumerate(batch):
        for j, value in enumerate(case.inputs):
            save(directory / f"c{i}_{j}.npy", value)
            command += ["--input", f"c{i}_{j}={directory}/c{i}_{j}.npy"]
        command += ["--output", f"c{i}_r={directory}/c{i}_r.npy"]
    run(command)

    failures = 0
    for i, case in enumerate(batch):
        problem = cases.difference(case.expected, load(directory / f"c{i}_r.npy", case.expected.dtype))
        if problem:
            failures += 1
            print(f"FAIL {case.name}: {problem.strip()}")
    return failures


def draw_sample(selected, count):
    """At least one case of each op, `count` in all or more: the same ones each time."""
    shuffled = random.Random(0).sample(selected, len(selected))
    first = {case.name.split()[0]: case for case in reversed(shuffled)}.values()
    rest = [case for case in shuffled if not any(case is other for other in first)]
    return [*first, *rest[: max(0, count - len(first))]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where tp-compile and tp-run are; PATH by default")
    parser.add_argument("--filter", default="", help="only cases whose name matches this regular expression")
    parser.add_argument("--sample", type=int, help="only so many of them, some of each op")
    parser.add_argument("--batch", type=int, default=100, help="cases a program")
    parser.add_argument("--keep", type=pathlib.Path, help="keep programs, inputs and outputs here")
    parser.add_argument("--list", action="store_true", help="print the cases' names")
    options = parser.parse_args()

    selected = [case for case in cases.CASES if re.search(options.filter, case.name)]
    if not selected:
        sys.exit(f"no case matches '{options.filter}'")
    if options.sample:
        selected = draw_sample(selected, options.sample)
    if options.list:
        print("\n".join(case.name for case in selected))
        return 0
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for start in range(0, len(selected), options.batch):
            directory = (options.keep or pathlib.Path(scratch)) / str(start)
            directory.mkdir(parents=True, exist_ok=True)
            failures += check(selected[start : start + options.batch], options.tools, directory)
    print(f"{len(selected) - failures} of {len(selected)} cases equal PyTorch")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
