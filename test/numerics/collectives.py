"""Checks that each rewrite of collectives keeps what per-rank programs compute.

  collectives.py [--tools DIRECTORY] [--keep DIRECTORY]

A case is a per-rank program over 2 ranks, the passes that rewrite it, and what the result must contain. The program is run
as it is and rewritten, on the same random inputs. Exit code 1 when a rewrite doesn't happen or an output differs.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

from ops import get_tool

# Every rank has blocks of its own: rows of the whole.
SPLIT = "tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>"
OPTIMIZE = "--tp-optimize-collectives"
REDUCE = "tp.all_reduce sum"


def split(name, rows, columns):
    """An argument, different on each rank."""
    return f'%{name}: tensor<{rows}x{columns}xf32> {{tp.name = "{name}", {SPLIT}, tp.global_type = tensor<{2 * rows}x{columns}xf32>}}'


def whole(name, shape):
    """An argument, the same on each rank."""
    return f'%{name}: tensor<{shape}xf32> {{tp.name = "{name}"}}'


# Name, passes, how often the rewritten program must contain what, arguments, body, type of the result.
CASES = [
    ("sums that meet", [OPTIMIZE], {REDUCE: 1}, [split("a", 4, 6), split("b", 4, 6), split("c", 4, 6)], """
        %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x6xf32>
        %1 = tp.all_reduce sum %b over @mesh {tp} : tensor<4x6xf32>
        %2 = tp.all_reduce sum %c over @mesh {tp} : tensor<4x6xf32>
        %3 = nn.sub %0, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
        %r = nn.add %3, %2 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>""", "4x6"),
    ("a sum that gets smaller", [OPTIMIZE], {"nn.linear(.|\n)*tp.all_reduce": 1}, [split("a", 4, 6), whole("w", "2x6")], """
        %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x6xf32>
        %r = nn.linear %0, %w : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<4x2xf32>""", "4x2"),
    ("a sum of which a slice is used", [OPTIMIZE], {"tp.reduce_scatter": 1, REDUCE: 0}, [split("a", 4, 6)], """
        %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x6xf32>
        %1 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<4x6xf32> -> tensor<4x3xf32>
        %2 = nn.exp %1 : tensor<4x3xf32>
        %r = tp.all_gather %2 dim 1 over @mesh {tp} : tensor<4x3xf32> -> tensor<4x6xf32>""", "4x6"),
    ("a gather of which a slice is used", [OPTIMIZE], {"tp.all_to_all": 1}, [split("a", 4, 6)], """
        %0 = tp.all_gather %a dim 0 over @mesh {tp} : tensor<4x6xf32> -> tensor<8x6xf32>
        %1 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<8x6xf32> -> tensor<8x3xf32>
        %2 = nn.exp %1 : tensor<8x3xf32>
        %r = tp.all_gather %2 dim 1 over @mesh {tp} : tensor<8x3xf32> -> tensor<8x6xf32>""", "8x6"),
    ("inverse pairs", [OPTIMIZE], {"tp.permute": 0, "tp.all_to_all": 0, "tp.reduce_scatter": 0, REDUCE: 1}, [split("a", 4, 6)], """
        %0 = tp.permute %a from [1, 0] over @mesh {tp} : tensor<4x6xf32> -> tensor<4x6xf32>
        %1 = tp.permute %0 from [1, 0] over @mesh {tp} : tensor<4x6xf32> -> tensor<4x6xf32>
        %2 = tp.all_to_all %1 split 1 concat 0 over @mesh {tp} : tensor<4x6xf32> -> tensor<8x3xf32>
        %3 = tp.all_to_all %2 split 0 concat 1 over @mesh {tp} : tensor<8x3xf32> -> tensor<4x6xf32>
        %4 = tp.reduce_scatter sum %3 dim 0 over @mesh {tp} : tensor<4x6xf32> -> tensor<2x6xf32>
        %r = tp.all_gather %4 dim 0 over @mesh {tp} : tensor<2x6xf32> -> tensor<4x6xf32>""", "4x6"),
    ("rows between reductions", [f"{OPTIMIZE}=sequence-parallel"], {"tp.reduce_scatter": 2, "tp.all_gather": 2, REDUCE: 0},
     [split("a", 4, 6), split("v", 6, 6), whole("x", "4x6"), whole("g", "6")], """
        %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x6xf32>
        %1 = nn.add %x, %0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
        %2 = nn.rms_norm %1 weight %g over 1 eps 1.0e-5 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
        %3 = nn.linear %2, %v : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
        %4 = nn.relu %3 : tensor<4x6xf32>
        %5 = tp.all_reduce sum %4 over @mesh {tp} : tensor<4x6xf32>
        %6 = nn.add %1, %5 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
        %r = nn.softmax %6 dim 1 : tensor<4x6xf32>""", "4x6"),
    ("buckets of sums", [f"{OPTIMIZE}=bucket-bytes=1000"], {REDUCE: 1, "nn.concat": 1}, [split("a", 4, 6), split("b", 2, 6)], """
        %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x6xf32>
        %1 = nn.exp %0 : tensor<4x6xf32>
        %2 = tp.all_reduce sum %b over @mesh {tp} : tensor<2x6xf32>
        %3 = nn.reshape %2 : tensor<2x6xf32> -> tensor<12xf32>
        %4 = nn.reshape %1 : tensor<4x6xf32> -> tensor<2x12xf32>
        %r = nn.mul %4, %3 : (tensor<2x12xf32>, tensor<12xf32>) -> tensor<2x12xf32>""", "2x12"),
    ("buckets of gathers", [f"{OPTIMIZE}=bucket-bytes=1000"], {"tp.all_gather": 1}, [split("a", 4, 6), split("b", 2, 12)], """
        %0 = tp.all_gather %a dim 1 over @mesh {tp} : tensor<4x6xf32> -> tensor<4x12xf32>
        %1 = tp.all_gather %b dim 0 over @mesh {tp} : tensor<2x12xf32> -> tensor<4x12xf32>
        %r = nn.sub %0, %1 : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32>""", "4x12"),
    ("gathered again", [f"{OPTIMIZE}=memory-limit=500"], {"tp.all_gather": 2}, [split("a", 4, 6)], """
        %0 = tp.all_gather %a dim 0 over @mesh {tp} : tensor<4x6xf32> -> tensor<8x6xf32>
        %1 = nn.exp %0 : tensor<8x6xf32>
        %2 = nn.tanh %1 : tensor<8x6xf32>
        %3 = nn.relu %2 : tensor<8x6xf32>
        %4 = nn.tanh %3 : tensor<8x6xf32>
        %r = nn.mul %4, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>""", "8x6"),
    ("out of a loop", [OPTIMIZE], {"tp.all_gather(.|\n)*scf.for": 1}, [split("a", 4, 6), whole("x", "8x6")], """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %x) -> tensor<8x6xf32> {
          %0 = tp.all_gather %a dim 0 over @mesh {tp} : tensor<4x6xf32> -> tensor<8x6xf32>
          %1 = nn.tanh %y : tensor<8x6xf32>
          %2 = nn.add %1, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
          scf.yield %2 : tensor<8x6xf32>
        }""", "8x6"),
    ("overlap", ["--tp-overlap-collectives"], {"tp.start": 2, "tp.wait": 2}, [split("a", 4, 6), split("b", 4, 6)], """
        %0 = nn.tanh %a : tensor<4x6xf32>
        %1 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x6xf32>
        %2 = nn.exp %0 : tensor<4x6xf32>
        %3 = tp.all_reduce sum %b over @mesh {tp} : tensor<4x6xf32>
        %4 = tp.all_reduce max %2 over @mesh {tp} : tensor<4x6xf32>
        %5 = nn.mul %4, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
        %r = nn.add %5, %3 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>""", "4x6"),
    ("chunks of a gather", ["--tp-overlap-collectives=chunks=2"], {"tp.all_gather": 2, "nn.linear": 2}, [split("a", 4, 6), split("w", 5, 6)], """
        %0 = tp.all_gather %a dim 0 over @mesh {tp} : tensor<4x6xf32> -> tensor<8x6xf32>
        %1 = nn.linear %0, %w : (tensor<8x6xf32>, tensor<5x6xf32>) -> tensor<8x5xf32>
        %r = tp.all_reduce sum %1 over @mesh {tp} : tensor<8x5xf32>""", "8x5"),
    ("chunks of a scatter", ["--tp-overlap-collectives=chunks=2"], {"tp.reduce_scatter": 2, "nn.linear": 2}, [split("a", 8, 6), split("w", 5, 6)], """
        %0 = nn.linear %a, %w : (tensor<8x6xf32>, tensor<5x6xf32>) -> tensor<8x5xf32>
        %1 = tp.reduce_scatter sum %0 dim 0 over @mesh {tp} : tensor<8x5xf32> -> tensor<4x5xf32>
        %2 = nn.exp %1 : tensor<4x5xf32>
        %r = tp.all_gather %2 dim 0 over @mesh {tp} : tensor<4x5xf32> -> tensor<8x5xf32>""", "8x5"),
]


class Failure(Exception):
    pass


def run(command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if process.returncode != 0:
        raise Failure(f"{pathlib.Path(command[0]).name} failed with {process.returncode}: {process.stderr[:2000]}")


def execute(tools, program, inputs, directory):
    """What the per-rank program computes."""
    artifact, output = directory / "program.tpx", directory / "r.npy"
    run([get_tool(tools, "tp-compile"), program, "-o", artifact])
    run([get_tool(tools, "tp-run"), artifact, *inputs, "--output", f"r={output}"])
    return np.load(output)


def check(tools, case, directory):
    name, passes, contains, arguments, body, type = case
    directory.mkdir(parents=True)
    before, after = directory / "before.mlir", directory / "after.mlir"
    before.write_text(f"""tp.mesh @mesh(tp = 2)
