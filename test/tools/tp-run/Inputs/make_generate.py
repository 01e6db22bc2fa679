"""Makes the files that the tests of generation and of state use, without tp-compile and NumPy.

usage: make_generate.py DIRECTORY

Writes generate.1.tpx and generate.2.tpx, the hand-written model of the runtime's unit tests over one and two ranks,
batch.tpx, which takes two sequences and a mask, and faulty variants; its weights, prompts, and two tokenizers.
"""

import json
import os
import platform
import sys

from make_toy import compile_program, container, npy, safetensors

VOCABULARY, PLACES = 13, 14


def tensor(name, dtype, shape, ranks, split=False, **members):
    def get_piece(d, size, rank):
        if not split or d + 1 != len(shape):
            return [0, size]
        chunk = -(-size // ranks)
        return [rank * chunk, min(chunk, size - rank * chunk)]
    shards = [[get_piece(d, size, rank) for d, size in enumerate(shape)] for rank in range(ranks)]
    return dict(name=name, dtype=dtype, shape=shape, placements=[], shards=shards, **members)


def make_program(name, length, ranks, masked):
    batch = 2 if masked else 1
    shapes = {"input_ids": [batch, length], "cache_position": [length]}
    if masked:
        shapes |= {"position_ids": [batch, length], "attention_mask": [batch, PLACES]}
    return {"name": name, "entries": [f"{'masked_' * masked}{name}_{ranks}"], "arena_bytes": 0, "parameters": [0, 1, 2],
            "inputs": [tensor(input, "i64", shape, ranks) for input, shape in shapes.items()],
            "outputs": [tensor("output", "f32", [batch, length, VOCABULARY], ranks, split=True)],
            "collectives": [], "ops": []}


def make_manifest(ranks, masked=False):
    state = {"updated": True, "init": 0}
    return {"schema": 5, "producer": "test",
            "target": {"triple": platform.machine() + "-linux-gnu", "cpu": "", "features": []},
            "mesh": {"name": "mesh", "axes": [{"name": "tp", "size": ranks}]}, "world_size": ranks,
            "parameters": [tensor("key_cache_0", "f32", [1 + masked, 1, PLACES, 1], ranks, **state),
                           tensor("cumulative_length_calls", "i64", [2], ranks, **state), tensor("scale", "f32", [], ranks)],
            "programs": [make_program("one", 1, ranks, masked), make_program("four", 4, ranks, masked)]}


def main(directory):
    os.makedirs(directory, exist_ok=True)

    def write(name, data):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)

    code = compile_program("generate.c", os.path.join(directory, "generate.so"))
    for ranks in 1, 2:
        write(f"generate.{ranks}.tpx", container(make_manifest(ranks), code))
    write("batch.tpx", container(make_manifest(2, masked=True), code))
    long = make_manifest(1)
    del long["programs"][0]
    write("long.tpx", container(long, code))
    slow = make_manifest(1)
    slow["programs"][0]["entries"] = ["slow_1"]
    write("slow.tpx", container(slow, code))
    other = json.loads(json.dumps(make_manifest(1)).replace("14", "16"))
    write("other.tpx", container(other, code))

    def write_ids(name, shape, values, code="<i8"):
        write(name, npy(code, shape, values))

    write("w.safetensors", safetensors({"scale": ([], [0.25])}))
    write("nan.safetensors", safetensors({"scale": ([], [float("nan")])}))
    write_ids("three.npy", [3], [1, 2, 3])
    write_ids("three_i4.npy", [1, 3], [1, 2, 3], "<i4")
    write_ids("five.npy", [5], [4, 5, 6, 7, 8])
    write_ids("two_rows.npy", [2, 3], [1, 2, 3, 4, 5, 6])
    write_ids("none.npy", [0], [])
    write_ids("outside.npy", [2], [1, 13])
    write_ids("fifteen.npy", [15], [1] * 15)
    write("floats.npy", npy("<f4", [2], [1, 2]))
    words = {chr(ord("a") + i): i for i in range(VOCABULARY)}
    for name, vocabulary in ("words", words), ("more", words | {"z": VOCABULARY}):
        tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
                     "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"}}
        write(f"{name}.json", json.dumps(tokenizer).encode())
    write_ids("first.npy", [1, 4], [1, 2, 3, 4])
    write_ids("first_at.npy", [4], [0, 1, 2, 3])
    write_ids("next.npy", [1, 1], [5])
    write_ids("next_at.npy", [1], [4])


if __name__ == "__main__":
    main(sys.argv[1])
