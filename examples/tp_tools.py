# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The four tools of tp-mlir, called as one calls them from a shell."""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch

ROOT = Path(os.path.relpath(Path(__file__).resolve().parent.parent))
sys.path[:0] = [str(ROOT / "python/tp_mlir"), str(ROOT / "tools/tp-import")]
import rank_classes
import tp_generation
import tp_trace

DTYPES = {torch.int64: "i64", torch.int32: "i32", torch.float32: "f32",
          torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
          torch.bool: "i1"}


def add_arguments(parser, name, ranks=(2, 4)):
    """Options of the examples that run on several numbers of ranks."""
    parser.add_argument("--ranks", type=int, nargs="+", default=list(ranks), metavar="N",
                        help="numbers of ranks to shard over (default: %(default)s)")
    add_folders(parser, name)


def add_folders(parser, name):
    """Where the tools are, and where files go; `name` names the default output folder."""
    parser.add_argument("--out", type=Path, default=ROOT / "build/examples" / name,
                        help="folder for all files that are made (default: %(default)s)")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin",
                        help="folder of the tools (default: %(default)s)")


def save_torchscript(module, inputs, path, script=False):
    """Write `module`, scripted or traced with `inputs`, as a TorchScript archive; of a trace its signatures, too."""
    with torch.no_grad(), warnings.catch_warnings():
        # That TorchScript is deprecated, and that a trace holds for these shapes only.
        warnings.simplefilter("ignore")
        if script:
            Path(path).with_suffix(".signature.json").unlink(missing_ok=True)
            torch.jit.script(module).save(path)
        else:
            tp_trace.save(module, tuple(inputs.values()), path)