func.func @main({", ".join(arguments)}) -> (tensor<{type}xf32> {{tp.name = "r"}}) {{{body}
        return %r : tensor<{type}xf32>
}}
""")
    run([get_tool(tools, "tp-opt"), before, *passes, "--tp-verify-collectives", "-o", after])
    text = after.read_text()
    for pattern, count in contains.items():
        found = len(re.findall(pattern, text))
        if found != count:
            raise Failure(f"'{pattern}' is {found} times, not {count}, in\n{text}")
    generator = np.random.default_rng(random.Random(name).getrandbits(60))
    inputs = []
    for argument in arguments:
        sizes = re.search(r"tensor<([0-9x]+)xf32>", argument.split("global_type")[-1]).group(1)
        path = directory / f"{argument[1]}.npy"
        np.save(path, generator.uniform(-1, 1, [int(size) for size in sizes.split("x")]).astype("f4"))
        inputs += ["--input", f"{argument[1]}={path}"]
    expected = execute(tools, before, inputs, directory)
    actual = execute(tools, after, inputs, directory)
    if not np.allclose(actual, expected, rtol=1e-5, atol=1e-5):
        raise Failure(f"is\n{actual}\nmust be\n{expected}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where tp-opt, tp-compile and tp-run are; PATH by default")
    parser.add_argument("--keep", type=pathlib.Path, help="keep programs, inputs and outputs here")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in enumerate(CASES):
            try:
                check(options.tools, case, (options.keep or pathlib.Path(scratch)) / str(number))
            except Failure as error:
                failures += 1
                print(f"FAIL {case[0]}: {error}")
    print(f"{len(CASES) - failures} of {len(CASES)} rewrites keep what is computed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
