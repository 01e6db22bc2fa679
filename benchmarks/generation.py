#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text generation: a Llama-style decoder of 134 million parameters on two ranks beside transformers' `generate()`, eager and
compiled with a static cache, beside llama.cpp where `pip install llama-cpp-python gguf` has been run, which builds it for ten
minutes, and beside what the machine's memory and its matrix products allow.

A decoding step reads one token behind 512 others. The sides take turns, and a figure is the median over the rounds of each
round's median. Exits with 1 where a row misses its goal, or where tokens differ."""

import argparse
import ctypes
import importlib.util
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import transformers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "examples"))
import gemms
import minilm_vs_torch
import short
import tp_tools

RANKS = 2
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def make_model(arguments, dtype):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=arguments.dim, intermediate_size=arguments.dim * 8 // 3, num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.dim // 64, num_key_value_heads=arguments.dim // 64, vocab_size=arguments.vocabulary,
        max_position_embeddings=2 * arguments.prompt, bos_token_id=None, eos_token_id=None)).eval().to(dtype)


class Transformers:
    """`generate()` of the model, as it is or compiled with a static cache."""

    def __init__(self, model, arguments, compiled=False):
        self.model, self.options = model, {"do_sample": False, "use_cache": True}
        if compiled:
            self.options |= {"cache_implementation": "static", "disable_compile": True}
            self.model.forward = torch.compile(model.forward)
        self.ids = torch.from_numpy(arguments.ids)

    def generate(self, count):
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.model.generate(self.ids, max_new_tokens=count, min_new_tokens=count, **self.options)[0, self.ids.shape[1]:].tolist()

    def time(self, tokens):
        """Seconds until the first token, and of each further one."""
        start = time.perf_counter()
        self.generate(1)
        first = time.perf_counter()
        self.generate(1 + tokens)
        end = time.perf_counter()
        return first - start, ((end - first) - (first - start)) / tokens


def write_gguf(model, path):
    """The file that llama.cpp reads, with the precision of the model's matrices."""
    import gguf

    config = model.config
    heads = config.num_attention_heads
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.hidden_size // heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
             "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    for name, value in model.state_dict().items():
        part, data = name.removesuffix(".weight"), value.float().numpy()
        prefix = ""
        if part.startswith("model.layers."):
            _, _, layer, part = part.split(".", 3)
            prefix = f"blk.{layer}."
        if names[part] in ("attn_q", "attn_k"):  # rotates neighbours, not halves
            data = data.reshape(heads, 2, -1, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
        kind = gguf.GGMLQuantizationType.BF16 if value.dtype == torch.bfloat16 and value.ndim > 1 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(f"{prefix}{names[part]}.weight", gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    """llama.cpp, by the functions that its Python package binds."""

    def __init__(self, model, arguments, precision):
        import llama_cpp

        self.api, self.ids, self.vocabulary = llama_cpp, arguments.ids[0].tolist(), arguments.vocabulary
        path = arguments.out / f"{precision}.gguf"
        write_gguf(model, path)
        self.llama = llama_cpp.Llama(str(path), n_ctx=2 * arguments.prompt, n_batch=arguments.prompt, n_ubatch=arguments.prompt,
                                     n_threads=RANKS, n_threads_batch=RANKS, verbose=False)

    def decode(self, tokens):
        """The most likely next token, and the seconds that it took."""
        array = (self.api.llama_token * len(tokens))(*tokens)  # the batch refers to it
        start = time.perf_counter()
        batch = self.api.llama_batch_get_one(array, len(tokens))
        if self.api.llama_decode(self.llama.ctx, batch):
            sys.exit("error: llama_decode failed")
        logits = self.api.llama_get_logits_ith(self.llama.ctx, -1)
        best = int(np.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)), (self.vocabulary,)).argmax())
        return best, time.perf_counter() - start

    def run(self, count):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.llama.ctx), True)
        token, first = self.decode(self.ids)
        tokens, seconds = [token], []
        while len(tokens) < count:
            token, elapsed = self.decode(tokens[-1:])
            tokens.append(token)
            seconds.append(elapsed)
        return tokens, first, seconds

    def generate(self, count):
        return self.run(count)[0]

    def time(self, tokens):
        _, first, seconds = self.run(1 + tokens)
        return first, statistics.median(seconds)


def has_llama_cpp():
    return all(importlib.util.find_spec(name) for name in ("llama_cpp", "gguf"))


class Compiled:
    """tp-run --generate."""

    def __init__(self, decoder, arguments):
        self.artifact = decoder.shard(ROOT / "examples/generate/tp.yaml", RANKS)
        self.ids, self.prompt = arguments.ids, arguments.out / "ids.npy"

    def generate(self, count):
        return self.artifact.generate("--prompt-ids", self.prompt, "--max-new-tokens", str(count))[0]

    def time(self, tokens):
        self.generate(1 + tokens)
        token = self.artifact.executed["token_seconds"]["median"]
        # Reading the prompt again and again, since the first time weights are packed, too.
        inputs = {"input_ids": self.ids, "cache_position": np.arange(self.ids.size), "logits_to_keep": np.array([self.ids.size - 1])}
        options = []
        for name, value in inputs.items():
            np.save(self.artifact.folder / f"{name}.npy", value)
            options += ["--input", f"{name}={self.artifact.folder / name}.npy"]
        self.artifact.tools.call("tp-run", self.artifact.folder / "model.tpx", "--weights", self.artifact.tools.out / "model.safetensors",
                                 "--program", f"prefill-{self.ids.size}", *options, "--warmup", "1", "--repeat", "3",
                                 "--json", self.artifact.folder / "run.json")
        return self.artifact.executed["seconds"]["median"], token


