"""Makes the files that the tests of tp-run use, without tp-compile and NumPy.

usage: make_toy.py DIRECTORY

Writes toy.tpx, the hand-written program y = x * w + b over two ranks of the
runtime's unit tests, its weights and inputs, and one faulty variant of each.
"""

import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import zlib

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "..", "..", "..", "..", "runtime")
TOY = os.path.join(SOURCE, "unittests", "Inputs")


def container(manifest, shared_object, abi=8):
    text = json.dumps(manifest).encode()
    crc = zlib.crc32(text + shared_object)
    header = b"TPMLIRX\0" + struct.pack("<IIQQII", abi, 0, len(text),
                                        len(shared_object), crc, 0)
    return header + text + shared_object


def edited(manifest, **members):
    """The manifest with other members of its program."""
    return dict(manifest, programs=[dict(manifest["programs"][0], **members)])


def make_buckets(manifest):
    """Two programs that share the parameters, for an x of 2 rows and of 4; the latter calls y z."""
    program, = manifest["programs"]
    tensors = {"inputs": ["s0", "4"], "outputs": ["s0", "3"]}
    short = dict(program, name="short")
    for key, sizes in tensors.items():
        short[key] = [dict(program[key][0], symbolic_shape=sizes)]
    large = dict(short, name="long", entries=["four_rows"])
    for key, name in ("inputs", "x"), ("outputs", "z"):
        tensor, = short[key]
        shards = [[[0, 4]] + shard[1:] for shard in tensor["shards"]]
        large[key] = [dict(tensor, name=name, shape=[4] + tensor["shape"][1:], shards=shards)]
    shapes = [[4, 3], [4, 3]]
    large["collectives"] = [dict(collective, operand_shapes=shapes, result_shapes=shapes, bytes_by_rank=[48, 48])
                            for collective in program["collectives"]]
    return dict(manifest, programs=[short, large])


def npy(code, shape, values):
    dims = "".join(f"{size}, " for size in shape)
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({dims}), }}"
    header = header.ljust(117) + "\n"
    kind = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q"}[code]
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
            header.encode() + struct.pack(f"<{len(values)}{kind}", *values))


def safetensors(tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        block = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(block)]}
        data += block
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def compile_program(source, path):
    """The shared object of a program in C of the unit tests."""
    subprocess.run([find_compiler(), "-O1", "-fPIC", "-shared", "-I", os.path.join(SOURCE, "include"),
                    os.path.join(TOY, source), "-o", path], check=True)
    with open(path, "rb") as file:
        return file.read()


def find_compiler():
    for name in (os.environ.get("CC", ""), "clang-22", "clang", "cc", "gcc"):
        if name and shutil.which(name):
            return name
    sys.exit("make_toy.py: no C compiler")


def main(directory):
    os.makedirs(directory, exist_ok=True)

    def write(name, data):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)

    code = compile_program("toy.c", os.path.join(directory, "toy.so"))
    with open(os.path.join(TOY, "toy.json")) as file:
        manifest = json.load(file)
    manifest["target"]["triple"] = platform.machine() + "-linux-gnu"

    toy = container(manifest, code)
    write("toy.tpx", toy)
    write("truncated.tpx", toy[:100])
    write("corrupt.tpx", toy[:-1] + bytes([toy[-1] ^ 1]))
    write("version.tpx", container(manifest, code, abi=1))
    write("foreign.tpx", b"PK\3\4, an archive of another kind")
    write("fail.tpx", container(edited(manifest, entries=["fail_index"]), code))
    write("hang.tpx", container(edited(manifest, entries=["fail_hang"]), code))
    output, = manifest["programs"][0]["outputs"]
    write("two.tpx", container(
        edited(manifest, outputs=[output, dict(output, name="z")]), code))
    write("slash.tpx", container(
        edited(manifest, outputs=[dict(output, name="../y")]), code))

    write("buckets.tpx", container(make_buckets(manifest), code))

    x, y = [1, 2, 3, 4, 5, 6, 7, 8], [15, 26, 37, 23, 34, 45]
    w, b = [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1], [10, 20, 30]
    write("x.npy", npy("<f4", [2, 4], x))
    write("x_f8.npy", npy("<f8", [2, 4], x))
    write("x_shape.npy", npy("<f4", [4, 2], x))
    write("x_truncated.npy", npy("<f4", [2, 4], x)[:-1])
    write("y.npy", npy("<f4", [2, 3], y))
    write("x4.npy", npy("<f4", [4, 4], list(range(1, 17))))
    write("x3.npy", npy("<f4", [3, 4], list(range(1, 13))))
    write("x5.npy", npy("<f4", [5, 4], list(range(1, 21))))
    write("z.npy", npy("<f4", [4, 3], y + [31, 42, 53, 39, 50, 61]))
    write("z3.npy", npy("<f4", [3, 3], y + [31, 42, 53]))
    write("y_close.npy", npy("<f4", [2, 3], [15.001] + y[1:]))
    write("y_nan.npy", npy("<f4", [2, 3], y[:5] + [float("nan")]))
    write("y_shape.npy", npy("<f4", [6], y))
    good = {"w": ([4, 3], w), "b": ([3], b)}
    write("w.safetensors", safetensors(good))
    write("w_more.safetensors", safetensors({**good, "extra": ([1], [0])}))
    write("w_wrong.safetensors", safetensors({"w": ([3, 4], w), "bias": ([3], b)}))
    write("w_truncated.safetensors", safetensors(good)[:-4])

    # A model of many layers, weights of another model, and weights some of which have another type.
    many = [dict(manifest["parameters"][1], name=f"layers.{i}.w") for i in range(60)]
    write("many.tpx", container(dict(manifest, parameters=many), code))
    write("other.safetensors", safetensors({f"blocks.{i}.w": ([3], b) for i in range(59)}))
    write("wrong.safetensors", safetensors({f"layers.{i}.w": ([4], b + [0]) if i < 20 else ([3], b) for i in range(60)}))


if __name__ == "__main__":
    main(sys.argv[1])
