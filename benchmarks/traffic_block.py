#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Print a block of a Llama-style decoder between its embedding and its head, in the nn dialect: the shapes of Llama 3 8B unless options
say others. No weights are needed for what is said of a program before it runs."""

import argparse

import short


def build(batch, tokens, dim, heads, kv_heads, hidden, vocab, dtype):
    head = dim // heads

    def tensor(*shape, element=dtype):
        return f"tensor<{'x'.join(map(str, shape))}x{element}>"

    x, up, logits = (tensor(batch, tokens, n) for n in (dim, hidden, vocab))
    ids, table = tensor(batch, tokens, element="i64"), tensor(tokens, 1, head)
    lines = []

    def op(name, text):
        lines.append(f"  %{name} = {text}")

    def linear(name, source, columns, rows):
        weight, result = tensor(rows, columns), tensor(batch, tokens, rows)
        op(f"w_{name}", f'nn.parameter "{name}.weight" : {weight}')
        op(name, f"nn.linear %{source}, %w_{name} : ({tensor(batch, tokens, columns)}, {weight}) -> {result}")

    def norm(name, source):
        op(f"w_{name}", f'nn.parameter "{name}.weight" : {tensor(dim)}')
        op(name, f"nn.rms_norm %{source} weight %w_{name} over 1 eps 1.0e-05 : ({x}, {tensor(dim)}) -> {x}")

    def split_heads(name, count, is_rotated):
        rows, flat = tensor(batch, tokens, count, head), tensor(batch, tokens, count * head)
        half, turned = tensor(batch, tokens, count, head // 2), tensor(batch, count, tokens, head)
        op(f"{name}_rows", f"nn.reshape %{name} : {flat} -> {rows}")
        source = f"{name}_rows"
        if is_rotated:
            op(f"{name}_low", f"nn.slice %{source} dim 3 start 0 step 1 : {rows} -> {half}")
            op(f"{name}_high", f"nn.slice %{source} dim 3 start {head // 2} step 1 : {rows} -> {half}")
            op(f"{name}_minus", f"nn.neg %{name}_high : {half}")
            op(f"{name}_half", f"nn.concat %{name}_minus, %{name}_low dim 3 : ({half}, {half}) -> {rows}")
            op(f"{name}_cos", f"nn.mul %{source}, %cos : ({rows}, {table}) -> {rows}")
            op(f"{name}_sin", f"nn.mul %{name}_half, %sin : ({rows}, {table}) -> {rows}")
            op(f"{name}_rotated", f"nn.add %{name}_cos, %{name}_sin : ({rows}, {rows}) -> {rows}")
            source = f"{name}_rotated"
        op(f"{name}_heads", f"nn.transpose %{source} [0, 2, 1, 3] : {rows} -> {turned}")
        return turned

    op("w_embedding", f'nn.parameter "embedding.weight" : {tensor(vocab, dim)}')
    op("x", f"nn.embedding %ids, %w_embedding : ({ids}, {tensor(vocab, dim)}) -> {x}")
    for name in ("cos", "sin"):
        op(name, f'nn.parameter "{name}" frozen : {table}')
    norm("attention_norm", "x")
    linear("q", "attention_norm", dim, dim)
    linear("k", "attention_norm", dim, kv_heads * head)
    linear("v", "attention_norm", dim, kv_heads * head)
    q, k, v = (split_heads(name, count, name != "v") for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
    op("a", f"nn.attention causal %q_heads, %k_heads, %v_heads scale {head ** -0.5} : ({q}, {k}, {v}) -> {q}")
    op("a_rows", f"nn.transpose %a [0, 2, 1, 3] : {q} -> {tensor(batch, tokens, heads, head)}")
    op("a_flat", f"nn.reshape %a_rows : {tensor(batch, tokens, heads, head)} -> {x}")
    linear("o", "a_flat", dim, dim)
    op("h", f"nn.add %x, %o : ({x}, {x}) -> {x}")
    norm("ffn_norm", "h")
    linear("w1", "ffn_norm", dim, hidden)
    linear("w3", "ffn_norm", dim, hidden)
    op("gate", f"nn.silu %w1 : {up}")
    op("gated", f"nn.mul %gate, %w3 : ({up}, {up}) -> {up}")
    linear("w2", "gated", hidden, dim)
    op("y", f"nn.add %h, %w2 : ({x}, {x}) -> {x}")
    norm("norm", "y")
    linear("logits", "norm", dim, vocab)
    # Losses take classes as the last dimension of a matrix.
    flat = tensor(batch * tokens, vocab)
    op("output", f"nn.reshape %logits : {logits} -> {flat}")
    return "\n".join([f'func.func @main(%ids: {ids} {{tp.name = "ids"}}) -> ({flat} {{tp.name = "output"}}) {{', *lines,
                      f"  return %output : {flat}", "}", ""])


def add_arguments(parser):
    for name, size in dict(batch=1, tokens=1024, dim=4096, heads=32, kv_heads=8, hidden=14336, vocab=128256).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size, help="default: %(default)s")
    parser.add_argument("--dtype", default="bf16", help="default: %(default)s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    short.add_option(parser, tokens=16, dim=64, heads=4, kv_heads=2, hidden=128, vocab=256)
    arguments = vars(parser.parse_args())
    del arguments["short"]
    print(build(**arguments), end="")
