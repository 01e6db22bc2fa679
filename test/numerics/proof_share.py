"""How many of the repository's own pipelines are proven by rules and block algebra, with nothing left to execute.

  proof_share.py [--tools DIRECTORY] [--family NAME] [--filter REGEX] [--stride N] [--keep DIRECTORY] [--jobs N] [--slowest N]

Makes the per-rank programs of every example, test and benchmark and proves each of their functions with tp-verify-spmd,
which may not execute anything. Prints a table, and every function that isn't proven with the reason. Exit code 1 when the
share of any family is below the recorded one, when a family has fewer functions than it had, and when a program that
should exist isn't made.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import pipelines
from ops import get_tool


# Of each family: how many functions it has at least, and the percentage of them that is proven.
RECORDED = {
    "examples": (202, 100),
    "benchmarks": (85, 100),
    "trainings": (76, 100),
    "PyTorch's tests of training": (96, 100),
    "PyTorch's tests' transformer": (58, 100),
    "split losses": (60, 100),
    "memory of FSDP": (8, 100),
    "plans": (15, 100),
    "random programs": (12, 100),
    "upstream ops": (576, 100),
    "upstream ops together": (6, 100),
    "sums": (1296, 100),
    "redistributions": (16, 100),
    "lit tests": (194, 100),
}
# Tests of what the passes refuse are lit tests.
REFUSING = "lit tests"


@dataclasses.dataclass
class Outcome:
    pipeline: pipelines.Pipeline
    proven: int = 0
    # Of functions: where and why.
    unproven: list = dataclasses.field(default_factory=list)
    # What the passes refuse isn't a program.
    refused: str = None
    seconds: float = 0


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stderr


def check(pipeline, tools, folder):
    folder.mkdir(parents=True, exist_ok=True)
    tool, ranks = get_tool(tools, "tp-opt"), folder / "ranks.mlir"
    outcome = Outcome(pipeline)
    reference = pipeline.model
    if pipeline.before:
        reference = folder / "reference.mlir"
        code, text = run(tool, pipeline.model, *pipeline.before, "-o", reference)
        if code:
            outcome.refused = text
            return outcome
    code, text = run(tool, reference, *pipeline.passes, "-o", ranks)
    if code:
        outcome.refused = text
        return outcome
    if any("gradients" in word.split() for word in pipeline.passes):  # an option of tp-parallelize
        gradients = folder / "gradients.mlir"
        run(tool, reference, "--tp-grad=inputs", "-o", gradients)
        reference = gradients
    start = time.perf_counter()
    train = f" train={pipeline.train}" if pipeline.train else ""
    code, text = run(tool, ranks, "-o", "/dev/null", f"--tp-verify-spmd=reference={reference}{train} max-operations=0")
    outcome.seconds = time.perf_counter() - start
    outcome.proven = len(re.findall(r"remark: '.*' is proven for", text))
    outcome.unproven = [line for line in text.splitlines() if " error: " in line]
    if code and not outcome.unproven:
        outcome.unproven = [f"exit code {code}: {text.strip()[:500]}"]
    return outcome


def print_row(name, count, share):
    print(f"{name:<30} {count['pipelines']:>9} {count['functions']:>9} {count['proven']:>7} {share:>7.2f} %"
          f" {count['functions'] - count['proven']:>10} {count['refused']:>8} {count['seconds']:>8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", help="where the tools are; PATH by default")
    parser.add_argument("--family", action="append", choices=[*pipelines.FAMILIES], help="only this one")
    parser.add_argument("--filter", default="", help="only pipelines whose name matches this regular expression")
    parser.add_argument("--stride", type=int, default=1, help="only every N-th of each family")
    parser.add_argument("--keep", type=pathlib.Path, help="keep all files here")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slowest", type=int, default=0, help="so many of the slowest proofs are listed")
    options = parser.parse_args()
    totals, rows, slowest, is_good = collections.Counter(), [], [], True
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        root = (options.keep or pathlib.Path(scratch)).resolve()
        for family in options.family or pipelines.FAMILIES:
            begin = time.perf_counter()
            folder = root / pipelines.get_name(family)
            folder.mkdir(parents=True, exist_ok=True)
            source = pipelines.Source(options.tools, folder)
            chosen = [pipeline for pipeline in pipelines.FAMILIES[family](source) if re.search(options.filter, pipeline.name)]
            jobs = [pool.submit(check, pipeline, options.tools, folder / f"{pipelines.get_name(pipeline.name)}.ranks")
                    for pipeline in chosen[:: options.stride]]
            count = collections.Counter()
            for outcome in (job.result() for job in jobs):
                name = f"{family}: {outcome.pipeline.name}"
                count["pipelines"] += 1
                count["refused"] += outcome.refused is not None
                if outcome.refused and family != REFUSING:
                    is_good = False
                    print(f"FAIL {name} isn't made: {outcome.refused.strip()[:500]}", flush=True)
                count["proven"] += outcome.proven
                count["functions"] += outcome.proven + len(outcome.unproven)
                for text in outcome.unproven:
                    print(f"not proven, {name}: {text}", flush=True)
                slowest.append((outcome.seconds, name))
            count["seconds"] = round(time.perf_counter() - begin)
            rows.append((family, count))
            totals += count
    print(f"{'':<30} {'pipelines':>9} {'functions':>9} {'proven':>7} {'share':>9} {'to execute':>10} {'refused':>8} {'seconds':>8}")
    for name, count in [*rows, ("all", totals)]:
        share = 100 * count["proven"] / max(count["functions"], 1)
        print_row(name, count, share)
        functions, recorded = RECORDED.get(name, (0, 0))
        if count["functions"] < functions and not options.filter and options.stride == 1:
            is_good = False
            print(f"FAIL {name}: {count['functions']} functions, there were {functions}")
        if share < recorded and count["functions"]:
            is_good = False
            print(f"FAIL {name}: the share is below the recorded {recorded} %")
    for seconds, name in sorted(slowest, reverse=True)[: options.slowest]:
        print(f"{seconds:8.2f} s  {name}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
