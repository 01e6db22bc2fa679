# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of train_charlm with its trained weights, as a Llama of transformers."""

import json

import safetensors.torch
import transformers

PROMPT = "The "

# Where transformers has the modules of llama/model.py.
LAYER = {"attention_norm": "input_layernorm", "attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj",
         "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
         "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj", "feed_forward.w3": "mlp.up_proj"}
MODEL = {"tok_embeddings": "model.embed_tokens", "norm": "model.norm", "output": "lm_head"}
# What transformers computes from its configuration.
TABLES = {"cos", "sin"}


def rename(name):
    module = name.removesuffix(".weight")
    if module.startswith("layers."):
        _, layer, module = module.split(".", 2)
        return f"model.layers.{layer}.{LAYER[module]}.weight"
    return f"{MODEL[module]}.weight"


def exists(folder):
    return (folder / "model.json").exists()


def save_description(folder, config, weights, characters):
    """What load() needs of a trained model, besides its weights."""
    description = {"config": vars(config), "weights": str(weights.resolve()), "characters": characters}
    (folder / "model.json").write_text(json.dumps(description))


def load(folder):
    """The model, and the characters in the order of their numbers."""
    description = json.loads((folder / "model.json").read_text())
    config = description["config"]
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=config["dim"], intermediate_size=config["hidden_dim"], num_hidden_layers=config["n_layers"],
        num_attention_heads=config["n_heads"], num_key_value_heads=config["n_kv_heads"], vocab_size=config["vocab_size"],
        max_position_embeddings=config["max_seq_len"], rope_theta=config["rope_theta"], rms_norm_eps=1e-5, bos_token_id=None,
        eos_token_id=None))
    weights = safetensors.torch.load_file(description["weights"])
    model.load_state_dict({rename(name): value for name, value in weights.items() if name not in TABLES})
    return model.eval(), description["characters"]
