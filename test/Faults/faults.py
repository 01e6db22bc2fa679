"""Lets each system call of the tools' writing paths fail in turn, in every way, or all processes end before it.

usage: faults.py --bin FOLDER --inject PROGRAM --out FOLDER [--only NAME] [--quick] [--seed N] [--jobs N]

Whatever fails: a file that was there is there as it was, or as it is meant to be, complete. Where the exit code is 0 the
outputs are new. Where it isn't, a message names what can't be written, and nothing else is left, except by what was killed.

Before that each command runs without a fault, and its calls are looked through: each file that is there afterwards has been
seen, nothing is written elsewhere, and what is renamed to an output is on the disk before and its name after.
--quick tries a few calls of each command, which the seed chooses.
"""

import argparse
import concurrent.futures
import dataclasses
import io
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import zipfile

import numpy

HERE = pathlib.Path(__file__).resolve().parent
ERRORS = ("ENOSPC", "EIO", "EINTR", "ENOMEM", "EDQUOT", "EROFS")
KINDS = (*ERRORS, "short", "full", "kill")
WRITES = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", "splice"}
# What fails to remove a temporary file leaves it.
REMOVALS = {"unlink", "unlinkat", "rmdir"}
OLD = b"what was there before\n"
KILLED = 128 + 9

MODEL = """tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<2x4xf32> {tp.name = "x"}) -> (tensor<2x4xf32> {tp.name = "y"}) {
  %y = nn.relu %x : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
"""

TRACE = """import sys, torch
sys.path.insert(0, sys.argv[1])
import tp_trace
tp_trace.save(torch.nn.Linear(4, 4), (torch.ones(2, 4),), "model.pt")
"""


@dataclasses.dataclass
class Case:
    """A command that writes `outputs`, relative to the folder it runs in; {in} are inputs and {bin} the tools.

    With `printed`, its standard output is a file of that folder. `quick` is how many faults --quick tries, and `most` how
    many a whole campaign does, where one takes long. `check(folder, run, code)` looks further."""

    name: str
    command: str
    outputs: tuple = ()
    quick: int = 24
    most: int = 1 << 30
    printed: bool = False
    check: object = None
    # Names that a message may have, besides those of outputs.
    names: tuple = ()
    # What is kept for next time, and may be left out: a glob.
    kept: str = ""
    # A folder that the command does without where something fails in it.
    spared: str = ""


def check_checkpoints(folder, run, code):
    """Every checkpoint that is listed is complete, and none is broken."""
    if not (folder / "run").exists():
        return
    listed = run("tp-ckpt", "list", "run")
    assert listed.returncode == 0 and "broken" not in listed.stdout, f"tp-ckpt list: {listed.stdout}{listed.stderr}"
    steps = [line.split("  ")[0] for line in listed.stdout.splitlines() if line.startswith("run/")]
    for step in steps:
        verified = run("tp-ckpt", "verify", step)
        assert verified.returncode == 0, verified.stderr
    assert code != 0 or steps == ["run/step-00000004"], f"exit code 0, but there are {steps}"


def check_split(folder, run, code):
    index = folder / "parts" / "model.safetensors.index.json"
    if index.exists():
        for name in json.loads(index.read_text())["weight_map"].values():
            assert (folder / "parts" / name).exists(), f"the index names '{name}', which is missing"
    assert code != 0 or index.exists(), "no index"


def check_cached(folder, run, code):
    """Whatever became of the cache, the next run is a right one."""
    again = run("tp-run", "{in}/ranks.mlir", "--input", "x={in}/x.npy", "--output", "again.npy")
    assert again.returncode == 0, again.stderr
    assert (folder / "again.npy").read_bytes() == (folder.parent / "inputs" / "relu.npy").read_bytes(), "another result"
    (folder / "again.npy").unlink()


def check_metrics(folder, run, code):
    check_checkpoints(folder, run, code)
    path = folder / "m.jsonl"
    if path.exists():
        *lines, rest = path.read_text().split("\n")
        for number, line in enumerate(lines, 1):
            assert json.loads(line)["step"] == number, line
        assert code != 0 or len(lines) == 4 and not rest, "exit code 0, but not all lines"


TRAIN = ("tp-run {in}/train/train.2.tpx --weights {in}/train/w.safetensors --data x={in}/train/x.npy --data "
         "target={in}/train/target.npy --steps 4 ")
TOY = "tp-run {in}/toy.tpx --weights {in}/w.safetensors --input x={in}/x.npy "

