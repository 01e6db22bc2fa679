"""Decoders of transformers generate what `model.generate()` gives, on 1, 2 and 4 ranks: greedy tokens, those of prompts of a single
token, those of a batch of prompts of different lengths, and sampled tokens, which are the same on all numbers of ranks. In bf16, where
rounding decides between tokens whose logits are about equal, logits are as exact as PyTorch's, and all other tokens are the same.

  decoders.py [--short | NAME…]

--short: a few of the models, as the tests do; else all, or those that are named.
Exit code 1 when anything differs.
"""

import copy
import pathlib
import subprocess
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
from ops import load

VOCABULARY, CACHE, BUCKET, NEW = 256, 84, 16, 64  # the longest text fills the cache
LONG, SHORT = 21, 9  # more than a bucket, less than one
MAX_RATIO = 1.3  # of the errors of logits in bf16 to those of PyTorch
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


def get_plan(model, ranks, data):
    """The model's own, with the logits left where they are, and the batch split over `data` groups of ranks."""
    plan = {name: style for name, style in (model.tp_plan or GPT2_PLAN).items() if name != "lm_head"}
    lines = [f'  "model.{name}": {style}' for name, style in plan.items()]
    lines.append("  model.lm_head: {style: ColwiseParallel, output_layouts: Shard(-1), use_local_output: false}")
    head = f"mesh: {{tp: {ranks}}}\n"
    if data > 1:
        head = (f"mesh: {{dp: {data}, tp: {ranks}}}\nmesh_dim: tp\ndata_parallel: {{dp: ddp}}\n"
                "batch: {input_ids: 0, position_ids: 0, attention_mask: 0}\n")
    return head + "match: hf\nplan:\n" + "\n".join(lines) + "\n"


class Decoder:
    """The programs of a model: imported once, compiled for a number of ranks by compile()."""

    def list_caches(self):
        """What tp-run --describe says of each cache."""
        text = subprocess.run(["tp-run", self.folder / "model.tpx", "--describe"], capture_output=True, text=True, check=True).stdout
        return [line for line in text.splitlines() if "_cache_" in line and "begins as" in line]

    def __init__(self, folder, model, **options):
        self.folder, self.model = folder, model
        self.archives = tp_generation.export(model, folder, cache_length=CACHE, prompt_lengths=[BUCKET], **options)
        for archive in self.archives:
            run("tp-import", archive, "-o", archive.with_suffix(".mlir"), "--weights", folder / "model.safetensors")

    def compile(self, ranks, data=1):
        plan, programs = self.folder / "plan.yaml", []
        plan.write_text(get_plan(self.model, ranks, data))
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

    def read(self, text):
        """The logits of a text from the end of its first bucket on, which the programs compute one after the other."""
        rows, state = [], self.folder / "state.safetensors"
        for begin, end in [(0, BUCKET), *((i, i + 1) for i in range(BUCKET, len(text)))]:
            inputs = {"input_ids": text[None, begin:end], "cache_position": torch.arange(begin, end),
                      "logits_to_keep": torch.tensor([end - begin - 1])}
            flags = ["--state-in", state] if begin else []
            for name, tensor in inputs.items():
                np.save(self.folder / f"{name}.npy", tensor.numpy())
                flags += ["--input", f"{name}={self.folder / name}.npy"]
            run("tp-run", self.folder / "model.tpx", "--weights", self.folder / "model.safetensors", *flags, "--state-out", state,
                "--output", self.folder / "logits.npy")
            rows.append(load(self.folder / "logits.npy", self.model.dtype)[0, 0])
        return torch.stack(rows).double()


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
    batches = [[torch.randint(VOCABULARY, (length,)) for length in lengths]
               for lengths in ([(LONG, SHORT), (SHORT, 1), (1, 1)] if padded else [(LONG,), (1,)])]
    expected = [generate_with_torch(model, prompts) for prompts in batches]
    decoder = Decoder(folder / f"{name}-{padded}", model, batch_size=len(batches[0]), padded=padded)
    samples = []
    for ranks in 1, 2, 4:
        decoder.compile(ranks)
        for prompts, tokens in zip(batches, expected):
            np.testing.assert_array_equal(decoder.generate(prompts), tokens)
        samples.append(decoder.generate(batches[0], *SAMPLING))
        np.testing.assert_array_equal(samples[-1], samples[0])
    assert (samples[0] != expected[0]).any()
    if padded: # each group of ranks has the caches of its sequence
        decoder.compile(2, data=2)
        np.testing.assert_array_equal(decoder.generate(batches[0]), expected[0])
        caches = decoder.list_caches()
        assert caches and all("Shard(0), Shard(1)" in cache for cache in caches), caches
    print(f"{name}{', padded' if padded else ''}: {sum(tokens.size for tokens in expected)} tokens are transformers' on 1, 2 and 4 ranks")


