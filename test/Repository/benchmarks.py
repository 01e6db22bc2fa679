"""Runs a script of benchmarks/ with --short: that it works and measures something is what is tested, not
what it measures.

  benchmarks.py NAME BUILD OUT     NAME.py, with the tools and the libraries in BUILD; files go to OUT
  benchmarks.py --list             the names, one a line; exit code 1 where a script isn't known here, or is gone

Exit code 77 where something that the script compares with isn't installed, with a line that says what.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
FOLDERS = "--bin {build}/bin --out {out}"
# By script: its options, beside --short, and what it needs.
SCRIPTS = {
    "all_reduce": ("--build {build}", ["torch"]),
    "auto_plan": ("--bin {build}/bin", ["torch", "transformers"]),
    "checkpoints": (FOLDERS, ["numpy"]),
    "compile_layers": ("--bin {build}/bin", []),
    "compile_time": ("--tp-opt {build}/bin/tp-opt --jax-python {peers}", ["peers"]),
    "dots": ("--tp-opt {build}/bin/tp-opt", []),
    "gemms": ("", ["numpy"]),
    "generation": (FOLDERS, ["torch", "transformers"]),
    "llama_block": ("make {out} --ranks 1 2", ["torch"]),
    "minilm_vs_torch": (FOLDERS, ["torch", "transformers"]),
    "models_vs_torch": (FOLDERS, ["torch", "transformers"]),
    "overhead": ("--build {build}", ["torch"]),
    "overlap": (FOLDERS, ["torch", "transformers"]),
    "peers_collectives": ("--tp-opt {build}/bin/tp-opt --jax-python {peers} --docs {out}/table.md", ["torch", "peers"]),
    "pipeline_bubble": (FOLDERS, ["torch", "transformers"]),
    "prediction": (FOLDERS, ["torch", "transformers"]),
    "products": (FOLDERS, ["torch", "transformers"]),
    "published": (FOLDERS, ["torch"]),
    "python_call": ("--build {build}", ["torch", "transformers"]),
    "rank_classes": ("--bin {build}/bin", []),
    "redistributions": ("--bin {build}/bin", []),
    "run_all": (FOLDERS, ["torch", "transformers"]),
    "traffic": ("--bin {build}/bin", []),
    "traffic_block": ("", []),
    "training_peers": ("single", ["torch"]),
    "training_step": (FOLDERS, ["torch", "transformers"]),
}
# What scripts import, or start themselves.
PARTS = {"dtensor_llama", "leaving", "llama_graphs", "ncu_table", "redistribution_peers", "shardy_llama", "short"}


def get_missing(needs, build):
    for name in needs:
        if name == "peers":
            if not (build / "peers/bin/python").exists():
                yield f"JAX (requirements-peers.txt, installed in {build / 'peers'})"
        elif subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True).returncode:
            yield f"the Python package '{name}'"


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted(SCRIPTS)))
        different = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} ^ (SCRIPTS.keys() | PARTS)
        if different:
            print(f"error: benchmarks/ and {__file__} differ: {', '.join(sorted(different))}", file=sys.stderr)
        return bool(different)
    name, build, out = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    options, needs = SCRIPTS[name]
    if missing := list(get_missing(needs, build)):
        print(f"skipped: {name}.py needs {' and '.join(missing)}")
        return SKIPPED
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    if "table.md" in options:
        shutil.copy(ROOT / "docs/Comparison.md", out / "table.md")
    words = options.format(build=build, out=out, peers=build / "peers/bin/python").split()
    run = subprocess.run([sys.executable, ROOT / f"benchmarks/{name}.py", *words, "--short"], stdout=subprocess.PIPE, text=True)
    print(run.stdout)
    if run.returncode == 0 and not re.search(r"\d", run.stdout) and not any(out.iterdir()):
        print(f"error: {name}.py prints no number and writes no file", file=sys.stderr)
        return 1
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
