"""Makes training programs and data for tests of tp-run and tp-ckpt.

usage: make_train.py DIRECTORY

Writes train.2.tpx and train.3.tpx, the hand-written linear regression of the
runtime's unit tests over 2 and 3 ranks, and tokens.tpx; weights, arrays of 20
examples, a file of 40 u16 tokens; and faulty variants.
"""

import json
import os
import platform
import struct
import subprocess
import sys

from make_toy import SOURCE, TOY, container, edited, find_compiler, npy, safetensors


def main(directory):
    os.makedirs(directory, exist_ok=True)

    def write(name, data):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)

    shared = os.path.join(directory, "train.so")
    # Without contraction: what a test compares shouldn't depend on it.
    subprocess.run([find_compiler(), "-O1", "-ffp-contract=off", "-fPIC", "-shared",
                    "-I", os.path.join(SOURCE, "include"),
                    os.path.join(TOY, "train.c"), "-o", shared, "-lm"], check=True)
    with open(shared, "rb") as file:
        code = file.read()
    for name in ("train.2", "train.3", "tokens"):
        with open(os.path.join(TOY, name + ".json")) as file:
            manifest = json.load(file)
        manifest["target"]["triple"] = platform.machine() + "-linux-gnu"
        write(name + ".tpx", container(manifest, code))
        if name == "train.2":
            program, = manifest["programs"]
            write("no_loss.tpx", container(
                edited(manifest, outputs=program["outputs"][1:]), code))
            extra = {"name": "extra", "dtype": "f32", "shape": [], "shards": [[], []]}
            write("extra.tpx", container(
                edited(manifest, inputs=program["inputs"] + [extra]), code))
            adam = dict(manifest["parameters"][3], name="optimizer.exp_avg.w")
            write("other.tpx", container(
                dict(manifest, parameters=manifest["parameters"] + [adam]), code))

    x = [((e * 31 + f * f * 17) % 23) / 11 - 1 for e in range(20) for f in range(7)]
    target = [sum((f - 3) * x[e * 7 + f] for f in range(7)) for e in range(20)]
    write("x.npy", npy("<f4", [20, 7], x))
    write("target.npy", npy("<f4", [20], target))
    write("x_f8.npy", npy("<f8", [20, 7], x))
    write("x_wide.npy", npy("<f4", [20, 8], x + x[:20]))
    write("target_short.npy", npy("<f4", [19], target[:19]))
    write("x_few.npy", npy("<f4", [7, 7], x[:49]))
    write("target_few.npy", npy("<f4", [7], target[:7]))
    write("x_nan.npy", npy("<f4", [20, 7], x[:-1] + [float("nan")]))
    write("x_batch.npy", npy("<f4", [8, 7], x[:56]))
    write("target_batch.npy", npy("<f4", [8], target[:8]))
    write("scalar.npy", npy("<f4", [], [1]))
    tokens = [i * i % 13 for i in range(40)]
    write("tokens.bin", struct.pack("<40H", *tokens))
    write("tokens_odd.bin", struct.pack("<40H", *tokens)[:-1])
    write("tokens_few.bin", struct.pack("<12H", *tokens[:12]))
    write("tokens_large.bin", struct.pack("<40H", *tokens[:20], 16, *tokens[21:]))
    good = {"w": ([7], [0, 1, 2, 3, 4, 5, 6]), "b": ([], [-1]), "scale": ([], [0.5])}
    write("w.safetensors", safetensors(good))
    write("w_wild.safetensors", safetensors({**good, "scale": ([], [1e18])}))


if __name__ == "__main__":
    main(sys.argv[1])
