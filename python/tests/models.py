# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs as MLIR, for tests of the extension module that need no PyTorch."""

import pathlib
import tempfile

import numpy as np
from tp_mlir import _native

MLP = """
func.func @main(%x: tensor<{rows}x8x{type}> {{tp.name = "x"}}) -> (tensor<{rows}x8x{type}> {{tp.name = "y"}}) {{
  %r = nn.module "" class "MLP" (%x as "x" at 0) {{
  ^bb0(%a: tensor<{rows}x8x{type}>):
    %h = nn.module "up" class "Linear" (%a as "input" at 0) {{
    ^bb0(%input: tensor<{rows}x8x{type}>):
      %w = nn.parameter "up.weight" : tensor<16x8x{type}>
      %y = nn.linear %input, %w : (tensor<{rows}x8x{type}>, tensor<16x8x{type}>) -> tensor<{rows}x16x{type}>
      nn.yield %y : tensor<{rows}x16x{type}>
    }} : (tensor<{rows}x8x{type}>) -> tensor<{rows}x16x{type}>
    %g = nn.relu %h : tensor<{rows}x16x{type}>
    %o = nn.module "down" class "Linear" (%g as "input" at 0) {{
    ^bb0(%input: tensor<{rows}x16x{type}>):
      %w = nn.parameter "down.weight" : tensor<8x16x{type}>
      %y = nn.linear %input, %w : (tensor<{rows}x16x{type}>, tensor<8x16x{type}>) -> tensor<{rows}x8x{type}>
      nn.yield %y : tensor<{rows}x8x{type}>
    }} : (tensor<{rows}x16x{type}>) -> tensor<{rows}x8x{type}>
    nn.yield %o : tensor<{rows}x8x{type}>
  }} : (tensor<{rows}x8x{type}>) -> tensor<{rows}x8x{type}>
  return %r : tensor<{rows}x8x{type}>
}}
"""
PLAN = "mesh: {tp: 2}\nplan:\n  up: ColwiseParallel\n  down: RowwiseParallel\n"

# One parameter that each run adds the input to.
COUNTER = """
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32> {tp.name = "x"}) -> tensor<4xf32> {
  %s = nn.parameter "total" : tensor<4xf32>
  %t = nn.add %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.assign "total", %t {init = 0.0 : f64} : tensor<4xf32>
  return %t : tensor<4xf32>
}
"""

# Products that take a while, in which nothing needs the GIL.
SLOW = """
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {{
  %y0 = nn.relu %x : tensor<1024x1024xf32>
{steps}
  return %y{count} : tensor<1024x1024xf32>
}}
"""


def make_mlp(rows=4, type="f32"):
    return MLP.format(rows=rows, type=type)


def make_slow(count):
    type = "tensor<1024x1024xf32>"
    steps = "\n".join(f"  %y{i + 1} = nn.linear %y{i}, %x : ({type}, {type}) -> {type}" for i in range(count))
    return SLOW.format(steps=steps, count=count)


def parallelize_mlp(**options):
    return _native.Program.parse(make_mlp(**options), "mlp.mlir").parallelize({"plan": "plan.yaml"}, files={"plan.yaml": PLAN})


def make_weights(type=np.float32):
    random = np.random.default_rng(0)
    return {"up.weight": random.standard_normal((16, 8)).astype(type), "down.weight": random.standard_normal((8, 16)).astype(type)}


def compute_mlp(weights, x):
    return np.maximum(x @ weights["up.weight"].T, 0) @ weights["down.weight"].T


class Folder(tempfile.TemporaryDirectory):
    """A temporary folder; paths in it are made with `/`."""

    def __truediv__(self, name):
        return pathlib.Path(self.name) / name


def make_artifact(folder, program, name="model.tpx"):
    path = folder / name
    program.compile(path, opt_level=1)
    return path
