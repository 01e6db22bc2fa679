#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plans that tp-auto-plan finds, beside plans as Megatron-LM and torchtitan have them, by predicted time.

Models are imported without weights. For each number of ranks, the hand-written plan splits over all ranks. The compiler
may use the same ranks in any way. A ratio above 1.01 ends the script with exit code 1."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch

import short

ROOT = Path(__file__).resolve().parent.parent

GPT2 = {"transformer.wte": "RowwiseParallel",
        "transformer.h.*.attn.c_attn.weight": ["_StridedShard(1, split_factor=3)"],
        "transformer.h.*.attn.c_attn.bias": ["_StridedShard(0, split_factor=3)"],
        "transformer.h.*.attn.c_proj.weight": ["Shard(0)"],
        "transformer.h.*.mlp.c_fc.weight": ["Shard(1)"],
        "transformer.h.*.mlp.c_fc.bias": ["Shard(0)"],
        "transformer.h.*.mlp.c_proj.weight": ["Shard(0)"]}
LLAMA = {"model.embed_tokens": "RowwiseParallel",
         "model.layers.*.self_attn.[qkv]_proj": "ColwiseParallel",
         "model.layers.*.self_attn.o_proj": "RowwiseParallel",
         "model.layers.*.mlp.gate_proj": "ColwiseParallel",
         "model.layers.*.mlp.up_proj": "ColwiseParallel",
         "model.layers.*.mlp.down_proj": "RowwiseParallel",
         "lm_head": {"style": "ColwiseParallel", "output_layouts": "Replicate"}}
BERT = {"encoder.layer.*.attention.self.query": "ColwiseParallel",
        "encoder.layer.*.attention.self.key": "ColwiseParallel",
        "encoder.layer.*.attention.self.value": "ColwiseParallel",
        "encoder.layer.*.attention.output.dense": "RowwiseParallel",
        "encoder.layer.*.intermediate.dense": "ColwiseParallel",
        "encoder.layer.*.output.dense": "RowwiseParallel"}
VIT = {"layers.*.attention.[qkv]_proj": "ColwiseParallel",
       "layers.*.attention.o_proj": "RowwiseParallel",
       "layers.*.mlp.fc1": "ColwiseParallel",
       "layers.*.mlp.fc2": "RowwiseParallel"}


def make_models(layers, batch, tokens):
    """Name, module, keyword inputs, and the hand-written plan."""
    import transformers
    ids = torch.zeros(batch, tokens, dtype=torch.int64)
    common = {"attn_implementation": "sdpa"}
    yield ("GPT-2", transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=layers, n_embd=768, n_head=12, vocab_size=50304, use_cache=False, **common)), {"input_ids": ids}, GPT2)
    yield ("Llama", transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=layers, hidden_size=1024, intermediate_size=2816, num_attention_heads=16, num_key_value_heads=8,
        vocab_size=32000, use_cache=False, **common)), {"input_ids": ids}, LLAMA)
    yield ("BERT", transformers.BertModel(transformers.BertConfig(num_hidden_layers=layers, **common), add_pooling_layer=False),
           {"input_ids": ids}, BERT)
    yield ("ViT", transformers.ViTModel(transformers.ViTConfig(num_hidden_layers=layers, **common), add_pooling_layer=False),
           {"pixel_values": torch.zeros(batch, 3, 224, 224)}, VIT)


def run(command, **options):
    result = subprocess.run([str(part) for part in command], text=True, stderr=subprocess.PIPE, **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")


def predict(tools, model, plan, machine, train, folder):
    (folder / "plan.json").write_text(json.dumps(plan))
    options = f"plan={folder}/plan.json machine={machine} report={folder}/report.json" + (f" train={train}" if train else "")
    run([tools / "tp-opt", model, f"--tp-parallelize={options}", "-o", "/dev/null"])
    prediction = json.loads((folder / "report.json").read_text())["prediction"]
    return prediction["seconds"], max(rank["memory"]["total"] for rank in prediction["by_class"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8], metavar="N")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="by default all")
    parser.add_argument("--machine", default="h100-nvlink", help="as of tp-parallelize (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--train", type=Path, help="a training file: compare training steps")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin")
    short.add_option(parser, ranks=[2], layers=1, tokens=32)
    arguments = parser.parse_args()
    print(f"{'model':8} {'ranks':>5} {'hand-written':>13} {'found':>10} {'ratio':>6} {'search':>8}  mesh")
    worst = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, module, inputs, plan in make_models(arguments.layers, arguments.batch, arguments.tokens):
            if arguments.models and model not in arguments.models:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = module.train() if arguments.train else module.eval()
                torch.export.save(torch.export.export(module, (), inputs, strict=False), folder / "model.pt2")
            run([arguments.bin / "tp-import", folder / "model.pt2", "-o", folder / "model.mlir"])
            for ranks in arguments.ranks:
                hand, _ = predict(arguments.bin, folder / "model.mlir", {"mesh": {"tp": ranks}, "plan": plan}, arguments.machine,
                                  arguments.train, folder)
                begin = time.monotonic()
                options = (f"ranks={ranks} machine={arguments.machine} file={folder}/found.yaml report={folder}/found.json"
                           + (f" train={arguments.train}" if arguments.train else ""))
                run([arguments.bin / "tp-opt", folder / "model.mlir", f"--tp-auto-plan={options}"])
                seconds = time.monotonic() - begin
                found = json.loads((folder / "found.json").read_text())
                ratio = found["seconds"] / hand
                worst = max(worst, ratio)
                mesh = ", ".join(f"{axis['name']}={axis['size']} {axis['role']}" for axis in found["axes"])
                print(f"{model:8} {ranks:5} {hand * 1e3:10.3f} ms {found['seconds'] * 1e3:7.3f} ms {ratio:6.2f} {seconds:6.1f} s  {mesh}",
                      flush=True)
    sys.exit(worst > 1.01 and not arguments.short)


if __name__ == "__main__":
    main()