CASES = [
    Case("tp-opt", "tp-opt {in}/model.mlir --tp-propagate --tp-explain=file=e.txt --tp-partition --tp-report=file=r.json "
         "--tp-verify-spmd=reference={in}/model.mlir report=v.json -o out.mlir", ("e.txt", "r.json", "v.json", "out.mlir")),
    Case("tp-parallelize", "tp-opt {in}/model.mlir --tp-parallelize=report=r.json html=r.html -o out.mlir", ("r.json", "r.html", "out.mlir")),
    Case("tp-opt, printed", "tp-opt {in}/model.mlir", printed=True),
    Case("tp-compile", "tp-compile {in}/ranks.mlir --machine=cpu --report=r.json --html=r.html -o out.tpx",
         ("r.json", "r.html", "out.tpx"),
         quick=30, names=("/tmp'", "tp-compile-")),
    Case("tp-compile --emit", "tp-compile {in}/ranks.mlir --emit=obj -o out.o", ("out.o",), quick=8),
    Case("tp-compile --emit, printed", "tp-compile {in}/ranks.mlir --emit=llvm -o -", printed=True, quick=6),
    Case("tp-import", "tp-import {in}/model.pt --input x=2x4xf32 -o out.mlir --weights out.safetensors",
         ("out.mlir", "out.safetensors"), quick=12),
    Case("tp-import, printed", "tp-import {in}/model.pt --input x=2x4xf32", printed=True, quick=2),
    Case("tp-import --list-ops", "tp-import --list-ops", printed=True, quick=2),
    Case("tp-trace", "{python} {in}/trace.py {sources}/tools/tp-import", ("model.pt", "model.signature.json"), quick=6, most=60),
    Case("tp-reduce", "tp-reduce {in}/model.mlir --reduction-tree=traversal-mode=0 test={in}/test.sh -o out.mlir",
         ("out.mlir",), quick=6, most=200, names=("tp-reduce-", "mlir-reduce-", "unique filename")),
    Case("tp-run", TOY + "--output y.npy --json r.json --trace t.json --output-weights o.safetensors",
         ("y.npy", "r.json", "t.json", "o.safetensors"), quick=40),
    Case("tp-run --blocks", TOY + "--blocks b", ("b/y.0.npy", "b/y.1.npy"), names=("'b'",)),
    Case("tp-run, printed", TOY + "--json -", printed=True, quick=4),
    Case("tp-run --state-out", "tp-run {in}/generate/generate.1.tpx --weights {in}/generate/w.safetensors --input "
         "input_ids={in}/generate/next.npy --input cache_position={in}/generate/next_at.npy --state-out s.safetensors",
         ("s.safetensors",), quick=12),
    Case("tp-run --generate", "tp-run {in}/generate/generate.1.tpx --weights {in}/generate/w.safetensors --generate "
         "--prompt-ids {in}/generate/three.npy --max-new-tokens 4 --output t.npy --json r.json", ("t.npy", "r.json"), quick=24),
    Case("tp-run --describe", "tp-run {in}/toy.tpx --describe", printed=True, quick=4),
    Case("tp-run --help", "tp-run --help", printed=True, quick=2),
    Case("tp-run --version", "tp-run --version", printed=True, quick=2),
    Case("tp-run's cache", "tp-run {in}/ranks.mlir --input x={in}/x.npy --output y.npy", ("y.npy",), check=check_cached,
         kept="cache/tp-mlir/*.tpx", spared="cache", quick=40, names=("/tmp'", "tp-compile-", "program.tpx")),
    Case("tp-run's choices", "tp-run {work}/big.tpx --random 1 --output y.npy", ("y.npy",), kept="big.tpx.gemm.json", quick=12,
         most=120),
    Case("training", TRAIN + "--checkpoint-dir run --checkpoint-every 2 --checkpoint-keep 1 --loss-curve l.svg "
         "--output-weights o.safetensors --trace t.json", ("l.svg", "o.safetensors", "t.json"), check=check_checkpoints,
         quick=60, names=("run",)),
    Case("training, checkpoints beside the steps", TRAIN + "--checkpoint-dir run --checkpoint-every 2 --checkpoint-async "
         "--checkpoint-keep 1", check=check_checkpoints, quick=40, names=("run",)),
    Case("metrics", TRAIN + "--checkpoint-dir run --checkpoint-keep 1 --metrics m.jsonl", check=check_metrics,
         names=("run", "m.jsonl")),
    Case("tp-run --calibrate", "tp-run --calibrate machine.json", ("machine.json",), quick=0, most=3),
    Case("tp-ckpt merge", "tp-ckpt merge {in}/run/step-00000002 -o o.safetensors", ("o.safetensors",)),
    Case("tp-ckpt split", "tp-ckpt split {in}/w.safetensors --max-bytes 40 -o parts", check=check_split, names=("parts",)),
    Case("tp-ckpt list", "tp-ckpt list {in}/run", printed=True, quick=4),
    Case("tp-ckpt verify", "tp-ckpt verify {in}/run/step-00000002", printed=True, quick=4),
    Case("tp-ckpt --help", "tp-ckpt --help", printed=True, quick=2),
    *(Case(f"{tool} --{option}", f"{tool} --{option}", printed=True, quick=1, most=40)
      for tool in ("tp-opt", "tp-compile", "tp-import", "tp-reduce", "tp-lsp-server") for option in ("help", "version")),
]


