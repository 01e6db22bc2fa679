#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Print a block of a Llama-style decoder in the nn dialect: the shapes of Llama 3 8B unless options say others. By default it stands
between the model's embedding and head; --layer leaves these away, and --context gives the layer one token and a cache of so many. No
weights are needed for what is said of a program before it runs."""

import argparse

import short


class Block:
    """Lines of a program: `self.x` is the name of the block's input, then of its output."""

    def __init__(self, batch, tokens, dim, heads, kv_heads, hidden, dtype):
        self.batch, self.tokens, self.dim, self.heads, self.kv_heads = batch, tokens, dim, heads, kv_heads
        self.hidden, self.dtype, self.head = hidden, dtype, dim // heads
        self.type = self.tensor(batch, tokens, dim)
        self.lines = []

    def tensor(self, *shape, element=None):
        return f"tensor<{'x'.join(map(str, shape))}x{element or self.dtype}>"

    def op(self, name, text):
        self.lines.append(f"  %{name} = {text}")

    def linear(self, name, source, columns, rows):
        weight, result = self.tensor(rows, columns), self.tensor(self.batch, self.tokens, rows)
        self.op(f"w_{name}", f'nn.parameter "{name}.weight" : {weight}')
        self.op(name, f"nn.linear %{source}, %w_{name} : ({self.tensor(self.batch, self.tokens, columns)}, {weight}) -> {result}")

    def norm(self, name, source):
        self.op(f"w_{name}", f'nn.parameter "{name}.weight" : {self.tensor(self.dim)}')
        self.op(name, f"nn.rms_norm %{source} weight %w_{name} over 1 eps 1.0e-05 : ({self.type}, {self.tensor(self.dim)}) -> {self.type}")

    def heads_type(self, count):
        return self.tensor(self.batch, count, self.tokens, self.head)

    def split_heads(self, name, count, is_rotated):
        rows, flat = self.tensor(self.batch, self.tokens, count, self.head), self.tensor(self.batch, self.tokens, count * self.head)
        half, table = self.tensor(self.batch, self.tokens, count, self.head // 2), self.tensor(self.tokens, 1, self.head)
        self.op(f"{name}_rows", f"nn.reshape %{name} : {flat} -> {rows}")
        source = f"{name}_rows"
        if is_rotated:
            self.op(f"{name}_low", f"nn.slice %{source} dim 3 start 0 step 1 : {rows} -> {half}")
            self.op(f"{name}_high", f"nn.slice %{source} dim 3 start {self.head // 2} step 1 : {rows} -> {half}")
            self.op(f"{name}_minus", f"nn.neg %{name}_high : {half}")
            self.op(f"{name}_half", f"nn.concat %{name}_minus, %{name}_low dim 3 : ({half}, {half}) -> {rows}")
            self.op(f"{name}_cos", f"nn.mul %{source}, %cos : ({rows}, {table}) -> {rows}")
            self.op(f"{name}_sin", f"nn.mul %{name}_half, %sin : ({rows}, {table}) -> {rows}")
            self.op(f"{name}_rotated", f"nn.add %{name}_cos, %{name}_sin : ({rows}, {rows}) -> {rows}")
            source = f"{name}_rotated"
        self.op(f"{name}_heads", f"nn.transpose %{source} [0, 2, 1, 3] : {rows} -> {self.heads_type(count)}")

    def write(self, attention):
        """The block from %x to %y. `attention` is its text, from %q_heads, %k_heads and %v_heads."""
        x, up = self.type, self.tensor(self.batch, self.tokens, self.hidden)
        self.norm("attention_norm", "x")
        self.linear("q", "attention_norm", self.dim, self.dim)
        self.linear("k", "attention_norm", self.dim, self.kv_heads * self.head)
        self.linear("v", "attention_norm", self.dim, self.kv_heads * self.head)
        for name, count in (("q", self.heads), ("k", self.kv_heads), ("v", self.kv_heads)):
            self.split_heads(name, count, name != "v")
        q, rows = self.heads_type(self.heads), self.tensor(self.batch, self.tokens, self.heads, self.head)
        self.op("a", attention)
        self.op("a_rows", f"nn.transpose %a [0, 2, 1, 3] : {q} -> {rows}")
        self.op("a_flat", f"nn.reshape %a_rows : {rows} -> {x}")
        self.linear("o", "a_flat", self.dim, self.dim)
        self.op("h", f"nn.add %x, %o : ({x}, {x}) -> {x}")
        self.norm("ffn_norm", "h")
        self.linear("w1", "ffn_norm", self.dim, self.hidden)
        self.linear("w3", "ffn_norm", self.dim, self.hidden)
        self.op("gate", f"nn.silu %w1 : {up}")
        self.op("gated", f"nn.mul %gate, %w3 : ({up}, {up}) -> {up}")
        self.linear("w2", "gated", self.hidden, self.dim)
        self.op("y", f"nn.add %h, %w2 : ({x}, {x}) -> {x}")

    def get_attention(self, keys, values, context, causal):
        q, cache = self.heads_type(self.heads), self.tensor(self.batch, self.kv_heads, context, self.head)
        return (f"nn.attention {'causal ' if causal else ''}%q_heads, %{keys}, %{values} scale {self.head ** -0.5} : "
                f"({q}, {cache}, {cache}) -> {q}")


def build(batch, tokens, dim, heads, kv_heads, hidden, vocab, dtype):
    block = Block(batch, tokens, dim, heads, kv_heads, hidden, dtype)
    tensor, x = block.tensor, block.type
    ids, logits = tensor(batch, tokens, element="i64"), tensor(batch, tokens, vocab)
    block.op("w_embedding", f'nn.parameter "embedding.weight" : {tensor(vocab, dim)}')
    block.op("x", f"nn.embedding %ids, %w_embedding : ({ids}, {tensor(vocab, dim)}) -> {x}")
    for name in ("cos", "sin"):
        block.op(name, f'nn.parameter "{name}" frozen : {tensor(tokens, 1, block.head)}')
    block.write(block.get_attention("k_heads", "v_heads", tokens, causal=True))
    block.norm("norm", "y")
    block.linear("logits", "norm", dim, vocab)
    # Losses take classes as the last dimension of a matrix.
    flat = tensor(batch * tokens, vocab)
    block.op("output", f"nn.reshape %logits : {logits} -> {flat}")
    return "\n".join([f'func.func @main(%ids: {ids} {{tp.name = "ids"}}) -> ({flat} {{tp.name = "output"}}) {{', *block.lines,
                      f"  return %output : {flat}", "}", ""])


def build_layer(batch, tokens, dim, heads, kv_heads, hidden, dtype, context=0):
    """A block alone; with `context`, its attention reads so many cached keys and values, and its own are results."""
    block = Block(batch, tokens, dim, heads, kv_heads, hidden, dtype)
    table = block.tensor(tokens, 1, block.head)
    inputs, results = {"x": block.type, "cos": table, "sin": table}, {"y": block.type}
    if context:
        inputs |= dict.fromkeys(("keys", "values"), block.tensor(batch, kv_heads, context, block.head))
        results |= dict.fromkeys(("k_heads", "v_heads"), block.heads_type(kv_heads))
        block.write(block.get_attention("keys", "values", context, causal=False))
    else:
        block.write(block.get_attention("k_heads", "v_heads", tokens, causal=True))
    arguments = ", ".join(f'%{name}: {type} {{tp.name = "{name}"}}' for name, type in inputs.items())
    outputs = ", ".join(f'{type} {{tp.name = "{name}"}}' for name, type in results.items())
    values = ", ".join(f"%{name}" for name in results)
    return "\n".join([f"func.func @main({arguments}) -> ({outputs}) {{", *block.lines,
                      f"  return {values} : {', '.join(results.values())}", "}", ""])


def get_least_bytes(batch, tokens, dim, heads, kv_heads, hidden, element_bytes):
    """What a layer's kernels have to move, beside its products and its attention, however they are made: a norm reads and writes its
    rows, rotary positions read and write queries and keys, SwiGLU reads two products and writes one. Residuals, and SwiGLU of up to 8
    rows, belong to products, and transposes to what they are of."""
    head, rows = dim // heads, batch * tokens
    norms = 2 * (2 * rows * dim + dim)
    rotary = 2 * rows * (heads + kv_heads) * head + 2 * tokens * head
    gates = 3 * rows * hidden if rows > 8 else 0
    return element_bytes * (norms + rotary + gates)


def add_arguments(parser):
    for name, size in dict(batch=1, tokens=1024, dim=4096, heads=32, kv_heads=8, hidden=14336, vocab=128256).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=size, help="default: %(default)s")
    parser.add_argument("--dtype", default="bf16", help="default: %(default)s")
    parser.add_argument("--layer", action="store_true", help="the block alone")
    parser.add_argument("--context", type=int, default=0, metavar="N", help="the block alone, with one token and a cache of N")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    short.add_option(parser, tokens=16, dim=64, heads=4, kv_heads=2, hidden=128, vocab=256)
    arguments = vars(parser.parse_args())
    is_layer = arguments.pop("layer") or arguments["context"]
    del arguments["short"]
    if is_layer:
        del arguments["vocab"]
        print(build_layer(**arguments | ({"tokens": 1} if arguments["context"] else {})), end="")
    else:
        del arguments["context"]
        print(build(**arguments), end="")
