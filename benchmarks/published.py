#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted beside published: training steps of Llama models that torchtitan's developers measured on up to 128 GPUs.

A row is a model's configuration, a mesh, a batch and a machine: the model is built on PyTorch's meta device, so neither weights nor a
GPU are needed. Prints, for each row, the tokens that a GPU processes per second and the memory that it needs, predicted and published,
and the ratios of the two. Nothing is chosen per row: what a machine's preset is calibrated by is in docs/Prediction.md, which also has
the table and what can't be predicted. PyTorch without torch.compile is a machine with `fusion: false`.

    .venv/bin/python benchmarks/published.py
"""

import argparse
import dataclasses
import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import short
import tp_tools
from llama import model as llama

H100, A100 = "h100-96gb-hbm2e", "a100-nvlink"
# torchtitan's files that have the figures.
H100_TABLES = "benchmarks/llama3_h100_202412_torchtitan.md"
PERFORMANCE = "docs/performance.md"

MODELS = {
    "Llama 3 8B": llama.Config(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, hidden_dim=14336, vocab_size=128256, max_seq_len=8192),
    "Llama 3 70B": llama.Config(dim=8192, n_layers=80, n_heads=64, n_kv_heads=8, hidden_dim=28672, vocab_size=128256, max_seq_len=8192),
    "Llama 2 13B": llama.Config(dim=5120, n_layers=40, n_heads=40, n_kv_heads=40, hidden_dim=13824, vocab_size=32000, max_seq_len=4096),
    "Llama 2 70B": llama.Config(dim=8192, n_layers=80, n_heads=64, n_kv_heads=8, hidden_dim=28672, vocab_size=32000, max_seq_len=4096),
}

# By name, as torchtitan calls it: what the backward pass computes again. Of the products of a block, `selective op` keeps every
# second one in the order in which they are computed, and attention; `selective layer` computes every second block again.
CHECKPOINTS = {
    "none": lambda layers: {},
    "full": lambda layers: {"checkpoint": ["layers.*"]},
    "selective layer": lambda layers: {"checkpoint": [f"layers.{layer}" for layer in range(1, layers, 2)]},
    "selective op": lambda layers: {"checkpoint": ["layers.*"],
                                    "keep": [f"layers.*.{name}" for name in ("attention.wq", "attention.wv", "attention.sdpa",
                                                                             "feed_forward.w1", "feed_forward.w2")]},
}


@dataclass(frozen=True)
class Row:
    source: str  # the file of torchtitan, and the table in it
    model: str
    dp: int  # ranks that FSDP splits over
    batch: int  # sequences of each rank
    checkpoint: str
    compiled: bool  # torch.compile
    machine: str
    tokens: float  # published: per second and GPU
    memory: float | None = None  # published: GiB
    calibrates: bool = False  # the row that the machine's preset is calibrated by

    @property
    def name(self):
        return f"{self.model}, FSDP {self.dp}, batch {self.batch}, {self.checkpoint}, {'compiled' if self.compiled else 'eager'}"


ROWS = [
    Row(f"{H100_TABLES} 1", "Llama 3 8B", 8, 2, "selective op", True, H100, 6667, 77.0, calibrates=True),
    Row(f"{H100_TABLES} 1", "Llama 3 8B", 8, 2, "selective op", False, H100, 5762, 82.4),
    Row(f"{H100_TABLES} 3", "Llama 3 8B", 128, 2, "selective op", True, H100, 6514, 62.0),
    Row(f"{H100_TABLES} 3", "Llama 3 8B", 128, 2, "selective op", False, H100, 5605, 67.0),
    Row(f"{PERFORMANCE} 2", "Llama 3 8B", 64, 1, "selective op", False, A100, 2973, calibrates=True),
    Row(f"{PERFORMANCE} 2", "Llama 3 8B", 64, 1, "selective layer", False, A100, 2904),
    Row(f"{PERFORMANCE} 2", "Llama 3 70B", 64, 1, "full", False, A100, 331),
    Row(f"{PERFORMANCE} 3", "Llama 2 13B", 64, 2, "none", False, A100, 2162),
    Row(f"{PERFORMANCE} 3", "Llama 2 13B", 64, 2, "selective layer", False, A100, 1914),
    Row(f"{PERFORMANCE} 3", "Llama 2 13B", 64, 2, "selective op", False, A100, 1904),
    Row(f"{PERFORMANCE} 3", "Llama 2 70B", 64, 1, "selective op", False, A100, 355),
    Row(f"{PERFORMANCE} 3", "Llama 2 70B", 64, 2, "full", False, A100, 353),
]


class ScaledDotProduct(nn.Module):
    """A module of its own, so that a training file can name it."""

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class Attention(llama.Attention):
    def __init__(self, config):
        super().__init__(config)
        self.sdpa = ScaledDotProduct()

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q, k, v = (linear(x).view(batch, length, -1, self.head_dim) for linear in (self.wq, self.wk, self.wv))
        q, k = llama.rotate(q, cos, sin), llama.rotate(k, cos, sin)
        y = self.sdpa(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        return self.wo(y.transpose(1, 2).contiguous().view(batch, length, -1))


def build(config):
    with torch.device("meta"):
        model = llama.Llama(config)
        for block in model.layers:
            block.attention = Attention(config)
    return model


class Predictor:
    """Imports models, and predicts rows; what two rows have in common is made once."""

    def __init__(self, tools):
        self.tools = tools
        self.imported = {}
        self.machines = {}

    def import_model(self, row, config):
        shape = row.dp * row.batch, config.max_seq_len
        key = config, shape
        if key not in self.imported:
            with torch.device("meta"):
                ids = torch.zeros(shape, dtype=torch.long)
            path = self.tools.out / f"{row.model.replace(' ', '-')}-{shape[0]}.pt2"
            tp_tools.tp_trace.export(build(config), (ids,), path)
            self.tools.call("tp-import", path, "--signature", path.with_suffix(".signature.json"), "-o", path.with_suffix(".mlir"))
            self.imported[key] = path.with_suffix(".mlir")
        return self.imported[key]

    def get_machine(self, row):
        """The row's preset; for PyTorch without torch.compile, a file of the same machine without fusion."""
        if row.compiled:
            return row.machine
        if row.machine not in self.machines:
            program, report = self.tools.out / "empty.mlir", self.tools.out / "empty.json"
            program.write_text("tp.mesh @mesh(dp = 1)\nfunc.func @main() {\n  return\n}\n")
            self.tools.call("tp-opt", program, f"--tp-report=file={report} machine={row.machine}", "-o", "/dev/null")
            machine = json.loads(report.read_text())["prediction"]["machine"]
            machine["device"]["fusion"] = False
            path = self.tools.out / f"{row.machine}-eager.json"
            path.write_text(json.dumps(machine, indent=1))
            self.machines[row.machine] = path
        return self.machines[row.machine]

    def predict(self, row, config):
        """The report of the row's training step."""
        folder = self.tools.out / re.sub(r"\W+", "-", f"{row.name}-{row.machine}")
        folder.mkdir(exist_ok=True)
        plan = {"mesh": {"dp": row.dp}, "data_parallel": {"dp": "fsdp"}}
        training = {"loss": "cross_entropy", "optimizer": {"name": "AdamW", "lr": 3e-4, "weight_decay": 0.1}, "clip_grad_norm": 1.0,
                    "compute": "bf16"} | CHECKPOINTS[row.checkpoint](config.n_layers)
        (folder / "plan.yaml").write_text(json.dumps(plan, indent=1))
        (folder / "train.yaml").write_text(json.dumps(training, indent=1))
        self.tools.call("tp-opt", self.import_model(row, config), "-o", folder / "ranks.mlir",
                        f"--tp-parallelize=plan={folder / 'plan.yaml'} train={folder / 'train.yaml'} machine={self.get_machine(row)}"
                        f" report={folder / 'report.json'} overlap")
        return json.loads((folder / "report.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    tp_tools.add_folders(parser, "published")
    parser.add_argument("--rows", default="", help="a regular expression: only rows whose names it matches")
    parser.add_argument("--layers", type=int, help="of each model, instead of all; the published figures are then no comparison")
    short.add_option(parser, rows="8B, FSDP (8|128), .*compiled", layers=2)
    arguments = parser.parse_args()
    predictor = Predictor(tp_tools.Tools(arguments.bin, arguments.out, echo=False))

    print("| row | tokens/s a GPU: predicted | published | ratio | GiB: predicted | published | ratio |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for row in ROWS:
        if not re.search(arguments.rows, row.name):
            continue
        config = MODELS[row.model]
        if arguments.layers:
            config = dataclasses.replace(config, n_layers=arguments.layers)
        begin = time.monotonic()
        prediction = predictor.predict(row, config)["prediction"]
        tokens = row.batch * config.max_seq_len / prediction["seconds"]
        memory = max(rank["memory"]["total"] for rank in prediction["by_class"]) / 2**30
        print(f"| {row.name}{' (calibrates)' if row.calibrates else ''} | {tokens:.0f} | {row.tokens:.0f} | {tokens / row.tokens:.2f} |"
              f" {memory:.1f} | " + (f"{row.memory:.1f} | {memory / row.memory:.2f} |" if row.memory else "| |"), flush=True)
        print(f"{row.name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
