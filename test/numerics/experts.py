"""Mixtures of experts of transformers from end to end: exported, imported, split by their own plans, compiled and run on 1, 2 and 4
ranks, against PyTorch; and trained.

  experts.py [MODEL…]

Exit code 1 when anything differs.
"""

import copy
import json
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn

from exported import Logits, run, train_compiled, train_with_torch

BASE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 96,
        "max_position_embeddings": 64, "use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DEEPSEEK = {"intermediate_size": 48, "moe_intermediate_size": 32, "n_routed_experts": 8, "num_experts_per_tok": 2,
            "n_shared_experts": 1, "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1, "kv_lora_rank": 16, "q_lora_rank": 24,
            "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16}
# GPT-OSS has no tp_plan of its own. Gate and up projection are interleaved.
GPT_OSS = {"model.layers.*.self_attn.q_proj": "colwise", "model.layers.*.self_attn.k_proj": "colwise",
           "model.layers.*.self_attn.v_proj": "colwise", "model.layers.*.self_attn.sinks": ["Shard(0)"],
           "model.layers.*.self_attn.o_proj": "rowwise", "model.layers.*.mlp.experts.gate_up_proj": ["Shard(2)"],
           "model.layers.*.mlp.experts.gate_up_proj_bias": ["Shard(1)"], "model.layers.*.mlp.experts.down_proj": ["Shard(1)"],
           "model.layers.*.mlp.experts": "moe_tp_experts"}


def make_models():
    import transformers as t

    return {
        "mixtral": lambda: t.MixtralForCausalLM(t.MixtralConfig(**BASE, intermediate_size=48, num_local_experts=4, num_experts_per_tok=2)),
        "qwen2-moe": lambda: t.Qwen2MoeForCausalLM(t.Qwen2MoeConfig(
            **BASE, intermediate_size=48, moe_intermediate_size=32, shared_expert_intermediate_size=40, num_experts=4, num_experts_per_tok=2)),
        "qwen3-moe": lambda: t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(
            **BASE, head_dim=16, intermediate_size=48, moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2)),
        "olmoe": lambda: t.OlmoeForCausalLM(t.OlmoeConfig(**BASE, intermediate_size=48, num_experts=4, num_experts_per_tok=2)),
        "gpt-oss": lambda: t.GptOssForCausalLM(t.GptOssConfig(
            **BASE, head_dim=16, intermediate_size=48, num_local_experts=4, num_experts_per_tok=2, sliding_window=4)),
        "deepseek-v2": lambda: t.DeepseekV2ForCausalLM(t.DeepseekV2Config(**BASE, **DEEPSEEK, topk_method="group_limited_greedy")),
        "deepseek-v3": lambda: t.DeepseekV3ForCausalLM(t.DeepseekV3Config(**BASE, **DEEPSEEK)),
    }


def make_blocks():
    """Only the experts and their routers, in the groups that DeepSeek chooses first."""
    models = make_models()
    return {f"{name}-block": lambda name=name: models[name]().model.layers[1].mlp for name in ("deepseek-v2", "deepseek-v3")}


class Case:
    """An exported and imported module, in a folder of its own."""

    def __init__(self, folder, module, inputs):
        self.folder, self.inputs = folder, inputs
        folder.mkdir()
        torch.export.save(torch.export.export(module, tuple(inputs.values())), folder / "model.pt2")
        run("tp-import", folder / "model.pt2", "-o", folder / "model.mlir", "--weights", folder / "model.safetensors")
        for name, tensor in inputs.items():
            np.save(folder / f"{name}.npy", tensor.numpy())

    def compile(self, ranks, plan, options=""):
        (self.folder / "plan.json").write_text(json.dumps({"mesh": {"tp": ranks}, "match": "hf", "plan": plan}))
        run("tp-opt", self.folder / "model.mlir", "-o", self.folder / "ranks.mlir",
            f"--tp-parallelize=plan={self.folder / 'plan.json'} report={self.folder / 'report.json'} {options}")
        run("tp-compile", self.folder / "ranks.mlir", "-o", self.folder / "model.tpx")

    def run(self, expected):
        np.save(self.folder / "expected.npy", expected.numpy())
        flags = [flag for name in self.inputs for flag in ("--input", f"{name}={self.folder / name}.npy")]
        run("tp-run", self.folder / "model.tpx", "--weights", self.folder / "model.safetensors", *flags,
            "--expect", self.folder / "expected.npy", "--rtol", "1e-4", "--atol", "1e-5")

    def get_collectives(self):
        """Kind and module of each collective of the experts."""
        report = json.loads((self.folder / "report.json").read_text())
        return [(each["kind"], each["fqn"].removeprefix("model.model.")) for each in report["collectives"]
                if "experts" in each["fqn"] or ".mlp" in each["fqn"]]


