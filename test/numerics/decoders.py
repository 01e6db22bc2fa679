"""Decoders of transformers generate what `model.generate()` gives, on 1, 2 and 4 ranks: greedy tokens, those of a batch of prompts of
different lengths, and sampled tokens, which are the same on all numbers of ranks.

  decoders.py [NAME…]

Exit code 1 when anything differs.
"""

import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/tp-import"))
import tp_generation
from exported import run

VOCABULARY, CACHE, BUCKET, NEW = 256, 84, 16, 64  # the longest text fills the cache
PROMPTS = [21, 9]  # one more than a bucket, one less
SAMPLING = ["--temperature", 0.9, "--top-k", 40, "--top-p", 0.95, "--seed", 3]

SIZES = {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4,
         "vocab_size": VOCABULARY, "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0,
         "initializer_range": 0.15}  # so that texts vary
HEADS = {"head_dim": 16}
WINDOW = {"sliding_window": 12}  # less than a prompt


MODELS = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_embd=64, n_head=4, vocab_size=VOCABULARY, n_positions=128, bos_token_id=None, eos_token_id=None, pad_token_id=0,
        initializer_range=0.15)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SIZES)),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SIZES, **HEADS)),
    "gemma2": lambda: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**SIZES, **HEADS, **WINDOW, query_pre_attn_scalar=16)),
    "gemma3": lambda: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        **SIZES, **HEADS, **WINDOW, query_pre_attn_scalar=16, layer_types=["sliding_attention", "full_attention"])),
    "phi3": lambda: transformers.Phi3ForCausalLM(transformers.Phi3Config(**SIZES, **WINDOW)),
    # Its keys and values have different sizes.
    "deepseek_v3": lambda: transformers.DeepseekV3ForCausalLM(transformers.DeepseekV3Config(
        **SIZES, moe_intermediate_size=32, n_routed_experts=8, num_experts_per_tok=2, n_group=2, topk_group=1, first_k_dense_replace=1,
        kv_lora_rank=16, q_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=12)),
    "mixtral": lambda: transformers.MixtralForCausalLM(transformers.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2)),
}


def make(name):
    torch.manual_seed(0)
    return MODELS[name]().eval()


# Its projections aren't nn.Linear, so its parameters are split.
GPT2_PLAN = {"transformer.h.*.attn.c_attn.weight": '["_StridedShard(1, split_factor=3)"]',
             "transformer.h.*.attn.c_attn.bias": '["_StridedShard(0, split_factor=3)"]',
             "transformer.h.*.attn.c_proj.weight": "[Shard(0)]", "transformer.h.*.mlp.c_fc.weight": "[Shard(1)]",
             "transformer.h.*.mlp.c_fc.bias": "[Shard(0)]", "transformer.h.*.mlp.c_proj.weight": "[Shard(0)]"}


def get_plan(model, ranks):
    """The model's own, with the logits left where they are."""
    plan = {name: style for name, style in (model.tp_plan or GPT2_PLAN).items() if name != "lm_head"}
    lines = [f'  "model.{name}": {style}' for name, style in plan.items()]
    lines.append("  model.lm_head: {style: ColwiseParallel, output_layouts: Shard(-1), use_local_output: false}")
    return f"mesh: {{tp: {ranks}}}\nmatch: hf\nplan:\n" + "\n".join(lines) + "\n"


class Decoder:
    """The programs of a model: imported once, compiled for a number of ranks by compile()."""

    def __init__(self, folder, model, **options):
        self.folder, self.model = folder, model
        self.archives = tp_generation.export(model, folder, cache_length=CACHE, prompt_lengths=[BUCKET], **options)
        for archive in self.archives:
            run("tp-import", archive, "-o", archive.with_suffix(".mlir"), "--weights", folder / "model.safetensors")

    def compile(self, ranks):
        plan, programs = self.folder / "plan.yaml", []
        plan.write_text(get_plan(self.model, ranks))
        (self.folder / "ranks").mkdir(exist_ok=True)
        for archive in self.archives:
            programs.append(self.folder / "ranks" / f"{archive.stem}.mlir")
            run("tp-opt", archive.with_suffix(".mlir"), f"--tp-parallelize=plan={plan}", "-o", programs[-1])
        run("tp-compile", *programs, "-o", self.folder / "model.tpx")

    def generate(self, prompts, *options):
        """The new tokens, a row for each prompt."""
        flags = []
        for i, prompt in enumerate(prompts):
            np.save(self.folder / f"prompt{i}.npy", prompt.numpy())
            flags += ["--prompt-ids", self.folder / f"prompt{i}.npy"]
        run("tp-run", self.folder / "model.tpx", "--weights", self.folder / "model.safetensors", "--generate", *flags,
            "--max-new-tokens", NEW, *options, "--output", self.folder / "tokens.npy")
        return np.load(self.folder / "tokens.npy")


def generate_with_torch(model, prompts):
    """Greedy tokens; shorter prompts are padded at their beginning."""
    longest = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(len(prompts), longest, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for i, prompt in enumerate(prompts):
        ids[i, longest - len(prompt):], mask[i, longest - len(prompt):] = prompt, 1
    with torch.inference_mode():
        return model.generate(ids, attention_mask=mask, max_new_tokens=NEW, do_sample=False)[:, longest:].numpy()


def check(folder, name, padded):
    model = make(name)
    prompts = [torch.randint(VOCABULARY, (length,)) for length in (PROMPTS if padded else PROMPTS[:1])]
    expected = generate_with_torch(model, prompts)
    decoder = Decoder(folder / f"{name}-{padded}", model, batch_size=len(prompts), padded=padded)
    samples = []
    for ranks in 1, 2, 4:
        decoder.compile(ranks)
        np.testing.assert_array_equal(decoder.generate(prompts), expected)
        samples.append(decoder.generate(prompts, *SAMPLING))
        np.testing.assert_array_equal(samples[-1], samples[0])
    assert (samples[0] != expected).any()
    print(f"{name}{', padded' if padded else ''}: {expected.size} tokens are transformers' on 1, 2 and 4 ranks")


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or MODELS:
            check(pathlib.Path(folder), name, padded=False)
        for name in sys.argv[1:] or ["llama", "gemma3"]:
            check(pathlib.Path(folder), name, padded=True)


if __name__ == "__main__":
    sys.exit(main())
