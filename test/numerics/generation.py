"""Generates tokens with programs that keep a cache, and compares with PyTorch, which computes each prefix anew.

The programs are written as IR: a model of two layers with grouped heads, for one token of each sequence and for
several. They write the cache where it is, and leave the logits split over the vocabulary.

usage: generation.py FOLDER_OF_THE_FAKE_DEVICE
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.torch
import torch
from torch import nn

VOCABULARY, DIM, HEADS, KEY_HEADS, CACHE, LAYERS = 61, 32, 4, 2, 24, 2
SIZE = DIM // HEADS


def draw_weights():
    """The weights by name; those of tokens and positions are larger, so that logits differ."""
    shapes = {"tokens": (VOCABULARY, DIM), "positions": (CACHE, DIM), "head.weight": (VOCABULARY, DIM)}
    for i in range(LAYERS):
        shapes |= {f"layers.{i}.query": (DIM, DIM), f"layers.{i}.key": (KEY_HEADS * SIZE, DIM),
                   f"layers.{i}.value": (KEY_HEADS * SIZE, DIM), f"layers.{i}.out": (DIM, DIM),
                   f"layers.{i}.up": (2 * DIM, DIM), f"layers.{i}.down": (DIM, 2 * DIM)}
    return {name: torch.randn(shape) * (1 if shape[0] != DIM and "layers" not in name else shape[1] ** -0.5)
            for name, shape in shapes.items()}


def compute_logits(weights, ids):
    """The logits of the last token of one sequence."""
    length = len(ids)
    x = weights["tokens"][ids] + weights["positions"][:length]
    for i in range(LAYERS):
        w = {name: weights[f"layers.{i}.{name}"] for name in ("query", "key", "value", "out", "up", "down")}
        query = (x @ w["query"].T).view(length, HEADS, SIZE).transpose(0, 1)
        key, value = ((x @ w[name].T).view(length, KEY_HEADS, SIZE).transpose(0, 1).repeat_interleave(HEADS // KEY_HEADS, 0)
                      for name in ("key", "value"))
        y = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + y.transpose(0, 1).reshape(length, DIM) @ w["out"].T
        x = x + nn.functional.silu(x @ w["up"].T) @ w["down"].T
    return x[-1] @ weights["head.weight"].T


def continue_greedily(weights, ids, count):
    ids = list(ids)
    for _ in range(count):
        ids.append(int(compute_logits(weights, ids).argmax()))
    return ids[-count:]


class Builder:
    """Text of IR, line by line."""

    def __init__(self):
        self.lines, self.count = [], 0

    def op(self, text, result, operands=""):
        self.count += 1
        arrow = f"{operands} -> {result}" if operands else result
        self.lines.append(f"  %{self.count} = {text} : {arrow}")
        return f"%{self.count}"

    def parameter(self, name, type, frozen=""):
        return self.op(f'nn.parameter "{name}"{frozen}', type)


def tensor(*shape, dtype="f32"):
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>"


def build_program(batch, length, masked):
    """The model for `length` tokens of each of `batch` sequences."""
    b = Builder()
    hidden, wide = tensor(batch, length, DIM), tensor(batch, length, 2 * DIM)
    integers = tensor(batch, length, dtype="i64")

    def linear(x, name, columns, rows, source=hidden):
        weight, result = tensor(rows, columns), tensor(batch, length, rows)
        w = b.parameter(name, weight)
        return b.op(f"nn.linear {x}, {w}", result, f"({source}, {weight})")

    def add(x, y):
        return b.op(f"nn.add {x}, {y}", hidden, f"({hidden}, {hidden})")

    def split(x, heads):
        apart = b.op(f"nn.reshape {x}", tensor(batch, length, heads, SIZE), tensor(batch, length, heads * SIZE))
        return b.op(f"nn.transpose {apart} [0, 2, 1, 3]", tensor(batch, heads, length, SIZE), tensor(batch, length, heads, SIZE))

    def extend_cache(name, x):
        cache, new = tensor(batch, KEY_HEADS, CACHE, SIZE), tensor(batch, KEY_HEADS, length, SIZE)
        old = b.parameter(name, cache, " frozen")
        b.count += 1
        written = f"%{b.count}"
        b.lines.append(f"  {written} = nn.scatter copy {old}, %positions, {x} dim 2 : ({cache}, {tensor(length, dtype='i64')}, {new})")
        b.lines.append(f'  nn.assign "{name}", {written} init 0.0 : {cache}')
        single, several = tensor(batch, KEY_HEADS, 1, CACHE, SIZE), tensor(batch, KEY_HEADS, HEADS // KEY_HEADS, CACHE, SIZE)
        apart = b.op(f"nn.reshape {written}", single, cache)
        repeated = b.op(f"nn.broadcast {apart}", several, single)
        return b.op(f"nn.reshape {repeated}", tensor(batch, HEADS, CACHE, SIZE), several)

    def embed(ids, type, name, rows):
        table = b.parameter(name, tensor(rows, DIM))
        return b.op(f"nn.embedding {ids}, {table}", hidden if type == integers else tensor(length, DIM), f"({type}, {tensor(rows, DIM)})")

    x = embed("%ids", integers, "tokens", VOCABULARY)
    if masked:
        x = add(x, embed("%places", integers, "positions", CACHE))
    else:
        places = embed("%positions", tensor(length, dtype="i64"), "positions", CACHE)
        x = b.op(f"nn.add {x}, {places}", hidden, f"({hidden}, {tensor(length, DIM)})")
    columns = b.op("nn.iota dim 3 start 0.0 step 1.0", tensor(1, 1, 1, CACHE, dtype="i64"))
    rows = b.op("nn.reshape %positions", tensor(1, 1, length, 1, dtype="i64"), tensor(length, dtype="i64"))
    visible = tensor(1, 1, length, CACHE, dtype="i1")
    mask = b.op(f"nn.compare le {columns}, {rows}", visible, f"({tensor(1, 1, 1, CACHE, dtype='i64')}, {tensor(1, 1, length, 1, dtype='i64')})")
    if masked:
        own, both = tensor(batch, 1, 1, CACHE, dtype="i1"), tensor(batch, 1, length, CACHE, dtype="i1")
        apart = b.op("nn.reshape %mask", own, tensor(batch, CACHE, dtype="i1"))
        mask = b.op(f"nn.logical_and {mask}, {apart}", both, f"({visible}, {own})")
        visible = both
    for i in range(LAYERS):
        query = split(linear(x, f"layers.{i}.query", DIM, DIM), HEADS)
        key, value = (extend_cache(f"{name}_cache_{i}", split(linear(x, f"layers.{i}.{name}", DIM, KEY_HEADS * SIZE), KEY_HEADS))
                      for name in ("key", "value"))
        one, all_ = tensor(batch, HEADS, length, SIZE), tensor(batch, HEADS, CACHE, SIZE)
        y = b.op(f"nn.attention {query}, {key}, {value} mask {mask} scale {SIZE ** -0.5}", one, f"({one}, {all_}, {all_}, {visible})")
        y = b.op(f"nn.transpose {y} [0, 2, 1, 3]", tensor(batch, length, HEADS, SIZE), one)
        y = b.op(f"nn.reshape {y}", hidden, tensor(batch, length, HEADS, SIZE))
        x = add(x, linear(y, f"layers.{i}.out", DIM, DIM))
        up = b.op(f"nn.silu {linear(x, f'layers.{i}.up', DIM, 2 * DIM)}", wide)
        x = add(x, linear(up, f"layers.{i}.down", 2 * DIM, DIM, wide))
    head, result = tensor(VOCABULARY, DIM), tensor(batch, length, VOCABULARY)
    b.lines += [f'  %logits = nn.module "head" class "Linear" ({x} as "input" at 0) {{', f"  ^bb0(%x: {hidden}):",
                f'    %w = nn.parameter "head.weight" : {head}', f"    %0 = nn.linear %x, %w : ({hidden}, {head}) -> {result}",
                f"    nn.yield %0 : {result}", f"  }} : ({hidden}) -> {result}"]
    arguments = [("ids", integers, "input_ids"), ("positions", tensor(length, dtype="i64"), "cache_position")]
    if masked:
        arguments += [("places", integers, "position_ids"), ("mask", tensor(batch, CACHE, dtype="i1"), "attention_mask")]
    signature = ", ".join(f'%{name}: {type} {{tp.name = "{title}"}}' for name, type, title in arguments)
    return "\n".join([f"func.func @main({signature}) -> {result} {{", *b.lines, f"  return %logits : {result}", "}", ""])


PLAN = """mesh: {{tp: {ranks}}}
plan:
  layers.*.query: [Shard(0)]
  layers.*.key: [Shard(0)]
  layers.*.value: [Shard(0)]
  layers.*.out: [Shard(1)]
  layers.*.up: [Shard(0)]
  layers.*.down: [Shard(1)]
  head: ColwiseParallel
