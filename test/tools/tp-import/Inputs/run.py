"""Saves the models of a family, imports each, prints the IR and checks that it
computes what PyTorch computes: run.py <family> <tp-import> <dir>

A model is scripted, traced, exported by torch.export, or exported and
decomposed to core ATen."""

import subprocess
import sys
import warnings
from pathlib import Path

import torch

import families
import nneval

NAMES = {torch.float32: "f32", torch.int64: "i64", torch.bool: "i1"}


def flatten(value):
    if isinstance(value, torch.Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return [tensor for element in values for tensor in flatten(element)]


def import_model(tool, path, inputs, *flags):
    specs, stem = [], path.with_suffix("")
    for i, tensor in enumerate(inputs):
        shape = "".join(f"{size}x" for size in tensor.shape)
        specs += ["--input", f"in{i}={shape}{NAMES[tensor.dtype]}"]
    return subprocess.run([tool, path, *specs, "--weights", f"{stem}.safetensors", *flags],
                          capture_output=True, text=True)


def check(tool, directory, cls, makers, mode):
    torch.manual_seed(0)
    module = cls().eval()
    inputs = [make() for make in makers]
    stem = directory / f"{cls.__name__}-{mode}"
    examples = tuple(t.clone() for t in inputs)
    if mode in ("export", "core"):
        path = stem.with_suffix(".pt2")
        program = torch.export.export(module, examples)
        torch.export.save(program.run_decompositions() if mode == "core" else program, path)
        model = torch.export.load(path).module()
    else:
        path = stem.with_suffix(".pt")
        saved = torch.jit.script(module) if mode == "script" else torch.jit.trace(module, examples, check_trace=False)
        saved.save(path)
        model = torch.jit.load(path)
    # Tracing makes tensors of Python's numbers, which changes some types: the
    # archive is the model.
    expected = flatten(model(*[t.clone() for t in inputs]))

    imported = import_model(tool, path, inputs, "--mlir-print-op-generic")
    print(f"=== {stem.name} exit {imported.returncode}")
    if imported.returncode:
        print(imported.stderr)
        return False
    print(subprocess.run(["tp-opt"], input=imported.stdout, stdout=subprocess.PIPE, text=True, check=True).stdout)
    results = nneval.evaluate(imported.stdout, f"{stem}.safetensors", inputs)
    correct = len(results) == len(expected)
    for i, (result, wanted) in enumerate(zip(results, expected)):
        try:
            torch.testing.assert_close(result, wanted, equal_nan=True)
        except AssertionError as error:
            correct = False
            print(f"result {i}: {error}")
    print(f"{stem.name}: {len(expected)} results {'agree' if correct else 'DIFFER'}")
    return correct


def main():
    family, tool, directory = sys.argv[1:]
    warnings.filterwarnings("ignore")
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    correct = True
    with torch.no_grad():
        for cls, makers, modes in families.FAMILIES[family]:
            for mode in modes:
                correct &= check(tool, directory, cls, makers, mode)
    return 0 if correct else 1


sys.exit(main())
