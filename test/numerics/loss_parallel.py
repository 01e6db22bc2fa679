"""Checks cross entropies over split classes against PyTorch: shapes that divide and that don't, each reduction, with and
without class weights, with ignored targets. Exit code 1 when any differs.

  loss_parallel.py [--tools DIRECTORY]
"""

import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch

import execution
from ops import get_tool

SHAPES = [(8, 16), (8, 16, 3), (16,), (5, 7), (4, 3)]


def tensor_type(shape, element):
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def write_module(path, shape, target_shape, result_shape, reduction, weighted, ranks):
    class_dim = 1 if len(shape) > 1 else 0
    classes = shape[class_dim]
    split = ", ".join("{tp}" if dim == class_dim else "{}" for dim in range(len(shape)))
    types = [tensor_type(shape, "f32"), tensor_type(target_shape, "i64")]
    arguments = [f"%x: {types[0]} {{tp.sharding = #tp.sharding<@mesh, [{split}]>}}", f"%t: {types[1]}"]
    if weighted:
        types.append(f"tensor<{classes}xf32>")
        arguments.append(f"%w: {types[2]} {{tp.sharding = #tp.sharding<@mesh, [{{tp}}]>}}")
    result = tensor_type(result_shape, "f32")
    path.write_text(f"""tp.mesh @mesh(tp = {ranks})
func.func @main({', '.join(arguments)}) -> {result} {{
  %l = nn.cross_entropy {reduction} %x, %t{' weight %w' if weighted else ''} ignore -100 smoothing 0.0 loss_parallel
    : ({', '.join(types)}) -> {result}
  return %l : {result}
}}
""")


def check(tools, folder, shape, reduction, weighted, ranks):
    classes = shape[1] if len(shape) > 1 else shape[0]
    target_shape = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    logits, target = torch.randn(shape) * 3, torch.randint(0, classes, target_shape)
    if target_shape:
        target.view(-1)[0] = -100
    weight = torch.rand(classes) + 0.1 if weighted else None
    expected = torch.nn.functional.cross_entropy(logits, target, weight=weight, reduction=reduction)
    write_module(folder / "loss.mlir", shape, target_shape, tuple(expected.shape), reduction, weighted, ranks)
    run = lambda name, *words: subprocess.run([tools(name), *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    run("tp-opt", folder / "loss.mlir", f"--tp-parallelize=report={folder / 'report.json'} machine=cpu", "-o", folder / "ranks.mlir")
    run("tp-compile", folder / "ranks.mlir", "-o", folder / "loss.tpx")
    inputs = []
    for index, value in enumerate([logits, target, weight][: 3 if weighted else 2]):
        numpy.save(folder / f"{index}.npy", value.numpy())
        inputs += ["--input", f"arg{index}={folder / f'{index}.npy'}"]
    run("tp-run", folder / "loss.tpx", *inputs, "--output", folder / "y.npy", "--json", folder / "run.json")
    actual = torch.from_numpy(numpy.load(folder / "y.npy"))
    report = execution.check_prediction(folder / "report.json", folder / "run.json")
    kinds = [collective["kind"] for collective in report["collectives"]]
    return torch.allclose(actual, expected, rtol=1e-5, atol=1e-5) and kinds == ["all_reduce", "all_reduce"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where tp-opt, tp-compile and tp-run are; PATH by default")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    cases = list(itertools.product(SHAPES, ["none", "mean", "sum"], [False, True], [2, 4]))
    with tempfile.TemporaryDirectory() as folder:
        failed = [case for case in cases
                  if not check(lambda name: get_tool(arguments.tools, name), pathlib.Path(folder), *case)]
    for case in failed:
        print("FAIL", *case)
    print(f"{len(cases) - len(failed)} of {len(cases)} losses equal PyTorch's, with two all-reduces each")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
