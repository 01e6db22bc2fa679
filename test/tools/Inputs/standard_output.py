"""Fails unless each tool says that what it prints is lost, where the standard output is full or closed.

usage: standard_output.py FOLDER

FOLDER gets the inputs. Prints how many commands were tried.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODEL = """tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<2x4xf32> {tp.name = "x"}) -> (tensor<2x4xf32> {tp.name = "y"}) {
  %y = nn.relu %x : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
"""
TRAIN = "tp-run train.2.tpx --weights w.safetensors --data x=x.npy --data target=target.npy --steps 2"
TOY = "tp-run toy.tpx --weights toy.safetensors --input x=toy.npy"

# What prints, in a shell.
COMMANDS = [
    *(f"{tool} {option}" for tool in ("tp-opt", "tp-compile", "tp-import", "tp-run", "tp-ckpt", "tp-reduce", "tp-lsp-server")
      for option in ("--help", "--version")),
    "tp-ckpt merge --help",
    "tp-opt --list-passes",
    "tp-opt --show-dialects",
    "tp-opt model.mlir",
    "tp-opt model.mlir -o /dev/stdout",
    "tp-opt model.mlir --tp-explain",
    "tp-opt model.mlir --tp-print-plan=plan=plan.yaml",
    "tp-opt ranks.mlir '--tp-report=machine=cpu table' -o /dev/null",
    *(f"tp-compile ranks.mlir --emit={kind} -o -" for kind in ("tpx", "manifest", "mlir", "llvm", "obj")),
    "tp-compile ranks.mlir --machine=cpu -o /dev/null",
    "tp-import --list-ops",
    "tp-import model.pt --input x=2x4xf32",
    TOY,
    f"{TOY} --json -",
    f"{TOY} --profile",
    f"{TOY} --repeat 2",
    f"{TOY} --output /dev/stdout",
    *(f"{TOY} {option} -" for option in ("--output", "--trace", "--output-weights")),
    f"{TOY} --expect y.npy",
    "tp-run toy.tpx --describe",
    "tp-run toy.tpx --list",
    TRAIN,
    f"{TRAIN} --log-every 1",
    f"{TRAIN} --metrics /dev/stdout",
    *(f"{TRAIN} {option} -" for option in ("--metrics", "--loss-curve")),
    "tp-ckpt list run",
    "tp-ckpt verify run/step-00000002",
    "tp-ckpt merge run/step-00000002 -o merged",
    "tp-ckpt merge run/step-00000002 -o -",
    "rm -rf split; tp-ckpt split w.safetensors --max-bytes 40 -o split",
    "tp-reduce model.mlir '--reduction-tree=traversal-mode=0 test=./test.sh'",
]


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)
    inputs = HERE.parent / "tp-run" / "Inputs"

    def run(*command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    run(sys.executable, inputs / "make_train.py", ".")
    run(sys.executable, inputs / "make_toy.py", "toys")
    for source, target in (("toy.tpx", "toy.tpx"), ("w.safetensors", "toy.safetensors"), ("x.npy", "toy.npy"), ("y.npy", "y.npy")):
        shutil.copy(f"toys/{source}", target)
    pathlib.Path("model.mlir").write_text(MODEL)
    pathlib.Path("plan.yaml").write_text("mesh: {tp: 2}\nplan: {}\n")
    pathlib.Path("test.sh").write_text('#!/bin/sh\ngrep -q nn.relu "$1" && exit 1\nexit 0\n')
    os.chmod("test.sh", 0o755)
    run("tp-opt", "model.mlir", "--tp-propagate", "--tp-partition", "-o", "ranks.mlir")
    run(*TRAIN.split(), "--checkpoint-dir", "run")
    has_import = shutil.which("tp-import")
    if has_import:
        run(sys.executable, "-c", "import torch; torch.jit.trace(torch.nn.Linear(4, 4), torch.ones(2, 4)).save('model.pt')")

    failures, tried = [], 0
    for command in COMMANDS:
        if command.startswith("tp-import") and not has_import:
            continue
        whole = subprocess.run(["bash", "-c", command], capture_output=True)
        if whole.returncode != 0 or not whole.stdout:
            failures.append(f"{command}: exit code {whole.returncode}, prints {len(whole.stdout)} bytes\n{whole.stderr.decode()}")
        for redirect in (">/dev/full", ">&-"):
            tried += 1
            result = subprocess.run(["bash", "-c", f"exec {redirect}; {command}"], stderr=subprocess.PIPE, text=True)
            if result.returncode != 1 or not any(word in result.stderr for word in ("output", "/dev/stdout")):
                failures.append(f"{command} {redirect}: exit code {result.returncode}: {result.stderr}")
    for failure in failures:
        print(failure)
    print(f"{tried} commands lost what they print, {len(failures)} failures")


main(sys.argv[1])
