# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a function with a chain of COUNT insertions of rows: %y into the first row, %x into the others.

--gap leaves the last row out, --twice writes a row in the middle again, --read reads a part of a row after half of the chain and a row
that isn't written yet."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("count", type=int)
for option in ("--gap", "--twice", "--read"):
    parser.add_argument(option, action="store_true")
arguments = parser.parse_args()

whole = f"tensor<{arguments.count + arguments.gap}x4xf32>"
rows = list(range(1, arguments.count)) + [0]
if arguments.twice:
    rows.insert(len(rows) // 2 + 1, rows[0])
results, types, last = [], [], "%init"
print(f"func.func @f(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>, %init: {whole}) -> (RESULTS) {{".replace(
    "RESULTS", ", ".join((["tensor<1x2xf32>", "tensor<1x4xf32>"] if arguments.read else []) + [whole])))
for number, row in enumerate(rows):
    if arguments.read and number == len(rows) // 2:
        print(f"  %part = tensor.extract_slice {last}[3, 1] [1, 2] [1, 1] : {whole} to tensor<1x2xf32>")
        print(f"  %early = tensor.extract_slice {last}[{arguments.count - 1}, 0] [1, 4] [1, 1] : {whole} to tensor<1x4xf32>")
        results, types = ["%part", "%early"], ["tensor<1x2xf32>", "tensor<1x4xf32>"]
    print(f"  %{number} = tensor.insert_slice {'%x' if row else '%y'} into {last}[{row}, 0] [1, 4] [1, 1] : tensor<1x4xf32> into {whole}")
    last = f"%{number}"
print(f"  return {', '.join(results + [last])} : {', '.join(types + [whole])}\n}}")
