"""Checks that a per-rank program is proven by rules alone, and that it isn't with any one place of it changed.

  mutants.py RANKS OPTIONS PATTERN REPLACEMENT [PATTERN REPLACEMENT]...

OPTIONS are those of tp-verify-spmd. Each place that matches a regular expression PATTERN is changed on its own. Prints how
many changes aren't proven; exit code 1 when one is, or when a pattern matches nothing.
"""

import pathlib
import re
import subprocess
import sys


def is_proven(path, options):
    done = subprocess.run(["tp-opt", path, f"--tp-verify-spmd={options} max-operations=0", "-o", "/dev/null"],
                          capture_output=True, text=True)
    if done.returncode and "not proven" not in done.stderr:
        sys.exit(f"{path}: {done.stderr}")
    return done.returncode == 0


def main():
    ranks, options, *edits = sys.argv[1:]
    if not is_proven(ranks, options):
        sys.exit(f"{ranks} isn't proven")
    text = pathlib.Path(ranks).read_text()
    mutant = pathlib.Path(f"{ranks}.mutant.mlir")
    count, failed = 0, False
    for pattern, replacement in zip(edits[::2], edits[1::2]):
        places = list(re.finditer(pattern, text))
        failed |= not places
        if not places:
            print(f"nothing matches '{pattern}'")
        for place in places:
            count += 1
            changed = text[: place.start()] + place.expand(replacement) + text[place.end():]
            mutant.write_text(changed)
            if changed == text or is_proven(mutant, options):
                failed = True
                line = text.count("\n", 0, place.start()) + 1
                print(f"proven with '{replacement}' for '{place.group()}' in line {line}")
    print(f"{count} mutants aren't proven" if not failed else "FAIL")
    return failed


if __name__ == "__main__":
    sys.exit(main())
