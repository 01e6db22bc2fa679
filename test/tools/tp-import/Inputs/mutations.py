"""Imports damaged copies of a program of torch.export: mutations.py <directory> <count> [<seed>]

A copy with changed bytes is refused, or imported as the original. So is one with removed records. One whose JSON says
something else is refused or imported. No import crashes, hangs, or leaves files behind when it fails.
"""

import json
import pathlib
import random
import subprocess
import sys
import warnings

import torch
from torch import nn

import archive

directory, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
directory.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(8, 4), nn.Linear(4, 3)
        self.register_buffer("scale", torch.rand(3))
        self.register_buffer("shift", torch.rand(3), persistent=False)

    def forward(self, ids, x):
        return {"y": self.proj(self.embed(ids).relu() + x[:, None]) * self.scale + self.shift}


original = directory / "original.pt2"
torch.manual_seed(0)
batch = torch.export.Dim("batch", min=2, max=9)
model = Model()
torch.export.save(torch.export.export(model, (torch.zeros(2, 5, dtype=torch.int64), torch.zeros(2, 4)),
                                      dynamic_shapes={"ids": {0: batch}, "x": {0: batch}}), original)
data = original.read_bytes()


def flip(rng, path):
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    path.write_bytes(changed)


def flip_weight(rng, path):
    value = model.embed.weight.detach().numpy().tobytes()
    changed = bytearray(data)
    changed[data.index(value) + rng.randrange(len(value))] ^= 1 << rng.randrange(8)
    path.write_bytes(changed)


def flip_directory(rng, path):
    """In the names, sizes and places of the records, at the file's end."""
    start = data.index(b"PK\1\2")
    changed = bytearray(data)
    changed[rng.randrange(start, len(changed))] ^= 1 << rng.randrange(8)
    path.write_bytes(changed)


def overwrite(rng, path):
    start = rng.randrange(len(data))
    length = rng.randrange(1, 200)
    path.write_bytes(data[:start] + rng.randbytes(min(length, len(data) - start)) + data[start + length :])


def cut(rng, path):
    start = rng.randrange(len(data))
    path.write_bytes(data[:start] + data[start + rng.randrange(1, len(data)) :])


def drop(rng, path):
    archive.rewrite(original, path, lambda records: records.pop(rng.choice(sorted(records))))


def change_json(rng, path):
    """One member or entry of the program or of the weights' descriptions is removed, repeated or another one."""
    def collect(node, places):
        for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
            places.append((node, key))
            if isinstance(value, (dict, list)):
                collect(value, places)
        return places

    def change(records):
        name = rng.choice(["models/model.json"] * 4 + sorted(name for name in records if name.endswith("_config.json")))
        program = json.loads(records[name])
        places = collect(program, [])
        node, key = rng.choice(places)
        other, other_key = rng.choice(places)
        kind = rng.choice(("remove", "copy", "replace", "repeat"))
        if kind == "remove":
            del node[key]
        elif kind == "copy":
            node[key] = json.loads(json.dumps(other[other_key]))
        elif kind == "repeat" and isinstance(node, list):
            node.insert(key, node[key])
        else:
            node[key] = rng.choice((None, -1, 2**63, 1e300, "", "x", [], {}, True, [[]], {"as_int": 2**40}))
        records[name] = json.dumps(program).encode()

    archive.rewrite(original, path, change)


def run(path):
    """The exit code, the error, and the files that tp-import has written."""
    outputs = directory / "out.mlir", directory / "out.safetensors"
    for output in outputs:
        output.unlink(missing_ok=True)
    process = subprocess.run(["tp-import", path, "-o", outputs[0], "--weights", outputs[1]], capture_output=True, text=True, timeout=120)
    return process.returncode, process.stderr, [output.read_bytes() if output.exists() else None for output in outputs]


def check(name, mutate, path):
    code, error, written = run(path)
    if code not in (0, 1):
        return f"exit code {code}: {error[-1000:]}"
    if code == 1 and (any(written) or error.count("error: ") != 1):
        return f"files or other than one error: {error}"
    if code == 0 and mutate is not change_json and written != expected:
        return "imported as another model"
    refused.append(code == 1)
    return None


code, error, expected = run(original)
assert code == 0, error
failures, refused = 0, []
mutations = (flip, flip_weight, flip_directory, overwrite, cut, drop, change_json, change_json)
for i in range(count):
    rng, mutate = random.Random(seed + i), mutations[i % len(mutations)]
    path = directory / "mutated.pt2"
    mutate(rng, path)
    if why := check(mutate.__name__, mutate, path):
        failures += 1
        kept = directory / f"failed-{seed + i}.pt2"
        path.rename(kept)
        print(f"FAIL {mutate.__name__} {seed + i}: {why} ({kept})")
print(f"{count - failures} of {count} damaged programs are refused or imported rightly, {sum(refused)} of them refused")
sys.exit(failures > 0)
