"""A model with a dynamic length, compiled for several lengths in one artifact, on 1 and 2 ranks, against PyTorch.

  buckets.py

Exit code 1 when anything differs.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn
from torch.export import Dim

from ranks import Ranks

DIM, HEADS, VOCABULARY, LONGEST = 16, 4, 32, 32
BUCKETS = 8, 16


class Causal(nn.Module):
    """Its outputs per token don't depend on later tokens; the mask says which tokens the mean is over."""

    def __init__(self):
        super().__init__()
        self.embed, self.positions = nn.Embedding(VOCABULARY, DIM), nn.Embedding(LONGEST, DIM)
        self.query, self.key, self.value, self.out = (nn.Linear(DIM, DIM) for _ in range(4))
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)
        self.head = nn.Linear(DIM, VOCABULARY)

    def forward(self, ids, mask):
        batch, length = ids.shape
        x = self.embed(ids) + self.positions(torch.arange(length))
        query, key, value = (y.view(batch, length, HEADS, -1).transpose(1, 2) for y in (self.query(x), self.key(x), self.value(x)))
        y = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, DIM))
        x = x + self.down(nn.functional.gelu(self.up(x)))
        mean = (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return {"logits": self.head(x), "halves": x.reshape(batch, 2 * length, DIM // 2), "mean": mean}


PLAN = {"query": "ColwiseParallel", "key": "ColwiseParallel", "value": "ColwiseParallel", "out": "RowwiseParallel",
        "up": "ColwiseParallel", "down": "RowwiseParallel"}


def execute(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)


def run(*command):
    process = execute(*command)
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {process.stderr[:3000]}")


def compile_buckets(folder, ranks):
    (folder / "plan.yaml").write_text(f"mesh: {{tp: {ranks}}}\nplan:" + "".join(f"\n  {name}: {style}" for name, style in PLAN.items()))
    programs = []
    for length in BUCKETS:
        model, program = folder / "model.mlir", folder / f"length{length}.mlir"
        run("tp-import", folder / "model.pt2", "--input", f"ids=2x{length}xi64", "-o", model, "--weights", folder / "model.safetensors")
        run("tp-opt", model, "-o", program, f"--tp-parallelize=plan={folder / 'plan.yaml'} report={program.with_suffix('.json')}")
        programs.append(program)
    run("tp-compile", *programs, "-o", folder / "model.tpx")


def check_report(folder, bucket):
    """The collectives of the program that has run are those that its own report predicts; the weights are its only ones."""
    report, predicted = (json.loads((folder / name).read_text()) for name in ("run.json", f"length{bucket}.json"))
    assert report["program"] == f"length{bucket}", report["program"]
    for rank, expected in zip(report["ranks"], Ranks(predicted), strict=True):
        got = [(each["id"], each["kind"], each["bytes"]) for each in rank["collectives"]]
        assert got == [(each["id"], each["kind"], expected.get_bytes(each["id"])) for each in predicted["collectives"]], got
    return [rank["weight_bytes"] for rank in report["ranks"]]


def check_length(folder, model, length):
    ids, mask = torch.randint(VOCABULARY, (2, length)), torch.ones(2, length)
    mask[1, length // 2:] = 0
    with torch.no_grad():
        expected = model(ids, mask)
    flags = ["--weights", folder / "model.safetensors", "--json", folder / "run.json", "--rtol", "1e-4", "--atol", "1e-5"]
    for name, tensor in {"ids": ids, "mask": mask}.items():
        np.save(folder / f"{name}.npy", tensor.numpy())
        flags += ["--input", f"{name}={folder / name}.npy"]
    for name, tensor in expected.items():
        np.save(folder / f"{name}.npy", tensor.numpy())
        flags += ["--expect", f"{name}={folder / name}.npy"]
    padding = [] if length in BUCKETS else ["--pad", "ids=3", "--pad", "mask=0"]
    if length > max(BUCKETS):
        process = execute("tp-run", folder / "model.tpx", *flags, *padding)
        assert process.returncode == 1 and f"program 'length{max(BUCKETS)}': dimension 1 of input 'ids' is {length}" in process.stderr, process
        return None
    run("tp-run", folder / "model.tpx", *flags, *padding)
    return check_report(folder, min(bucket for bucket in BUCKETS if bucket >= length))


def main():
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    model, length = Causal().eval(), Dim("length", min=2, max=LONGEST)
    program = torch.export.export(model, (torch.zeros(2, 4, dtype=torch.int64), torch.ones(2, 4)),
                                  dynamic_shapes={"ids": {1: length}, "mask": {1: length}})
    for ranks in 1, 2:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            torch.export.save(program, folder / "model.pt2")
            compile_buckets(folder, ranks)
            weights = [check_length(folder, model, length) for length in (8, 16, 11, 5, 2, 20)]
            assert all(each in (weights[0], None) for each in weights), weights
        print(f"{ranks} ranks: {len(weights) - 1} lengths agree, 1 is too long")


if __name__ == "__main__":
    sys.exit(main())
