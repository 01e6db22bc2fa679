"""Plants faults in the programs of a pipeline's stages, one at a time, and checks that each of them is refused.

  pipeline_faults.py RANKS OPTIONS

RANKS are the programs, OPTIONS those of tp-verify-spmd. The faults, at each place where there can be one:

- wrong neighbor: a transfer is between other ranks, or goes the other way;
- wrong microbatch: an earlier value of the same type is sent, or read, instead of the one that is meant, or a microbatch of
  the input is taken from another place of the batch;
- missing sum: one term of a sum, such as that of a tied weight's gradients, is left out.

Prints how many faults of each kind are refused; exit code 1 when one isn't.
"""

import collections
import itertools
import pathlib
import re
import subprocess
import sys

TRANSFER = re.compile(r"tp\.transfer (%\w+) from (\d+) to (\d+)(.*) : (tensor<\S+) -> (tensor<\S+)")


def is_refused(path, options):
    """Whether an error says so. The cheaper check comes first."""
    for check in ("--tp-verify-collectives", f"--tp-verify-spmd={options} accept-tested"):
        done = subprocess.run(["tp-opt", path, check, "-o", "/dev/null"], capture_output=True, text=True)
        if done.returncode < 0 or done.returncode > 1:
            sys.exit(f"{path}: tp-opt ended with {done.returncode}: {done.stderr[-2000:]}")
        if done.returncode:
            assert "error:" in done.stderr
            return True
    return False


def get_functions(lines):
    """The ranges of lines of all functions."""
    begins = [number for number, line in enumerate(lines) if line.startswith("  func.func")] + [len(lines)]
    return list(itertools.pairwise(begins))


def replace_uses(lines, begin, end, old, new):
    pattern = re.compile(rf"{re.escape(old)}(?![\w:])")
    changed = [line if re.match(rf"\s*{re.escape(old)} = ", line) else pattern.sub(new, line) for line in lines[begin:end]]
    return [*lines[:begin], *changed, *lines[end:]]


def change_line(lines, number, line):
    return [*lines[:number], line, *lines[number + 1:]]


def wrong_neighbors(lines):
    ranks = {rank for line in lines if (found := TRANSFER.search(line)) for rank in found.group(2, 3)}
    for number, line in enumerate(lines):
        found = TRANSFER.search(line)
        if not found:
            continue
        for other in itertools.permutations(sorted(ranks), 2):
            if other != found.group(2, 3):
                yield change_line(lines, number, re.sub(r"from \d+ to \d+", "from {} to {}".format(*other), line, count=1))


def wrong_microbatches(lines):
    for begin, end in get_functions(lines):
        sent, received, slices = (collections.defaultdict(list) for _ in range(3))
        for number in range(begin, end):
            line = lines[number]
            if found := TRANSFER.search(line):
                operand, source, target, _, before, after = found.groups()
                if "<0" in after:  # it is sent
                    for earlier in sent[source, target, before]:
                        yield change_line(lines, number, line.replace(f"tp.transfer {operand} ", f"tp.transfer {earlier} "))
                    sent[source, target, before].append(operand)
                else:
                    wait = next(each for each in range(number, end) if "tp.wait" in lines[each])
                    value = lines[wait].split(" = ")[0].strip()
                    for earlier in received[source, target, after]:
                        yield replace_uses(lines, wait + 1, end, value, earlier)
                    received[source, target, after].append(value)
            if found := re.search(r"nn\.slice (%arg\d+|%\w+) dim (\d+) start (\d+) step 1", line):
                slices[found[1], found[2]].append((number, found[3]))
        for places in slices.values():
            for (number, start), (_, other) in itertools.permutations(places, 2):
                if start != other:
                    yield change_line(lines, number, lines[number].replace(f"start {start} step", f"start {other} step"))


def missing_sums(lines):
    for begin, end in get_functions(lines):
        for number in range(begin, end):
            if found := re.match(r"\s*(%\w+) = nn\.add (%\w+), (%\w+) .*: \(tensor<(\S+)>, tensor<(\S+)>\)", lines[number]):
                result, *terms, left, right = found.groups()
                for term in terms if left == right else ():
                    yield replace_uses(lines, number + 1, end, result, term)


def main():
    ranks, options = sys.argv[1:]
    if is_refused(ranks, options):
        sys.exit(f"{ranks} is refused as it is")
    lines = pathlib.Path(ranks).read_text().splitlines()
    mutant = pathlib.Path(f"{ranks}.fault.mlir")
    failed = False
    for name, plant in (("neighbor", wrong_neighbors), ("microbatch", wrong_microbatches), ("sum", missing_sums)):
        count = 0
        for fault in plant(lines):
            count += 1
            mutant.write_text("\n".join(fault) + "\n")
            if fault == lines or not is_refused(mutant, options):
                failed = True
                [line] = [pair for pair in zip(lines, fault) if pair[0] != pair[1]][:1]
                print(f"not refused: {line[1].strip()} for {line[0].strip()}")
        print(f"{name}: {count} faults are refused" if not failed and count else f"{name}: FAIL")
    return failed


if __name__ == "__main__":
    sys.exit(main())
