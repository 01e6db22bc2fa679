"""The transformer of PyTorch's own tensor-parallel tests, under its two plans: at most as many collectives as those tests
assert, of the forward pass and of a training step with Adam, and PyTorch's numbers. With data parallelism over a second mesh
dimension the step has no more collectives over the first, and beside them only what reduces gradients, all in one with DDP, or gathers parameters.

  transformer.py

Exit code 1 when anything differs.
"""

import collections
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn

import execution

DIM, HEADS, LAYERS, VOCABULARY, LENGTH = 16, 4, 2, 8, 16
RANKS = 4

WHOLE = f"""
mesh: {{tp: {RANKS}}}
plan:
  tok_embeddings: {{style: RowwiseParallel, input_layouts: Replicate, output_layouts: Replicate}}
  pos_embeddings: {{style: RowwiseParallel, input_layouts: Replicate, output_layouts: Replicate}}
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel
  layers.*.feed_forward.w1: ColwiseParallel
  layers.*.feed_forward.w2: RowwiseParallel
  output: {{style: ColwiseParallel, output_layouts: Replicate}}
"""

SEQUENCE = f"""
mesh: {{tp: {RANKS}}}
plan:
  tok_embeddings: {{style: RowwiseParallel, input_layouts: Replicate, output_layouts: Shard(1)}}
  pos_embeddings: {{style: RowwiseParallel, input_layouts: Replicate, output_layouts: Shard(0)}}
  layers.*.attention: {{style: PrepareModuleInput, input_layouts: Shard(1), desired_input_layouts: Replicate}}
  layers.*.attention_norm: SequenceParallel
  layers.*.ffn_norm: SequenceParallel
  norm: SequenceParallel
  layers.*.attention.w[qkv]: {{style: ColwiseParallel, use_local_output: false}}
  layers.*.attention.wo: {{style: RowwiseParallel, output_layouts: Shard(1)}}
  layers.*.feed_forward.w1: {{style: ColwiseParallel, input_layouts: Shard(1)}}
  layers.*.feed_forward.w2: {{style: RowwiseParallel, output_layouts: Shard(1)}}
  output: {{style: ColwiseParallel, input_layouts: Shard(1), output_layouts: Replicate}}
"""

# Each at most: of the forward pass, and of what a training step has beside. PyTorch's backward pass has 9 all-reduces
# without sequence parallelism, and with it 5 reduce-scatters, 6 all-gathers, and 30 all-reduces in Adam. The one
# reduce-scatter more is of the tied embedding's gradient, where PyTorch moves that of the embedding's result, 16 times
# the bytes.
CASES = [("whole", WHOLE, {"all_reduce": 6, "all_gather": 1}, {"all_reduce": 5, "reduce_scatter": 1}),
         ("sequence", SEQUENCE, {"reduce_scatter": 6, "all_gather": 6},
          {"reduce_scatter": 6, "all_gather": 5, "all_reduce": 1})]

DATA = ["ddp", "{style: fsdp, reshard_after_forward: false}", "fsdp"]