def save_exported(module, inputs, path):
    """Write the program that torch.export makes of `module`, called with `inputs` as keywords."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module, (), inputs), path)


def plan_for(plan, ranks):
    """The text of the plan file with its mesh set to `ranks`."""
    text, count = re.subn(r"^mesh:.*$", f"mesh: {{tp: {ranks}}}", plan.read_text(), flags=re.M)
    if count != 1:
        raise ValueError(f"{plan}: expected one line that starts with 'mesh:', found {count}")
    return text


class Tools:
    """Runs the tools from `bin_folder`; their files go to `out`.

    A command that fails raises SystemExit; its own message is on stderr by then.
    `echo` prints each command line before it runs, and then what the tool prints."""

    def __init__(self, bin_folder, out, echo=True):
        self.bin = Path(bin_folder).resolve()
        self.out = Path(out)
        self.echo = echo
        self.out.mkdir(parents=True, exist_ok=True)
        if not (self.bin / "tp-run").exists():
            sys.exit(f"error: no tools in '{self.bin}'; build them with"
                     " 'cmake --workflow --preset release'")

    def call(self, tool, *arguments):
        if self.echo:
            print(f"$ {shlex.join([tool, *map(str, arguments)])}", flush=True)
        process = subprocess.run([self.bin / tool, *arguments], capture_output=not self.echo)
        if process.returncode:
            sys.stderr.buffer.write(process.stderr or b"")
            sys.exit(f"error: {tool} failed with exit code {process.returncode}")

    def import_model(self, archive, inputs):
        """TorchScript or an exported program (.pt2) → model IR and weights. `inputs`: name → tensor."""
        signatures = Path(archive).with_suffix(".signature.json")
        options = ["--signature", signatures] if signatures.exists() else []
        for name, tensor in inputs.items():
            shape = "x".join(map(str, tensor.shape))
            if Path(archive).suffix != ".pt2":  # an exported program knows them
                options += ["--input", f"{name}={shape}x{DTYPES[tensor.dtype]}"]
            np.save(self.out / f"{name}.npy", tensor.numpy())
        self.call("tp-import", archive, *options, "-o", self.out / "model.mlir",
                  "--weights", self.out / "model.safetensors")
        return Model(self, list(inputs))

    def import_decoder(self, model, **lengths):
        """A decoder of transformers → the IR of the programs that generate, and their weights. `lengths` are those of
        tp_generation.export."""
        programs = []
        for archive in tp_generation.export(model, self.out, **lengths):
            programs.append(archive.with_suffix(".mlir"))
            self.call("tp-import", archive, "-o", programs[-1], "--weights", self.out / "model.safetensors")
        return Decoder(self, programs)


class Decoder:
    """The imported programs of a decoder, to be sharded over any number of ranks."""

    def __init__(self, tools, programs):
        self.tools = tools
        self.programs = programs

    def shard(self, plan, ranks):
        """Apply the plan file over `ranks` ranks and compile the result."""
        folder = self.tools.out / f"{plan.stem}-{ranks}"
        folder.mkdir(exist_ok=True)
        own_plan = folder / "plan.yaml"
        own_plan.write_text(plan_for(plan, ranks))
        sharded = []
        for program in self.programs:
            sharded.append(folder / program.name)
            self.tools.call("tp-opt", program, f"--tp-parallelize=plan={own_plan}", "-o", sharded[-1])
        self.tools.call("tp-compile", *sharded, "-o", folder / "model.tpx")
        return Generator(self.tools, folder)


class Generator:
    """The compiled programs of a decoder."""

    def __init__(self, tools, folder):
        self.tools = tools
        self.folder = folder

    @property
    def executed(self):
        """What the last generation reported."""
        return json.loads((self.folder / "run.json").read_text())

    def generate(self, *options):
        """Continue the prompts that `options` name; returns the new tokens, a list for each prompt."""
        self.tools.call("tp-run", self.folder / "model.tpx", "--weights", self.tools.out / "model.safetensors", "--generate",
                        "--json", self.folder / "run.json", *options)
        return self.executed["tokens"]


class Model:
    """An imported model, to be sharded over any number of ranks."""

    def __init__(self, tools, inputs):
        self.tools = tools
        self.inputs = inputs

    def shard(self, plan, ranks, machine="cpu"):
        """Apply the plan file over `ranks` ranks and compile the result; predict a run on `machine`."""
        folder = self.tools.out / f"{plan.stem}-{ranks}"
        folder.mkdir(exist_ok=True)
        own_plan = folder / "plan.yaml"
        own_plan.write_text(plan_for(plan, ranks))
        return self.compile(own_plan, folder, f"machine={machine}")

    def compile(self, plan, folder, *options):
        """Apply the plan file as it is, with further options of tp-parallelize, and compile the result to `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        options = " ".join([f"plan={plan}", f"report={folder / 'report.json'}", *options])
        self.tools.call("tp-opt", self.tools.out / "model.mlir", f"--tp-parallelize={options}",
                        "-o", folder / "ranks.mlir")
        self.tools.call("tp-compile", folder / "ranks.mlir", "-o", folder / "model.tpx")
        return Artifact(self, folder)


class Artifact:
    """A compiled per-rank program with its report."""

    def __init__(self, model, folder):
        self.model = model
        self.folder = folder

    @property
    def report(self):
        return json.loads((self.folder / "report.json").read_text())

    def measure_arena(self):
        """Bytes of the program's arena, and the most that live in it at one time, as the compiler remarks."""
        command = [self.model.tools.bin / "tp-opt", self.folder / "ranks.mlir", "--tp-lower-to-llvm",
                   "--remarks-filter=tp-plan-arena", "--remark-format=emitRemark", "-o", os.devnull]
        remarks = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        sizes = [[int(size) for size in re.search(r"ArenaBytes=(\d+).*LiveBytes=(\d+)", line).groups()]
                 for line in remarks.splitlines() if "ArenaBytes=" in line]
        return max(sizes)

    @property
    def executed(self):
        """What the last run reported."""
        return json.loads((self.folder / "run.json").read_text())

    def run(self, *options, weights=None):
        """Run it on the inputs of the import, with the weights of the import or those of a file; returns its output."""
        tools = self.model.tools
        inputs = []
        for name in self.model.inputs:
            inputs += ["--input", f"{name}={tools.out / f'{name}.npy'}"]
        tools.call("tp-run", self.folder / "model.tpx", "--weights",
                   weights or tools.out / "model.safetensors", *inputs,
                   "--output", self.folder / "y.npy", "--json", self.folder / "run.json", *options)
        return np.load(self.folder / "y.npy")

    @property
    def trained(self):
        """The weights that `train` ended with."""
        return self.folder / "trained.safetensors"

    def train(self, steps, *options):
        """Train from the weights of the import; `options` name the data. Returns the metrics of every step."""
        tools = self.model.tools
        metrics = self.folder / "metrics.jsonl"
        tools.call("tp-run", self.folder / "model.tpx", "--weights", tools.out / "model.safetensors",
                   "--steps", str(steps), *options, "--metrics", metrics,
                   "--loss-curve", self.folder / "loss.svg", "--output-weights", self.trained)
        return [json.loads(line) for line in metrics.read_text().splitlines()]


def print_collectives(report):
    """One line for each kind of collective; layer numbers are shown as '*'."""
    rows = Counter()
    for item in report["collectives"]:
        fqn = re.sub(r"\b\d+\b", "*", item["fqn"])
        rows[item["kind"], item["bytes_per_rank"], fqn, item["reason"]] += 1
    print(f"{'count':>5}  {'kind':<14} {'bytes/rank':>10}  module: reason")
    for (kind, size, fqn, reason), count in rows.items():
        print(f"{count:>5}  {kind:<14} {size:>10}  {fqn}: {reason}")
    if not rows:
        print("    0  (no collectives)")


def compare_prediction(report, executed):
    """What tp-run counted and allocated but the report didn't predict, or the other way round: nothing, exactly.
    Returns one line for each difference."""
    differences = []

    def compare(what, predicted, counted):
        if predicted != counted:
            differences.append(f"{what}: predicted {predicted}, executed {counted}")

    predicted, ranks = report["collectives"], rank_classes.Ranks(report)
    for rank, expected in zip(executed["ranks"], ranks):
        held = expected.prediction
        name = f"rank {rank['rank']}"
        compare(f"{name}, collectives",
                [(item["id"], item["kind"], expected.get_bytes(item["id"]), 1) for item in predicted],
                [(item["id"], item["kind"], item["bytes"], item["calls"]) for item in rank["collectives"]])
        compare(f"{name}, bytes", held["bytes_received"], rank["bytes"])
        compare(f"{name}, memory", held["memory"],
                {"parameters": rank["weight_bytes"], "inputs": rank["input_bytes"], "outputs": rank["output_bytes"],
                 "arena": executed["arena_bytes"],
                 "total": rank["weight_bytes"] + rank["input_bytes"] + rank["output_bytes"] + executed["arena_bytes"]})
    compare("ranks", len(ranks), len(executed["ranks"]))
    return differences


def relative_difference(value, expected):
    """Largest |value − expected|, relative to the largest |expected|."""
    if value.shape != expected.shape:
        sys.exit(f"error: output has shape {value.shape}, expected {expected.shape}")
    return float(np.abs(value - expected).max() / np.abs(expected).max())
