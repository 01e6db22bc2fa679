"""Runs models of transformers with the folders that save_pretrained writes: hf_folders.py <folder of tp_trace.py> <dir> NAME…

Each model is traced and imported, and runs on one and on two ranks with --weights <folder>, without any other file of
weights. Its output is compared with that of PyTorch. A model that is a part of the folder's, or has it as a part, and other
variants are given in the table below.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.simplefilter("ignore")

import numpy as np
import torch
import transformers as t

sys.path.insert(0, sys.argv[1])
import tp_trace

VOCABULARY = 96
DECODER = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=32)
GROUPED = DECODER | dict(num_key_value_heads=2)

# Name: the class that is saved, its configuration, the class that runs (if it is another one), and options of
# save_pretrained.
MODELS = {
    "llama": (t.LlamaForCausalLM, t.LlamaConfig(**GROUPED), None, dict(max_shard_size="40KB")),
    "llama-tied": (t.LlamaForCausalLM, t.LlamaConfig(**GROUPED, tie_word_embeddings=True), None, {}),
    "llama-base": (t.LlamaForCausalLM, t.LlamaConfig(**GROUPED), t.LlamaModel, {}),
    "llama-bf16": (t.LlamaForCausalLM, t.LlamaConfig(**GROUPED, dtype="bfloat16"), None, {}),
    "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(**GROUPED), None, {}),
    "mistral": (t.MistralForCausalLM, t.MistralConfig(**GROUPED), None, dict(max_shard_size="60KB")),
    "gemma": (t.GemmaForCausalLM, t.GemmaConfig(**GROUPED, head_dim=8), None, {}),
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=32), None, {}),
    "gpt2-base": (t.GPT2LMHeadModel, t.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=32),
                  t.GPT2Model, {}),
    "bert": (t.BertForMaskedLM, t.BertConfig(**DECODER), None, {}),
    "bert-base": (t.BertForMaskedLM, t.BertConfig(**DECODER), t.BertModel, {}),
    "opt": (t.OPTForCausalLM, t.OPTConfig(vocab_size=VOCABULARY, hidden_size=32, ffn_dim=64, num_hidden_layers=2,
                                          num_attention_heads=4, max_position_embeddings=32, word_embed_proj_dim=32), None, {}),
    "gptneox": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig(**DECODER), None, {}),
    # The relative positions of 72 tokens are a large table.
    "t5-long": (t.T5ForConditionalGeneration, t.T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2,
                                                         num_heads=4), None, {}),
}


class Wrapper(torch.nn.Module):
    """The one tensor that is compared, without the objects that a trace can't return."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        if self.model.config.is_encoder_decoder:
            return self.model(input_ids=ids, decoder_input_ids=ids, use_cache=False).logits
        options = {} if self.model.config.model_type == "bert" else {"use_cache": False}
        output = self.model(input_ids=ids, **options)
        return output.logits if "logits" in output else output.last_hidden_state


def call(*arguments):
    result = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True)
    print(result.stdout + result.stderr, end="")
    if result.returncode:
        sys.exit(f"{' '.join(map(str, arguments))} failed: {result.returncode}")


def run(name, directory):
    saved_class, config, run_class, options = MODELS[name]
    directory = directory / name
    folder = directory / "folder"
    folder.mkdir(parents=True, exist_ok=True)
    print(f"=== {name}")
    torch.manual_seed(0)
    saved = saved_class(config).eval()
    with torch.no_grad():  # PyTorch's initial biases are zero
        for value in saved.parameters():
            value.add_(torch.randn_like(value) * 0.05)
    if config.dtype == torch.bfloat16:
        saved = saved.to(torch.bfloat16)
    saved.save_pretrained(folder, **options)
    model = (run_class or saved_class).from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    ids = torch.randint(0, VOCABULARY, (2, 8 if "long" not in name else 72))
    wrapper = Wrapper(model).eval()
    with torch.no_grad():
        np.save(directory / "expected.npy", wrapper(ids).numpy())
        tp_trace.save(wrapper, (ids,), directory / "model.pt")
    np.save(directory / "ids.npy", ids.numpy())
    os.chdir(directory)
    call("tp-import", "model.pt", "--signature", "model.signature.json", "--input", f"ids=2x{ids.shape[1]}xi64", "-o", "model.mlir")
    for ranks in (1, 2):
        # Without a plan of its own, a model's embedding is split.
        plan = {"model." + key: style for key, style in model.tp_plan.items()} if model.tp_plan else None
        if not plan:
            embedding = next(key for key, module in wrapper.named_modules() if isinstance(module, torch.nn.Embedding))
            plan = {embedding: "embedding_rowwise"}
        Path("plan.json").write_text(json.dumps({"mesh": {"tp": ranks}, "match": "hf", "plan": plan}))
        call("tp-opt", "model.mlir", "--tp-parallelize=plan=plan.json", "-o", f"ranks{ranks}.mlir")
        call("tp-compile", f"ranks{ranks}.mlir", "-o", "model.tpx")
        call("tp-run", "model.tpx", "--weights", "folder", "--input", "ids=ids.npy", "--expect", "expected.npy",
             "--rtol", "1e-4", "--atol", "1e-5")


for name in sys.argv[3:] or MODELS:
    run(name, Path(sys.argv[2]).resolve())