def disturb(module):
    """Routers must decide, also those that begin with zeros."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.02)


def check(folder, name, module, inputs, plan, form=""):
    """One all-reduce adds the results of a layer's experts."""
    with torch.no_grad():
        expected = module(*inputs.values())
    case, collectives = Case(folder / f"{name}{form}", module, inputs), []
    for ranks in 1, 2, 4:
        case.compile(ranks, plan)
        case.run(expected)
        collectives.append(case.get_collectives())
    assert collectives[1] == collectives[2], collectives
    print(f"{name}{form} agrees on 1, 2 and 4 ranks")
    for kind, fqn in collectives[1]:
        print(f"  {kind} {fqn}")


def check_model(folder, name, make):
    torch.manual_seed(0)
    model, ids = make().eval(), torch.randint(BASE["vocab_size"], (2, 8))
    disturb(model)
    plan = GPT_OSS if name == "gpt-oss" else model.tp_plan
    check(folder, name, Logits(model), {"ids": ids}, plan)
    if name == "mixtral":
        check(folder, name, Logits(model), {"ids": ids}, {**plan, **model.ep_plan}, "-split-by-expert")
        model.set_experts_implementation("batched_mm")
        check(folder, name, Logits(model), {"ids": ids}, plan, "-batched-mm")


def check_block(folder, name, make):
    torch.manual_seed(0)
    block = make().eval()
    block.experts.config._experts_implementation = "grouped_mm"
    disturb(block)
    plan = {"experts.gate_up_proj": "packed_colwise", "experts.down_proj": "rowwise", "experts": "moe_tp_experts",
            "shared_experts.gate_proj": "colwise", "shared_experts.up_proj": "colwise", "shared_experts.down_proj": "rowwise"}
    check(folder, name, block, {"hidden_states": torch.randn(2, 8, BASE["hidden_size"])}, plan)


def train(folder, make):
    """Steps of Adam: the losses are those of PyTorch."""
    torch.manual_seed(0)
    model, ids = make().train(), torch.randint(BASE["vocab_size"], (4, 8))
    target = torch.randn(4, 8, BASE["vocab_size"])
    case = Case(folder / "training", Logits(model), {"ids": ids})
    trained = Logits(copy.deepcopy(model))
    losses = train_with_torch(trained, (ids,), target, torch.optim.Adam(trained.parameters(), lr=0.01, eps=1e-3), steps=4)
    (case.folder / "train.yaml").write_text("loss: mse\noptimizer: {name: Adam, lr: 0.01, eps: 1.0e-3}\n")
    for ranks in 1, 2, 4:
        case.compile(ranks, model.tp_plan, f"train={case.folder / 'train.yaml'}")
        np.testing.assert_allclose(train_compiled(case.folder, {"ids": ids}, target, len(losses)), losses, rtol=1e-4)
    print(f"training: {len(losses)} losses agree on 1, 2 and 4 ranks")


def main():
    warnings.simplefilter("ignore")
    models, blocks = make_models(), make_blocks()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in sys.argv[1:] or ["mixtral", "gpt-oss", *blocks]:
            if name in blocks:
                check_block(folder, name, blocks[name])
            else:
                check_model(folder, name, models[name])
        if len(sys.argv) == 1:
            train(folder, models["mixtral"])


if __name__ == "__main__":
    sys.exit(main())