def make_inputs(folder, tools):
    folder.mkdir(parents=True)
    scripts = HERE.parent / "tools" / "tp-run" / "Inputs"
    environment = dict(os.environ, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}", TP_CACHE_DIR=str(folder / "cache"))

    def run(*command):
        subprocess.run([str(part) for part in command], cwd=folder, check=True, env=environment, stdout=subprocess.DEVNULL)

    run(sys.executable, scripts / "make_toy.py", folder)
    run(sys.executable, scripts / "make_train.py", folder / "train")
    run(sys.executable, scripts / "make_generate.py", folder / "generate")
    (folder / "model.mlir").write_text(MODEL)
    run("tp-opt", "model.mlir", "--tp-propagate", "--tp-partition", "-o", "ranks.mlir")
    (folder / "big.mlir").write_text(
        MODEL.replace("nn.relu %x : tensor<2x4xf32>", "nn.linear %x, %w : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>")
        .replace("tensor<2x4xf32>", "tensor<256x512xf32>")
        .replace('"x"}', '"x"}, %w: tensor<512x512xf32> {tp.name = "w"}'))
    run("tp-opt", "big.mlir", "--tp-propagate", "--tp-partition", "-o", "big-ranks.mlir")
    run("tp-compile", "big-ranks.mlir", "-o", "big.tpx")
    run("tp-run", "ranks.mlir", "--input", "x=x.npy", "--output", "relu.npy")
    run("tp-run", "train/train.2.tpx", "--weights", "train/w.safetensors", "--data", "x=train/x.npy", "--data",
        "target=train/target.npy", "--steps", "2", "--checkpoint-dir", "run")
    (folder / "trace.py").write_text(TRACE)
    (folder / "test.sh").write_text("#!/bin/sh\ngrep -q nn.relu \"$1\" && exit 1\nexit 0\n")
    (folder / "test.sh").chmod(0o755)
    if (tools / "tp-import").exists():
        run(sys.executable, "-c", "import torch; torch.jit.trace(torch.nn.Linear(4, 4), torch.ones(2, 4)).save('model.pt')")


@dataclasses.dataclass
class Call:
    state: str  # watched, outside, fault, hole
    name: str
    paths: list

    def __str__(self):
        return " ".join([self.name, *(pathlib.Path(path).name for path in self.paths)])


@dataclasses.dataclass
class Run:
    """What a command did."""

    folder: pathlib.Path
    code: int
    out: str
    err: str
    calls: list