def check_bf16(folder, name):
    model = make(name).bfloat16()
    exact = copy.deepcopy(model).double()
    prompt = torch.randint(VOCABULARY, (LONG,))
    expected = torch.from_numpy(generate_with_torch(model, [prompt])[0])
    decoder = Decoder(folder / f"{name}-bf16", model)
    ratios, numDecided = [], []
    for ranks in 1, 2, 4:
        decoder.compile(ranks)
        tokens = torch.from_numpy(decoder.generate([prompt])[0])
        text = torch.cat([prompt, tokens])
        with torch.inference_mode():
            true, theirs = (m(text[None]).logits[0, :-1].double() for m in (exact, model))
        ours = decoder.read(text[:BUCKET + 4])
        first = slice(BUCKET - 1, BUCKET + 4)
        ratios.append(((ours - true[first]).norm() / (theirs[first] - true[first]).norm()).item())
        if not ratios[-1] < MAX_RATIO:
            raise AssertionError(f"{name} on {ranks} ranks: the error of logits is {ratios[-1]:.2f} times PyTorch's")
        # The logits of tokens that follow a text, as exact as that, decide between tokens that are further apart.
        true, theirs = true[LONG - 1:], theirs[LONG - 1:]
        best = true.topk(2).values
        decided = best[:, 0] - best[:, 1] > 2 * MAX_RATIO * (theirs - true).abs().max()
        numDecided.append(int(decided.sum()))
        np.testing.assert_array_equal(tokens[decided], true.argmax(-1)[decided])
        different = (tokens != expected).nonzero()
        assert not different.numel() or not decided[different[0]], f"{name} on {ranks} ranks: token {different[0]} isn't transformers'"
        assert decided.sum() >= NEW // 4, f"{name}: logits of bf16 decide {decided.sum()} of {NEW} tokens"
    print(f"{name}, bf16: errors are {', '.join(f'{ratio:.2f}' for ratio in ratios)} times PyTorch's on 1, 2 and 4 ranks; "
          f"{min(numDecided)} tokens that don't depend on rounding are transformers'")


def check_limits(folder):
    """A cache can't be longer than the model's positions."""
    for name in "llama", "gpt2":
        try:
            tp_generation.export(make(name), folder / "limits", cache_length=129, prompt_lengths=[])
        except ValueError as error:
            assert "a cache of 129 tokens is longer than the 128 positions" in str(error), error
        else:
            raise AssertionError(f"{name} has been exported with a cache of 129 tokens")
    assert not (folder / "limits").exists()


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        check_limits(folder)
        greedy, padded, narrow = MODELS, ["llama", "gemma3"], ["gpt2", "llama", "gemma3"]
        if sys.argv[1:] == ["--short"]:
            greedy, padded, narrow = ["gpt2", "gemma2", "deepseek_v3"], ["gemma3"], ["llama"]
        elif sys.argv[1:]:
            greedy = padded = narrow = sys.argv[1:]
        for name in greedy:
            check(folder, name, padded=False)
        for name in padded:
            check(folder, name, padded=True)
        for name in narrow:
            check_bf16(folder, name)


if __name__ == "__main__":
    sys.exit(main())
