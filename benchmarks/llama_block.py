# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder block of Llama 3 8B as one rank of tensor parallelism computes it, without the communication.

`Prefill` takes all tokens at once, `Decode` one token and what is cached of those before it: its attention reads the
cache, and its own key and value are results, for whoever keeps the cache. Both are in bf16.

    llama_block.py make FOLDER         # TorchScript archives and inputs' types; weights take no space
    llama_block.py measure             # lines 'WHAT-CASE-RANKS VALUE', with PyTorch on CUDA, and ours in turn

scripts/gpu-pack.sh compiles what the first makes, scripts/gpu-check.sh times it beside the second.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

RANKS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Config:
    dim: int = 4096
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    hidden: int = 14336
    tokens: int = 4096
    context: int = 8192

    def of_rank(self, ranks):
        """The same with what one of so many ranks has."""
        return replace(self, heads=self.heads // ranks, kv_heads=self.kv_heads // ranks, hidden=self.hidden // ranks)


SMALL = Config(dim=128, heads=16, kv_heads=8, head_dim=64, hidden=256, tokens=96, context=160)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.head_dim = config.head_dim
        self.attention_norm = nn.RMSNorm(config.dim, eps=1e-5)
        self.wq = nn.Linear(config.dim, config.heads * config.head_dim, bias=False)
        self.wk = nn.Linear(config.dim, config.kv_heads * config.head_dim, bias=False)
        self.wv = nn.Linear(config.dim, config.kv_heads * config.head_dim, bias=False)
        self.wo = nn.Linear(config.heads * config.head_dim, config.dim, bias=False)
        self.ffn_norm = nn.RMSNorm(config.dim, eps=1e-5)
        self.w1 = nn.Linear(config.dim, config.hidden, bias=False)
        self.w2 = nn.Linear(config.hidden, config.dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.hidden, bias=False)

    def project(self, x, cos, sin):
        batch, length, _ = x.shape
        h = self.attention_norm(x)
        q = self.wq(h).view(batch, length, -1, self.head_dim).transpose(1, 2)
        k = self.wk(h).view(batch, length, -1, self.head_dim).transpose(1, 2)
        v = self.wv(h).view(batch, length, -1, self.head_dim).transpose(1, 2)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def finish(self, x, y):
        batch, length, _ = x.shape
        h = x + self.wo(y.transpose(1, 2).contiguous().view(batch, length, -1))
        n = self.ffn_norm(h)
        return h + self.w2(F.silu(self.w1(n)) * self.w3(n))


class Prefill(Block):
    def forward(self, x: Tensor, cos: Tensor, sin: Tensor):
        q, k, v = self.project(x, cos, sin)
        return self.finish(x, F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))

    @staticmethod
    def shapes(c):
        return {"x": (1, c.tokens, c.dim), "cos": (c.tokens, c.head_dim), "sin": (c.tokens, c.head_dim)}


class Decode(Block):
    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, keys: Tensor, values: Tensor):
        q, k, v = self.project(x, cos, sin)
        return self.finish(x, F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)), k, v

    @staticmethod
    def shapes(c):
        cache = (1, c.kv_heads, c.context, c.head_dim)
        return {"x": (1, 1, c.dim), "cos": (1, c.head_dim), "sin": (1, c.head_dim), "keys": cache, "values": cache}


class Products(Block):
    """The block's products alone, each of inputs of its own: what no program of it can do without."""

    def forward(self, x: Tensor, y: Tensor, g: Tensor):
        return self.wq(x), self.wk(x), self.wv(x), self.wo(y), self.w1(x), self.w3(x), self.w2(g)


class PrefillProducts(Products):
    @staticmethod
    def shapes(c):
        return {"x": (1, c.tokens, c.dim), "y": (1, c.tokens, c.heads * c.head_dim), "g": (1, c.tokens, c.hidden)}


class DecodeProducts(Products):
    @staticmethod
    def shapes(c):
        return {"x": (1, 1, c.dim), "y": (1, 1, c.heads * c.head_dim), "g": (1, 1, c.hidden)}


CASES = {"prefill": Prefill, "decode": Decode, "prefill-products": PrefillProducts, "decode-products": DecodeProducts}