"""


def run(*command, environment=None):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, env=environment)
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {process.stderr[:3000]}")
    return process


def compile_programs(folder, plan, batch, masked, *flags):
    """Programs for one token and for eight."""
    (folder / "plan.yaml").write_text(plan)
    programs = []
    for length in 1, 8:
        model, program = folder / "model.mlir", folder / f"length{length}.mlir"
        model.write_text(build_program(batch, length, masked))
        run("tp-opt", model, "-o", program, f"--tp-parallelize=plan={folder / 'plan.yaml'}")
        programs.append(program)
    run("tp-compile", *programs, "-o", folder / "model.tpx", *flags)


def generate(folder, prompts, *flags, environment=None):
    """The new tokens of each prompt, and what is printed."""
    for i, prompt in enumerate(prompts):
        np.save(folder / f"prompt{i}.npy", np.array(prompt))
        flags += ("--prompt-ids", folder / f"prompt{i}.npy")
    process = run("tp-run", folder / "model.tpx", "--weights", folder / "weights.safetensors", "--generate",
                  "--output", folder / "tokens.npy", *flags, environment=environment)
    return np.load(folder / "tokens.npy").tolist(), process.stdout


def check_greedy(folder, weights):
    for length in 1, 5, 8, 13, 20, CACHE:
        prompt = torch.randint(VOCABULARY, (length,)).tolist()
        count = min(8, CACHE + 1 - length)
        expected = continue_greedily(weights, prompt, count)
        tokens, printed = generate(folder, [prompt], "--max-new-tokens", count)
        assert tokens == [expected], (length, tokens, expected)
        assert printed == " ".join(map(str, expected)) + "\n", printed
    tokens, _ = generate(folder, [prompt[:5]], "--max-new-tokens", 8, "--eos", continue_greedily(weights, prompt[:5], 4)[3])
    assert len(tokens[0]) <= 4, tokens


def check_batch(folder, weights):
    for lengths in (5, 5), (2, 9), (12, 7):
        prompts = [torch.randint(VOCABULARY, (length,)).tolist() for length in lengths]
        expected = [continue_greedily(weights, prompt, 6) for prompt in prompts]
        tokens, printed = generate(folder, prompts, "--max-new-tokens", 6)
        assert tokens == expected, (lengths, tokens, expected)
        assert printed.splitlines() == [" ".join(map(str, row)) for row in expected], printed


def check_json(folder):
    generate(folder, [[1, 2, 3]], "--max-new-tokens", 4, "--json", folder / "run.json")
    report = json.loads((folder / "run.json").read_text())
    assert len(report["token_seconds"]["steps"]) == 3 and report["cache_size"] == CACHE, report


def check_devices(folder, weights, fake_cuda):
    """Ranks that share a fake device, and ranks that are processes, choose the same tokens."""
    compile_programs(folder, PLAN.format(ranks=2), 1, False, "--target=cuda:emulated")
    prompt, environment = torch.randint(VOCABULARY, (5,)).tolist(), dict(os.environ, LD_LIBRARY_PATH=fake_cuda)
    for flags in [], ["-n", 2]:
        tokens, printed = generate(folder, [prompt], *flags, "--max-new-tokens", 3, environment=environment)
        assert tokens == [continue_greedily(weights, prompt, 3)] and printed.count("\n") == 1, (flags, tokens, printed)


def main(fake_cuda):
    torch.manual_seed(0)
    weights, drawn = draw_weights(), {}
    for ranks in 1, 2:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            safetensors.torch.save_file(weights, folder / "weights.safetensors")
            compile_programs(folder, PLAN.format(ranks=ranks), 1, masked=False)
            described = run("tp-run", folder / "model.tpx", "--describe").stdout
            assert ranks == 1 or described.count("Shard(2)") == 2, described  # the logits stay split
            check_greedy(folder, weights)
            check_json(folder)
            for options in ["--temperature", 1], ["--temperature", 0.7, "--top-k", 5], ["--temperature", 1.5, "--top-p", 0.8, "--seed", 3]:
                tokens, _ = generate(folder, [[1, 2, 3, 4]], "--max-new-tokens", 16, *options)
                assert drawn.setdefault(str(options), tokens) == tokens, (options, drawn, tokens)
            compile_programs(folder, PLAN.format(ranks=ranks), 2, masked=True)
            check_batch(folder, weights)
            if ranks > 1:
                check_devices(folder, weights, fake_cuda)
        print(f"{ranks} ranks: generate the tokens of PyTorch")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