def make_products(arguments):
    """The products of reading the prompt; of the last token alone those with the vocabulary."""
    tokens, dim, hidden = arguments.prompt, arguments.dim, arguments.dim * 8 // 3
    layer = [(tokens, dim, dim)] * 4 + [(tokens, hidden, dim)] * 2 + [(tokens, dim, hidden)]
    return gemms.Products(arguments.layers * layer + [(1, arguments.vocabulary, dim)],
                          (arguments.layers * dim // 64, tokens, tokens, 64))


def measure_bandwidth(size):
    """Seconds in which two threads read `size` bytes once: the least of ten sums."""
    data = torch.ones(size // 4)
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        data.sum()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


class Table:
    def __init__(self):
        self.missed = False
        print(f"{'':<60} {'other, ms':>10} {'ours, ms':>10} {'ratio':>6} {'goal':>5}")

    def print_row(self, name, theirs, ours, goal):
        ratio = statistics.median(ours) / statistics.median(theirs)
        missed = ratio > goal
        self.missed |= missed
        print(f"{name:<60} {statistics.median(theirs) * 1e3:>10.1f} {statistics.median(ours) * 1e3:>10.1f} {ratio:>6.2f} {goal:>5}"
              f"{'  missed' if missed else ''}", flush=True)


def measure(precision, arguments, table):
    model = make_model(arguments, DTYPES[precision])
    tools = tp_tools.Tools(arguments.bin, arguments.out / precision, echo=False)
    decoder = tools.import_decoder(model, cache_length=2 * arguments.prompt, prompt_lengths=[arguments.prompt])
    sides = {"ours": Compiled(decoder, arguments), "eager": Transformers(model, arguments)}
    if not arguments.no_compile:
        sides["compiled"] = Transformers(make_model(arguments, DTYPES[precision]), arguments, compiled=True)
    if has_llama_cpp():
        sides["llama.cpp"] = LlamaCpp(model, arguments, precision)
    else:
        print("note: no rows of llama.cpp: llama-cpp-python and gguf aren't installed")
    tokens = {name: side.generate(1 + arguments.tokens) for name, side in sides.items()}
    # In bf16 PyTorch rounds at other places, so the most likely token may be another one.
    if precision == "f32" and any(each != tokens["ours"] for each in tokens.values()):
        sys.exit("error: the tokens differ from transformers'")
    products = make_products(arguments)
    size = sum(value.numel() * value.element_size() for name, value in model.named_parameters() if "embed_tokens" not in name)
    first, next_, memory, gemm = {name: [] for name in sides}, {name: [] for name in sides}, [], []
    for _ in range(arguments.rounds):
        for name, side in sides.items():
            prefill, token = side.time(arguments.tokens)
            first[name].append(prefill)
            next_[name].append(token)
        memory.append(measure_bandwidth(size))
        gemm.append(statistics.median(products.time() for _ in range(3)))
    for name, title, goal in (("eager", "transformers, eager", 0.25), ("compiled", "transformers, compiled, static cache", 0.75),
                              ("llama.cpp", "llama.cpp", 1.0)):
        if name in sides:
            table.print_row(f"a token, {precision}: {title}", next_[name], next_["ours"], goal)
    table.print_row(f"a token, {precision}: weights ÷ memory bandwidth", memory, next_["ours"], 1.15)
    if precision == "f32":
        table.print_row(f"prompt of {arguments.prompt}, f32: its GEMMs alone, OpenBLAS", gemm, first["ours"], 1.15)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "generation-benchmark")
    parser.add_argument("--precision", choices=list(DTYPES), nargs="+", default=list(DTYPES))
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=32, help="decoding steps of a turn (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=12, help="default: %(default)s")
    parser.add_argument("--dim", type=int, default=768, help="width, a multiple of 384 (default: %(default)s)")
    parser.add_argument("--vocabulary", type=int, default=32000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    short.add_option(parser, prompt=8, tokens=2, layers=1, dim=384, vocabulary=64, rounds=1, no_compile=True)
    arguments = parser.parse_args()
    torch.set_num_threads(RANKS)
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.ids = np.random.default_rng(0).integers(arguments.vocabulary, size=(1, arguments.prompt))
    np.save(arguments.out / "ids.npy", arguments.ids)
    minilm_vs_torch.print_environment()
    table = Table()
    for precision in arguments.precision:
        measure(precision, arguments, table)
    return table.missed and not arguments.short


if __name__ == "__main__":
    sys.exit(main())