def make(folder, whole, ranks_of):
    """An archive for each case and number of ranks, with the inputs' types beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for ranks in ranks_of:
        config = whole.of_rank(ranks)
        for name, kind in CASES.items():
            # Weights are drawn where the program runs: one element stands for all.
            with torch.device("meta"):
                module = kind(config).to(torch.bfloat16).eval()
            for parent in module.modules():
                for key, value in list(parent.named_parameters(recurse=False)):
                    one = torch.zeros(1, dtype=value.dtype).expand(value.shape)
                    parent.register_parameter(key, nn.Parameter(one, requires_grad=False))
            # As short as can be; types for the importer say how long they are.
            short = kind.shapes(replace(config, tokens=2, context=2))
            inputs = {key: torch.zeros(1, dtype=torch.bfloat16).expand(shape) for key, shape in short.items()}
            with torch.no_grad():
                torch.jit.trace(module, tuple(inputs.values()), check_trace=False).save(folder / f"{name}-{ranks}.pt")
            (folder / f"{name}-{ranks}.inputs").write_text("".join(
                f"{key}={'x'.join(map(str, shape))}xbf16\n" for key, shape in kind.shapes(config).items()))


def rest_bytes(config, name):
    """What all but products and attention reads and writes if each goes over memory once: norms, rotary positions,
    SwiGLU, residuals."""
    tokens = config.tokens if name == "prefill" else 1
    heads = (config.heads + config.kv_heads) * config.head_dim
    return 2 * tokens * (2 * 2 * config.dim + 2 * heads + 3 * config.hidden + 2 * 3 * config.dim)


def all_bytes(config, name):
    """What a block has to read at least: its weights, and for a token the cache."""
    heads = (2 * config.heads + 2 * config.kv_heads) * config.head_dim
    cache = 2 * config.kv_heads * config.context * config.head_dim if name == "decode" else 0
    return 2 * (config.dim * (heads + 3 * config.hidden) + cache)


def take_time(run, device):
    """Medians of some calls: seconds from a call's start until the device is done, as tp-run counts, and of the device alone."""
    seconds, on_device = [], []
    warmup, repeat = (5, 50) if device == "cuda" else (1, 1)
    for _ in range(warmup + repeat):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start = time.perf_counter()
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            on_device.append(begin.elapsed_time(end) / 1000)
        else:
            start = time.perf_counter()
            run()
            on_device.append(time.perf_counter() - start)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[warmup:]), statistics.median(on_device[warmup:])


def attend(config, name, device):
    """A call of attention alone, by cuDNN where there is one."""
    length = config.tokens if name == "prefill" else 1
    keys = config.tokens if name == "prefill" else config.context
    q = torch.randn(1, config.heads, length, config.head_dim, dtype=torch.bfloat16, device=device)
    k, v = (torch.randn(1, config.kv_heads, keys, config.head_dim, dtype=torch.bfloat16, device=device) for _ in "kv")
    backends = [SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH] if device == "cuda" else [SDPBackend.MATH]

    def run():
        with sdpa_kernel(backends, set_priority=True):
            F.scaled_dot_product_attention(q, k, v, is_causal=name == "prefill", enable_gqa=True)
    return run


def list_kernels(run, device):
    """The longest kernels of a call, on the CPU its ops, and their microseconds; and attention's, which name the backend that PyTorch
    chooses."""
    on_device = device == "cuda"
    activity = torch.profiler.ProfilerActivity.CUDA if on_device else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[activity]) as profile:
        run()
        if on_device:
            torch.cuda.synchronize()
    kernels = sorted((-(kernel.self_device_time_total if on_device else kernel.self_cpu_time_total), kernel.count, kernel.key)
                     for kernel in profile.key_averages())
    listed = kernels[:8] + [kernel for kernel in kernels[8:] if re.search("attention|flash|fmha|sdpa", kernel[2])]
    return ", ".join(f"{count} x {key[:48]} {-time:.0f}" for time, count, key in listed)


def run_ours(arguments, case):
    """Print the lines of one run of tp-run: its median and the host's share, or why it failed; whether it has not."""
    with tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder) / "report.json", Path(folder) / "log"
        environment = os.environ | ({"LD_LIBRARY_PATH": arguments.library_path} if arguments.library_path else {})
        command = [arguments.tp_run, arguments.blocks / case / arguments.program, "--random", "0", "--warmup",
                   str(arguments.warmup), "--repeat", str(arguments.repeat), "--json", report]
        try:
            # To a file: a pipe would be waited for as long as a child of the run has it.
            with log.open("w") as output:
                status = subprocess.run(command, stdout=output, stderr=output, env=environment,
                                        timeout=arguments.run_seconds).returncode
            reason = next((line for line in log.read_text().splitlines() if not line.startswith("note:")), f"exit code {status}")
        except subprocess.TimeoutExpired:
            status, reason = 124, f"no end after {arguments.run_seconds:g} s (TP_RUN_SECONDS)"
        if status:
            print(f"failed-{case} {reason}", flush=True)
            return False
        times = json.loads(report.read_text())
        print(f"ours-{case} {times['seconds']['median']:.9f}\nhost-{case} {times['host_seconds']['median']:.9f}", flush=True)
        return True


