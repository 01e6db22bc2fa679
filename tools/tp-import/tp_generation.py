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

import contextlib
import inspect
import io
import os
import pathlib
import warnings

import torch
import transformers
from transformers import StaticCache
from transformers.cache_utils import StaticLayer


class CachedDecoder(torch.nn.Module):
    """A decoder of transformers and its cache. Layers with a sliding window have a cache of the whole length, too: the
    model's mask hides what is outside of the window. Raises a ValueError if the model doesn't use such a cache, or computes
    something else with it."""

    def __init__(self, model, batch_size, cache_length, padded):
        super().__init__()
        self.model = model
        # transformers 4 takes positions, 5 has them in the cache.
        self.takes_positions = "cache_position" in inspect.signature(model.forward).parameters
        self.cache = StaticCache(config=model.config.get_text_config(), max_cache_len=cache_length)
        self.cache.layers = [StaticLayer(max_cache_len=cache_length) for _ in self.cache.layers]
        self._check(batch_size, cache_length, padded)
        for i, layer in enumerate(self.cache.layers):
            for name, attribute in ("key_cache", "keys"), ("value_cache", "values"), ("cumulative_length", "cumulative_length"):
                tensor = getattr(layer, attribute, None)
                if isinstance(tensor, torch.Tensor):
                    self.register_buffer(f"{name}_{i}", tensor.zero_(), persistent=False)

    def _check(self, batch_size, cache_length, padded):
        """Four tokens, in two calls with the cache, have the logits that they have without one. The first call also lets
        each layer of the cache take the shapes that the model gives it."""
        name = type(self.model).__name__
        count = min(4, cache_length)
        ids = torch.arange(batch_size * count).view(batch_size, count) % self.model.config.get_text_config().vocab_size
        inputs = make_inputs(batch_size, count, cache_length, padded)
        positions, places = inputs["cache_position"], inputs.get("position_ids")
        try:
            with torch.no_grad():
                expected = self.model(input_ids=ids, use_cache=False).logits[:, -1]
                for part in slice(0, count - 1), slice(count - 1, count):
                    if ids[:, part].shape[1]:
                        logits = self(ids[:, part], positions[part], torch.tensor([-1]), None if places is None else places[:, part],
                                      inputs.get("attention_mask"))[:, -1]
        except Exception as error:
            raise ValueError(f"{name} doesn't run with a static cache: {get_first_line(error)}") from error
        if not any(getattr(layer, "is_initialized", layer.keys is not None) for layer in self.cache.layers):
            raise ValueError(f"{name} keeps no keys and values in the cache that it is given, so it can't be exported with one")
        difference = ((logits - expected).norm() / expected.norm()).item()
        if not difference < (1e-3 if logits.dtype in (torch.float32, torch.float64) else 0.3):
            raise ValueError(f"{name} of transformers {transformers.__version__} computes other logits with a static cache than "
                             f"without a cache (relative difference {difference:.1e}), so it can't generate with one")

    def forward(self, input_ids, cache_position, logits_to_keep, position_ids=None, attention_mask=None):
        options = {"cache_position": cache_position} if self.takes_positions else {}
        for layer in self.cache.layers:
            if hasattr(layer, "cumulative_length"):
                layer.cumulative_length.copy_(cache_position[0])
        if position_ids is not None:
            options["position_ids"] = position_ids
        return self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=self.cache, use_cache=True,
                          logits_to_keep=logits_to_keep, **options).logits


def get_first_line(error):
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def make_inputs(batch_size, length, cache_length, padded):
    inputs = {"input_ids": torch.zeros(batch_size, length, dtype=torch.int64), "cache_position": torch.arange(length),
              "logits_to_keep": torch.tensor([length - 1])}
    if padded:
        inputs["position_ids"] = torch.arange(length).expand(batch_size, length).contiguous()
        inputs["attention_mask"] = torch.ones(batch_size, cache_length, dtype=torch.bool)
    return inputs


def export_program(model, batch_size, length, cache_length, padded):
    decoder = CachedDecoder(model, batch_size, cache_length, padded)
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return torch.export.export(decoder, (), make_inputs(batch_size, length, cache_length, padded), strict=False)
        except Exception as error:
            hint = "" if padded else " (padded=True, with which the model is given its mask and positions, may help)"
            raise ValueError(f"PyTorch can't export {type(model).__name__} with a static cache: {get_first_line(error)}{hint}") from error


def save(program, path):
    """Writes a program to a file that is complete or doesn't exist."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            torch.export.save(program, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


def export(model, folder, *, cache_length, prompt_lengths, batch_size=1, padded=False):
    """Writes the programs of `model`, an AutoModelForCausalLM, to `folder`. Returns their paths, the one of a single token
    first. All lengths are in tokens; `cache_length` is that of prompt and generated text together. Raises a ValueError if
    the lengths make no sense, or if the model can't be exported with a cache."""
    lengths = sorted({1, *prompt_lengths})
    if lengths[0] < 1 or batch_size < 1:
        raise ValueError(f"found a batch of {batch_size} and prompts of {lengths[0]} tokens, expected at least 1")
    if lengths[-1] > cache_length:
        raise ValueError(f"a prompt of {lengths[-1]} tokens doesn't fit a cache of {cache_length}")
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if limit and cache_length > limit:
        raise ValueError(f"a cache of {cache_length} tokens is longer than the {limit} positions that {type(model).__name__} "
                         "has (max_position_embeddings of its configuration)")
    was_training = model.training
    model.eval()
    try:
        programs = {length: export_program(model, batch_size, length, cache_length, padded) for length in lengths}
    finally:
        model.train(was_training)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for length, program in programs.items():
        paths.append(folder / ("decode.pt2" if length == 1 else f"prefill-{length}.pt2"))
        save(program, paths[-1])
    return paths
