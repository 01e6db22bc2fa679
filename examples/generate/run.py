#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generate text with a Llama of transformers that has random weights, and with the model that train_charlm has trained, if it
has run.

Keys and values stay on the ranks, split by heads. Exits with 1 where greedy tokens differ from those of transformers'
`generate()`, or sampled ones from one number of ranks to another."""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tp_tools
from generate import charlm

CACHE, PROMPT = 128, 24
SAMPLING = ["--temperature", "0.8", "--top-k", "50", "--top-p", "0.95", "--seed", "1"]


def build():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, vocab_size=2048,
        max_position_embeddings=CACHE, bos_token_id=None, eos_token_id=None)).eval()


def generate_everywhere(arguments, name, model, ids):
    """Continue the prompt on each number of ranks. Returns the sampled tokens, and whether all tokens match."""
    with torch.inference_mode():
        expected = model.generate(torch.from_numpy(ids)[None], max_new_tokens=arguments.tokens, do_sample=False)[0, len(ids):].tolist()
    tools = tp_tools.Tools(arguments.bin, arguments.out / name)
    prompt = tools.out / "ids.npy"
    np.save(prompt, ids)
    decoder = tools.import_decoder(model, cache_length=CACHE, prompt_lengths=[16])
    good, samples = True, []
    for ranks in arguments.ranks:
        print(f"\n== {name}, {ranks} ranks", flush=True)
        generator = decoder.shard(HERE / "tp.yaml", ranks)
        options = ["--prompt-ids", prompt, "--max-new-tokens", str(arguments.tokens)]
        [greedy] = generator.generate(*options)
        equal = sum(a == b for a, b in zip(greedy, expected))
        print(f"{equal} of {len(expected)} greedy tokens are transformers'")
        good &= greedy == expected
        samples += generator.generate(*options, *SAMPLING)
    if any(sample != samples[0] for sample in samples):
        print("error: sampled tokens differ from one number of ranks to another")
        good = False
    return samples[0], good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_arguments(parser, "generate", ranks=(1, 2, 4))
    parser.add_argument("--tokens", type=int, default=64, help="new tokens (default: %(default)s)")
    parser.add_argument("--charlm", type=Path, default=tp_tools.ROOT / "build/examples/train_charlm",
                        help="output folder of train_charlm (default: %(default)s)")
    arguments = parser.parse_args()
    model = build()
    _, good = generate_everywhere(arguments, "llama", model, np.random.default_rng(0).integers(model.config.vocab_size, size=PROMPT))
    if charlm.exists(arguments.charlm):
        model, characters = charlm.load(arguments.charlm)
        ids = np.array([characters.index(c) for c in charlm.PROMPT])
        tokens, is_good = generate_everywhere(arguments, "charlm", model, ids)
        print(f"\n{charlm.PROMPT}{''.join(characters[token] for token in tokens)}")
        good &= is_good
    else:
        print(f"\n'{arguments.charlm}' has no trained model; examples/train_charlm/run.py makes it")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