class Samples:
    """What has been printed before: how many lines of each 'WHAT-CASE-RANKS', their last values, and the notes."""

    def __init__(self, path):
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.notes = {line for line in lines if line.startswith("#")}
        pairs = [line.split(" ", 1) for line in lines if line not in self.notes]
        self.counts, self.values = Counter(name for name, _ in pairs), dict(pairs)

    def note(self, text):
        if text not in self.notes:
            print(text, flush=True)

    def has_note_of(self, case):
        return any(note.startswith(f"# {case}:") for note in self.notes)


def measure_bandwidth(device):
    """Bytes a second of a copy, read and written."""
    source = torch.empty(2**28 if device == "cuda" else 2**16, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / take_time(lambda: target.copy_(source), device)[1]


def measure_case(arguments, config, name, ranks, device, samples, bandwidth):
    """The lines of a case that `samples` lacks."""
    case, count = f"{name}-{ranks}", samples.counts
    ours = [case, f"{name}-products-{ranks}"] if arguments.tp_run else []
    rounds = range(arguments.rounds)
    lacks_rounds = any(count[what] <= number for number in rounds for what in (f"compiled-{case}", *(f"ours-{of}" for of in ours)))
    if lacks_rounds or not samples.has_note_of(case):
        torch.compiler.reset()
        module = CASES[name](config).to(torch.bfloat16).to(device).eval()
        inputs = [torch.randn(shape, dtype=torch.bfloat16, device=device) for shape in CASES[name].shapes(config).values()]
        for tensor in inputs:
            # Without this, each call would copy its inputs, the cache too, to the graph's own memory.
            torch._dynamo.mark_static_address(tensor)
        compiled = torch.compile(module, **({"mode": "max-autotune"} if device == "cuda" else {"backend": "eager"}))
        for number in rounds:
            if count[f"compiled-{case}"] <= number:
                wall, on_device = take_time(lambda: compiled(*inputs), device)
                print(f"compiled-{case} {wall:.9f}\ndevice-{case} {on_device:.9f}", flush=True)
            # What fails once isn't run in further rounds.
            ours = [of for of in ours if count[f"ours-{of}"] > number or run_ours(arguments, of)]
        if not samples.has_note_of(case):
            print(f"# {case}: {list_kernels(lambda: compiled(*inputs), device)}", flush=True)
    if not count[f"attention-{case}"]:
        print(f"attention-{case} {take_time(attend(config, name, device), device)[1]:.9f}")
    for what, size in (("rest", rest_bytes), ("memory", all_bytes)):
        if not count[f"{what}-{case}"]:
            print(f"{what}-{case} {size(config, name) / bandwidth:.9f}", flush=True)


def measure(arguments, whole, device):
    """Lines 'WHAT-CASE-RANKS VALUE': the block compiled by PyTorch, what the floor adds to the products, and what a copy takes for
    all that a block reads; between them, ours."""
    samples = Samples(arguments.samples)
    torch.manual_seed(0)
    cudnn = torch.backends.cudnn.version() if device == "cuda" else "none"
    samples.note(f"# PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}")
    bandwidth = float(samples.values.get("bandwidth", 0)) or measure_bandwidth(device)
    if not samples.counts["bandwidth"]:
        print(f"bandwidth {bandwidth:.0f}", flush=True)
    with torch.no_grad():
        for ranks in arguments.ranks:
            for name in ("prefill", "decode"):
                measure_case(arguments, whole.of_rank(ranks), name, ranks, device, samples, bandwidth)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make", help="write archives to import")
    maker.add_argument("folder", type=Path)
    measurer = commands.add_parser("measure", help="time PyTorch")
    measurer.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                          help="cpu: without compiling, to try this script")
    measurer.add_argument("--rounds", type=int, default=3, help="how often all take turns (default: %(default)s)")
    measurer.add_argument("--samples", type=Path, help="what it has printed before; it measures only what is missing there")
    measurer.add_argument("--run-seconds", type=float, default=60, help="after how long a run of ours counts as hung (default: %(default)s)")
    measurer.add_argument("--warmup", type=int, default=5, help="of a run of ours, runs that don't count (default: %(default)s)")
    measurer.add_argument("--repeat", type=int, default=50, help="of a run of ours, runs that count (default: %(default)s)")
    measurer.add_argument("--tp-run", type=Path, help="the tool that runs ours in turn; without it, PyTorch is alone")
    measurer.add_argument("--blocks", type=Path, help="folder of a folder of each case with ours")
    measurer.add_argument("--program", default="device.tpx", help="their file (default: %(default)s)")
    measurer.add_argument("--library-path", help="LD_LIBRARY_PATH of ours, if another")
    for command in (maker, measurer):
        command.add_argument("--short", action="store_true", help="small sizes, to see that the script works")
        command.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    arguments = parser.parse_args()
    config = SMALL if arguments.short else Config()
    if arguments.command == "make":
        make(arguments.folder, config, arguments.ranks)
    else:
        measure(arguments, config, arguments.device)


if __name__ == "__main__":
    main()