TRAIN = "loss: mse\noptimizer: {name: Adam, lr: 0.01, eps: 1.0e-3}\n"
STEPS = 5


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (w(x).view(batch, length, HEADS, DIM // HEADS).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(batch, length, DIM))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        return self.w2(nn.functional.gelu(self.w1(x)))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embeddings, self.pos_embeddings = nn.Embedding(VOCABULARY, DIM), nn.Embedding(LENGTH, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.output = nn.Linear(DIM, VOCABULARY, bias=False)
        self.output.weight = self.tok_embeddings.weight

    def forward(self, tokens):
        x = self.tok_embeddings(tokens) + self.pos_embeddings(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def run(*command):
    subprocess.run([str(word) for word in command], check=True, timeout=300)


def train(model, tokens, target):
    """The losses of PyTorch."""
    model = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    losses = []
    with torch.enable_grad():
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(tokens), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def train_over_ranks(folder, plan):
    """The report of a training step, and the losses of some."""
    (folder / "plan.yaml").write_text(plan)
    run("tp-opt", folder / "model.mlir", "-o", folder / "step.mlir",
        f"--tp-parallelize=plan={folder / 'plan.yaml'} train={folder / 'train.yaml'} report={folder / 'step.json'}")
    run("tp-compile", folder / "step.mlir", "-o", folder / "step.tpx")
    run("tp-run", folder / "step.tpx", "--weights", folder / "model.safetensors", "--data",
        f"tokens={folder / 'tokens.npy'}", "--data", f"target={folder / 'target.npy'}", "--steps", STEPS,
        "--no-shuffle", "--metrics", folder / "metrics.jsonl")
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return json.loads((folder / "step.json").read_text()), losses


def is_wrong(name, losses, expected):
    if np.allclose(losses, expected, rtol=1e-4):
        return False
    print(f"{name}: losses {losses}, must be {expected}")
    return True


def count(report, axis=""):
    """The collectives of each kind, over mesh dimension `axis` alone or with others."""
    return collections.Counter(collective["kind"] for collective in report["collectives"]
                               if axis in collective["mesh_dim"])


def describe(found):
    return ", ".join(f"{number} {kind}" for kind, number in sorted(found.items()))


def is_above(found, allowed):
    return any(number > allowed.get(kind, 0) for kind, number in found.items())


def main():
    torch.manual_seed(0)
    model = Transformer().eval()
    tokens = torch.randint(VOCABULARY, (8, 8))
    failed = False
    with tempfile.TemporaryDirectory() as temporary, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = pathlib.Path(temporary)
        torch.jit.trace(model, tokens).save(folder / "model.pt")
        np.save(folder / "tokens.npy", tokens.numpy())
        np.save(folder / "expected.npy", model(tokens).numpy())
        run("tp-import", folder / "model.pt", "--input", "tokens=8x8xi64", "-o", folder / "model.mlir",
            "--weights", folder / "model.safetensors")
        (folder / "train.yaml").write_text(TRAIN)
        target = torch.randn(8, 8, VOCABULARY)
        np.save(folder / "target.npy", target.numpy())
        losses = train(model, tokens, target)
        for name, plan, allowed, more in CASES:
            (folder / "plan.yaml").write_text(plan)
            run("tp-opt", folder / "model.mlir", "-o", folder / "ranks.mlir",
                f"--tp-parallelize=plan={folder / 'plan.yaml'} report={folder / 'report.json'} machine=cpu strict=true")
            run("tp-compile", folder / "ranks.mlir", "-o", folder / "model.tpx")
            run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors",
                "--input", f"tokens={folder / 'tokens.npy'}", "--expect", folder / "expected.npy",
                "--rtol", "1e-4", "--atol", "1e-5", "--json", folder / "run.json")
            report = execution.check_prediction(folder / "report.json", folder / "run.json")
            found = count(report)
            failed |= is_above(found, allowed)
            print(f"{name}: {describe(found)}")

            step, ours = train_over_ranks(folder, plan)
            failed |= is_wrong(name, ours, losses)
            beside = count(step) - found
            failed |= is_above(beside, more)
            print(f"{name}, training: {describe(beside)} more")
            for data in DATA:
                mesh = f"mesh: {{dp: 2, tp: {RANKS}}}\ndata_parallel: {{dp: {data}}}"
                both, ours = train_over_ranks(folder, plan.replace(f"mesh: {{tp: {RANKS}}}", mesh))
                failed |= is_wrong(f"{name}, {data}", ours, losses)
                over_tp, over_dp = count(both, "tp"), count(both) - count(both, "tp")
                # Of FSDP's gradients those over both dimensions join no bucket of those over one.
                failed |= over_tp.total() > count(step).total() + (data != "ddp")
                failed |= data == "ddp" and is_above(over_dp, {"all_reduce": 1})
                print(f"{name}, {data}: {describe(over_tp)} over tp; {describe(over_dp)} over dp alone")
    return failed


if __name__ == "__main__":
    sys.exit(main())
