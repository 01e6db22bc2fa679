# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The decoder of llama_graphs.py in jax, and what Shardy's passes make of it. Runs with the Python of requirements-peers.txt.

    python shardy_llama.py '{"layers": 2, "mesh": [["dp", 2], ["tp", 4]], "sequence": false}' …

prints one line of JSON per configuration: ops before the passes, seconds of each pass (the fastest of `repeat` runs, parsing
excluded), and every collective that is left, with the bytes that a rank receives in it."""

import json
import math
import os
import re
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=64"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir, passmanager

from llama_graphs import Config

PASSES = ["sdy-propagation-pipeline", "sdy-close-shardings",
          "func.func(sdy-insert-explicit-reshards{enable-full-version=true})", "func.func(sdy-reshard-to-collectives)"]


def get_mesh(config):
    devices = np.array(jax.devices()[:math.prod(size for _, size in config.mesh)])
    return Mesh(devices.reshape([size for _, size in config.mesh]), [name for name, _ in config.mesh])


def get_arguments(config):
    mesh, tp, dp = get_mesh(config), config.mesh[-1][0], config.mesh[0][0] if len(config.mesh) > 1 else None

    def placed(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    d, f = config.dim, config.hidden
    layer = {"attention_norm": placed((d,), None), "ffn_norm": placed((d,), None), "wo": placed((d, d), None, tp),
             "w1": placed((f, d), tp, None), "w3": placed((f, d), tp, None), "w2": placed((d, f), None, tp),
             **{name: placed((d, d), tp, None) for name in ("wq", "wk", "wv")}}
    stream = placed((config.batch, config.length, d), dp, tp if config.sequence else None, None)
    table = placed((config.length, 1, config.head_dim // 2), None, None, None)
    return [layer] * config.layers, stream, table, table


def get_function(config):
    heads = (config.batch, config.length, config.heads, config.head_dim)
    mesh, tp, dp = get_mesh(config), config.mesh[-1][0], config.mesh[0][0] if len(config.mesh) > 1 else None
    keeps = np.tril(np.ones((config.length, config.length), bool))

    def place(x, *spec):
        """With sequence parallelism, as a user of jax would write Megatron's scheme down."""
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*spec))) if config.sequence else x

    def norm(x, weight):
        return place(place(x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * weight, dp, tp, None),
                     dp, None, None)

    def rotate(x, cos, sin):
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def function(layers, x, cos, sin):
        for layer in layers:
            h = norm(x, layer["attention_norm"])
            q, k, v = ((h @ layer[name].T).reshape(heads) for name in ("wq", "wk", "wv"))
            scores = jnp.einsum("bqhd,bkhd->bhqk", rotate(q, cos, sin), rotate(k, cos, sin)) * 0.125
            weights = jax.nn.softmax(jnp.where(keeps, scores, -1e9), -1)
            out = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
            x = x + place(out @ layer["wo"].T, dp, tp, None)
            h = norm(x, layer["ffn_norm"])
            x = x + place((jax.nn.silu(h @ layer["w1"].T) * (h @ layer["w3"].T)) @ layer["w2"].T, dp, tp, None)
        return x

    return function


def count_ops(op):
    return sum(1 + count_ops(inner) for region in op.regions for block in region.blocks for inner in block.operations)


def get_axes(text):
    """Names in `{"dp", "tp"}` or `[{"dp"}, {}]`; a part of one, `"tp":(1)2`, as its name and size."""
    return re.findall(r'"(\w+)"(?::\((\d+)\)(\d+))?', text)


def get_collectives(text, mesh):
    sizes = dict(mesh)

    def product(axes):
        return math.prod(int(size) if size else sizes[name] for name, _, size in axes)

    # all_gather and reduce_scatter name axes per dimension, all_to_all as params, all_reduce as a list.
    pattern = re.compile(r"sdy\.(all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute)\s+(.*?)"
                         r"%[\w#]+ (?:out_sharding=)<@\w+, \[(.*?)\](?:, .*?)?> : tensor<([\dx]*)x?f32>")
    collectives = []
    for kind, axes, placement, shape in pattern.findall(text):
        local = 4 * math.prod(map(int, filter(None, shape.split("x")))) // product(get_axes(placement))
        n = product(get_axes(axes))
        received = {"all_reduce": 2 * (n - 1) * local // n, "all_gather": (n - 1) * local // n,
                    "reduce_scatter": (n - 1) * local, "all_to_all": (n - 1) * local // n,
                    "collective_permute": local}[kind]
        collectives.append([kind, received])
    if len(collectives) != len(re.findall(r"= sdy\.(?:all_(?!slice)|reduce_scatter|collective)", text)):
        sys.exit("error: a collective of Shardy's that this script can't read")
    return collectives


def run(options):
    repeat = options.pop("repeat", 1)
    config = Config(**{**options, "mesh": tuple(map(tuple, options["mesh"]))})
    module = jax.jit(get_function(config)).lower(*get_arguments(config)).compiler_ir("stablehlo")
    text = module.operation.get_asm(enable_debug_info=False)
    seconds = {name: [] for name in PASSES}
    with module.context:
        for _ in range(repeat):
            module = ir.Module.parse(text)
            ops = count_ops(module.operation)
            for name in PASSES:
                passes = passmanager.PassManager.parse(f"builtin.module({name})")
                passes.enable_verifier(False)
                start = time.perf_counter()
                passes.run(module.operation)
                seconds[name].append(time.perf_counter() - start)
    result = module.operation.get_asm(enable_debug_info=False)
    return {"layers": config.layers, "ops": ops, "seconds": {name: min(times) for name, times in seconds.items()},
            "collectives": get_collectives(result, config.mesh)}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps(run(json.loads(argument))), flush=True)
