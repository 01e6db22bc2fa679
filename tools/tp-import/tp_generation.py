#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports a decoder of transformers with a static cache, as the programs that `tp-run --generate` needs: one that reads a
single token, and one for each length of a prompt.

    import tp_generation
    tp_generation.export(model, "llama", cache_length=1024, prompt_lengths=[64, 512])

writes llama/decode.pt2, llama/prefill-64.pt2 and llama/prefill-512.pt2. Keys and values stay in the cache from run to run.
Each program has the inputs

    input_ids        i64 [batch, length]
    cache_position   i64 [length]: where the tokens go in the cache, each number one higher than the one before
    logits_to_keep   i64 [1]: the token whose logits are wanted, counted from the first of input_ids

and, with `padded=True`, for batches of prompts of different lengths, which are padded at their left,

    position_ids     i64 [batch, length]: the position of each token in its own text
    attention_mask   bool [batch, cache length]: False for padding

The result is `logits` [batch, 1, vocabulary].
"""

import inspect
import os
import pathlib
import warnings

import torch
from transformers import StaticCache
from transformers.cache_utils import StaticLayer


class CachedDecoder(torch.nn.Module):
    """A decoder of transformers and its cache. Layers with a sliding window have a cache of the whole length, too: the
    model's mask hides what is outside of the window."""

    def __init__(self, model, batch_size, cache_length):
        super().__init__()
        self.model = model
        config = model.config.get_text_config()
        self.cache = StaticCache(config=config, max_cache_len=cache_length)
        self.cache.layers = [StaticLayer(max_cache_len=cache_length) for _ in self.cache.layers]
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.cache.early_initialization(batch_size, heads, size, model.dtype, model.device)
        for i, layer in enumerate(self.cache.layers):
            self.register_buffer(f"key_cache_{i}", layer.keys, persistent=False)
            self.register_buffer(f"value_cache_{i}", layer.values, persistent=False)
        # transformers 4 takes positions, 5 has them in the cache.
        self.takes_positions = "cache_position" in inspect.signature(model.forward).parameters

    def forward(self, input_ids, cache_position, logits_to_keep, position_ids=None, attention_mask=None):
        options = {"cache_position": cache_position} if self.takes_positions else {}
        for layer in self.cache.layers:
            if hasattr(layer, "cumulative_length"):
                layer.cumulative_length.copy_(cache_position[0])
        if position_ids is not None:
            options["position_ids"] = position_ids
        return self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=self.cache, use_cache=True,
                          logits_to_keep=logits_to_keep, **options).logits


def make_inputs(batch_size, length, cache_length, padded):
    inputs = {"input_ids": torch.zeros(batch_size, length, dtype=torch.int64), "cache_position": torch.arange(length),
              "logits_to_keep": torch.tensor([length - 1])}
    if padded:
        inputs["position_ids"] = torch.arange(length).expand(batch_size, length).contiguous()
        inputs["attention_mask"] = torch.ones(batch_size, cache_length, dtype=torch.bool)
    return inputs


def export(model, folder, *, cache_length, prompt_lengths, batch_size=1, padded=False):
    """Writes the programs of `model`, an AutoModelForCausalLM in evaluation mode, to `folder`. Returns their paths, the one
    of a single token first. All lengths are in tokens; `cache_length` is that of prompt and generated text together."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    longest = max([1, *prompt_lengths])
    if longest > cache_length:
        raise ValueError(f"a prompt of {longest} tokens doesn't fit a cache of {cache_length}")
    paths = []
    for length in sorted({1, *prompt_lengths}):
        decoder = CachedDecoder(model, batch_size, cache_length).eval()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(decoder, (), make_inputs(batch_size, length, cache_length, padded), strict=False)
        path = folder / ("decode.pt2" if length == 1 else f"prefill-{length}.pt2")
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with open(temporary, "wb") as file:
                torch.export.save(program, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        finally:
            temporary.unlink(missing_ok=True)
        paths.append(path)
    return paths
