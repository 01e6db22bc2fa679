"""Writes a program of layers that look up rows: the index of a layer is what the one before has found, one more each time.

usage: index_layers.py LAYERS ROWS
"""

import sys

layers, rows = map(int, sys.argv[1:])
table = ", ".join(f"[{i + 1}.0]" for i in range(rows))
print('func.func @main(%x0: tensor<2xf32> {tp.name = "x"}) -> tensor<2xf32> {')
print(f"  %table = nn.constant dense<[{table}]> : tensor<{rows}x1xf32>")
for i in range(layers):
    fqn = f'{{tp.fqn = "layers.{i}"}}'
    print(f"  %i{i} = nn.cast %x{i} {fqn} : tensor<2xf32> -> tensor<2xi64>")
    print(f"  %e{i} = nn.embedding %i{i}, %table {fqn} : (tensor<2xi64>, tensor<{rows}x1xf32>) -> tensor<2x1xf32>")
    print(f"  %x{i + 1} = nn.reshape %e{i} {fqn} : tensor<2x1xf32> -> tensor<2xf32>")
print(f"  return %x{layers} : tensor<2xf32>")
print("}")
