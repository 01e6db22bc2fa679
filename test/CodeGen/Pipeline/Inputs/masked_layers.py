"""Writes a program of equal layers of attention, which share a mask.

usage: masked_layers.py LAYERS
"""

import sys

MASK = "dense<[[[[true, false, true], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>"
T = "tensor<1x2x3x8xf32>"

print(f'func.func @main(%x0: {T} {{tp.name = "x"}}) -> ({T} {{tp.name = "y"}}) {{')
print(f"  %mask = nn.constant {MASK}")
layers = int(sys.argv[1])
for i in range(layers):
    fqn = f'{{tp.fqn = "layers.{i}"}}'
    print(f"  %n{i} = nn.tanh %x{i} {fqn} : {T}")
    print(f"  %a{i} = nn.attention %n{i}, %n{i}, %n{i} mask %mask scale 0.5 {fqn} : ({T}, {T}, {T}, tensor<1x1x3x3xi1>) -> {T}")
    print(f"  %x{i + 1} = nn.add %a{i}, %x{i} {fqn} : ({T}, {T}) -> {T}")
print(f"  return %x{layers} : {T}")
print("}")