class Campaign:
    def __init__(self, options):
        self.tools = pathlib.Path(options.bin).resolve()
        self.inject = pathlib.Path(options.inject).resolve()
        self.out = pathlib.Path(options.out).resolve()
        shutil.rmtree(self.out, ignore_errors=True)
        self.inputs = self.out / "inputs"
        make_inputs(self.inputs, self.tools)
        self.options, self.failures, self.counts = options, [], {kind: 0 for kind in KINDS}
        self.lock = threading.Lock()

    def get_environment(self, folder):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TP_", "XDG_"))}
        environment |= {"TMPDIR": str(folder / "tmp"), "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder),
                        "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                        "PATH": f"{self.tools}{os.pathsep}{environment['PATH']}"}
        # A process that is traced can't look for leaks.
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        return environment

    def get_command(self, words, folder):
        values = {"{in}": self.inputs, "{bin}": self.tools, "{work}": folder, "{sources}": HERE.parents[1],
                  "{python}": sys.executable}

        def replace(word):
            for name, value in values.items():
                word = word.replace(name, str(value))
            return word

        words = [replace(word) for word in words]
        return [words[0] if "/" in words[0] else str(self.tools / words[0]), *words[1:]]

    def run(self, case, has_old, place, *fault):
        """Runs the command in a fresh folder, with old outputs in it or without."""
        folder = self.out / f"work-{place}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        (folder / "cache").mkdir()
        if "{work}/big.tpx" in case.command:
            shutil.copy(self.inputs / "big.tpx", folder)
        for output in case.outputs if has_old else ():
            (folder / output).parent.mkdir(exist_ok=True)
            (folder / output).write_bytes(OLD)
        log = self.out / f"log-{place}"
        # An option with several parts is one word.
        words = [word.replace("\0", " ") for word in re.sub(r" (report=v|html=|test=)", "\0\\1", case.command).split()]
        with open(folder / "printed", "wb") if case.printed else open(os.devnull, "wb") as printed:
            process = subprocess.run(
                [str(self.inject), str(folder), str(log), *map(str, fault), "--", *self.get_command(words, folder)],
                cwd=folder, env=self.get_environment(folder), stdout=printed, stderr=subprocess.PIPE, timeout=600)
        calls = []
        for line in log.read_text(errors="replace").splitlines():
            state, name, *paths = line.split("\t")
            calls.append(Call(state, name, paths))
        return Run(folder, process.returncode, "", process.stderr.decode(errors="replace"), calls)

    def run_plainly(self, folder, *words):
        """A tool without faults, to look at what is left."""
        return subprocess.run(self.get_command(words, folder), cwd=folder, env=self.get_environment(folder),
                              capture_output=True, text=True, timeout=600)

    def try_case(self, case):
        """Returns how many calls the command makes, and how many faults it met."""
        total, states = 0, (True, False) if case.outputs else (False,)
        todo, new = [], {}
        for has_old in states:
            run = self.run(case, has_old, "plain")
            if run.code != 0:
                sys.exit(f"{case.name} fails without a fault, {run.code}:\n{run.err}")
            new = {output: (run.folder / output).read_bytes() for output in case.outputs}
            if case.printed:
                new["printed"] = (run.folder / "printed").read_bytes()
            problems = self.check_calls(case, run)
            self.failures += [f"{case.name}: {problem}" for problem in problems]
            calls = [call for call in run.calls if call.state == "watched"]
            if not calls:
                sys.exit(f"{case.name}: no calls are seen")
            total += len(calls)
            todo += [(has_old, number, kind) for number, call in enumerate(calls, 1) for kind in KINDS
                     if kind != "short" or call.name in WRITES]
        most = case.quick if self.options.quick else case.most
        if len(todo) > most:
            todo = random.Random(f"{self.options.seed} {case.name}").sample(todo, most)

        def attempt(item):
            has_old, number, kind = item
            place = threading.get_ident()
            run = self.run(case, has_old, place, number, kind)
            try:
                self.check(case, has_old, kind, run, new)
            except AssertionError as error:
                met = [str(call) for call in run.calls if call.state == "fault"]
                problem = f"{case.name}, {kind} in call {number} ({', '.join(met[:3])}), {'old' if has_old else 'no'} files: {error}"
                with self.lock:
                    self.failures.append(problem)
                    print(problem, flush=True)
            with self.lock:
                self.counts[kind] += 1

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(attempt, todo))
        return total, len(todo)

    def check_calls(self, case, run):
        """What is wrong with the calls of a command that had no fault."""
        for call in run.calls:
            if call.state in ("outside", "hole"):
                yield f"writes elsewhere: {call.state} {call.name} {call.paths}"
        seen = {str(run.folder / "big.tpx")}
        for call in run.calls:
            seen |= set(call.paths)
            if call.name.startswith("rename"):  # perhaps of a folder
                source, target = call.paths
                seen |= {target + path[len(source):] for path in seen if path.startswith(source + "/")}
        for path in run.folder.rglob("*"):
            if path.is_file() and str(path) not in seen:
                yield f"'{path}' was written unseen"
        left = self.find_left_over(case, run.folder)
        if left:
            yield f"left over: {left}"
        watched = [call for call in run.calls if call.state == "watched"]
        for at, call in enumerate(watched):
            # What is removed, or kept for next time, may be lost.
            if not call.name.startswith("rename") or ".tmp-" in pathlib.Path(call.paths[1]).name or any(
                    f"/{name}/" in call.paths[1] for name in ("cache", "tmp")):
                continue
            source, target = call.paths
            parent = str(pathlib.Path(target).parent)
            # A file that had no name got one by linkat.
            names = {source} | {other.paths[0] for other in watched[:at] if other.name == "linkat" and other.paths[1] == source}
            before = [other for other in watched[:at] if other.paths[0] in names]
            last_write = max((i for i, other in enumerate(before) if other.name in WRITES), default=-1)
            if not any(other.name == "fsync" for other in before[last_write + 1:]):
                yield f"'{target}' gets its name before it is on the disk"
            if not any(other.name == "fsync" and other.paths[0] == parent for other in watched[at:]):
                yield f"the name '{target}' isn't brought to the disk"

    def check(self, case, has_old, kind, run, new):
        code, folder = run.code, run.folder
        met = [call for call in run.calls if call.state == "fault"]
        if kind == "kill":
            assert code in (KILLED, 0), f"exit code {code}: {run.err}"
        else:
            assert code < 128, f"signal {code - 128}: {run.err}"
        for output in case.outputs:
            path = folder / output
            found = path.read_bytes() if path.exists() else None
            is_new = found is not None and found != OLD and (found == new[output] or is_complete(path, found, case.kept and new[output]))
            if code == 0:
                assert is_new, f"exit code 0, but '{output}' isn't complete"
            else:
                assert is_new or found == (OLD if has_old else None), f"'{output}' is neither the old nor the new one"
        if case.printed and code == 0:
            found = (folder / "printed").read_bytes()
            assert len(found) == len(new["printed"]) or case.name == "tp-run, printed" and is_complete(folder / "r.json", found, ""), \
                "exit code 0, but not all is printed"
        if case.check:
            case.check(folder, lambda *words: self.run_plainly(folder, *words), code)
        if code == KILLED:
            return
        if code != 0:
            names = (*case.outputs, *case.names, *(("standard output", "output stream") if case.printed else ()))
            assert any(name in run.err for name in names), f"exit code {code}, and no file is named: {run.err!r}"
            assert not case.spared or any(not pathlib.Path(call.paths[0]).is_relative_to(folder / case.spared) for call in met), \
                f"exit code {code}, though what fails is in '{case.spared}': {run.err!r}"
        # A folder that can't be opened can't be emptied.
        if not any(call.name in REMOVALS or pathlib.Path(call.paths[0]).is_dir() for call in met):
            left = self.find_left_over(case, folder)
            assert not left, f"left over: {left}"

    def find_left_over(self, case, folder):
        expected = {folder / name for name in ("tmp", "cache", "printed", "big.tpx", "run", "parts", "cache/tp-mlir", "cache/tp-mlir/gemm", "m.jsonl")}
        expected |= {folder / part for output in case.outputs for part in (output, pathlib.Path(output).parent)}
        if case.kept:
            expected |= set(folder.glob(case.kept))
        left = [path for path in folder.rglob("*") if path not in expected]
        left += [path for path in (folder / "b", folder / "parts") if path.is_dir() and not any(path.iterdir())]
        return [str(path.relative_to(folder)) for path in left if ".tmp-" in str(path) or path == folder / "parts"
                or not path.is_relative_to(folder / "run") and not path.is_relative_to(folder / "parts")]


