"""The transformer of PyTorch's own tensor-parallel tests, under its two plans: as many collectives as those tests assert,
and PyTorch's numbers.

  transformer.py

Exit code 1 when anything differs.
"""

import collections
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

# Each at most, of the forward pass.
CASES = [("whole", WHOLE, {"all_reduce": 6, "all_gather": 1}),
         ("sequence", SEQUENCE, {"reduce_scatter": 6, "all_gather": 6})]


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
        for name, plan, allowed in CASES:
            (folder / "plan.yaml").write_text(plan)
            run("tp-opt", folder / "model.mlir", "-o", folder / "ranks.mlir",
                f"--tp-parallelize=plan={folder / 'plan.yaml'} report={folder / 'report.json'} machine=cpu strict=true")
            run("tp-compile", folder / "ranks.mlir", "-o", folder / "model.tpx")
            run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors",
                "--input", f"tokens={folder / 'tokens.npy'}", "--expect", folder / "expected.npy",
                "--rtol", "1e-4", "--atol", "1e-5", "--json", folder / "run.json")
            report = execution.check_prediction(folder / "report.json", folder / "run.json")
            found = collections.Counter(collective["kind"] for collective in report["collectives"])
            print(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(found.items())))
            failed |= any(count > allowed.get(kind, 0) for kind, count in found.items())
    return failed


if __name__ == "__main__":
    sys.exit(main())