def is_complete(path, text, new):
    """Whether a file that differs from the expected one is complete: reports, traces and the loss curve of a training that
    failed later differ from run to run. With `new`, so do results: another library computes the products if the choice of
    one can't be kept."""
    try:
        if path.suffix == ".npy" and new:
            found, expected = (numpy.load(io.BytesIO(data)) for data in (text, new))
            return found.shape == expected.shape and numpy.allclose(found, expected, rtol=1e-4, atol=1e-4)
        if path.suffix == ".svg":
            return text.endswith(b"</svg>\n")
        if path.suffix == ".pt":
            return zipfile.ZipFile(path).testzip() is None
        return path.suffix == ".json" and json.loads(text) is not None
    except (EOFError, ValueError, zipfile.BadZipFile):
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--inject", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", help="a case's name, or part of several")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    campaign = Campaign(options)
    chosen = [case for case in CASES if case.name == options.only] or [
        case for case in CASES if not options.only or options.only in case.name]
    for case in chosen:
        tool = case.command.split()[0]
        needed = "tp-import" if tool == "{python}" else tool
        if not (campaign.tools / needed).exists() or options.quick and not case.quick:
            continue
        calls, faults = campaign.try_case(case)
        print(f"{case.name}: {calls} calls, {faults} faults", flush=True)
    for failure in campaign.failures:
        print(f"failure: {failure}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in campaign.counts.items())
    print(f"{sum(campaign.counts.values())} faults ({kinds}), {len(campaign.failures)} failures")
    sys.exit(1 if campaign.failures else 0)


if __name__ == "__main__":
    main()
