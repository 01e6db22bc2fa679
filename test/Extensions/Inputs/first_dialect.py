"""Has a tool read modules that load each dialect first, and each two in both orders, in contexts of their own.
Some dialects refuse the attribute that does so; none may crash.

usage: first_dialect.py TOOL
"""

import re
import subprocess
import sys

tool = sys.argv[1]
listed = subprocess.run([tool, "--show-dialects"], capture_output=True, text=True, check=True).stdout
names = re.sub(r".*:", "", listed).replace(",", " ").split()
assert "affine" in names and "tp" in names, names
modules = [f"module attributes {{{a}.x}} {{}}" for a in names]
modules += [f"module attributes {{{a}.x, {b}.x}} {{}}" for a in names for b in names if a != b]
modules += ["module { scf.execute_region { scf.yield } }"]


def crashes(modules):
    text = "\n// -----\n".join(modules)
    run = subprocess.run([tool, "--split-input-file", "-o", "/dev/null"], input=text, capture_output=True, text=True)
    return run.returncode not in (0, 1) or "AddressSanitizer" in run.stderr


if crashes(modules):
    sys.exit("crashes:\n" + "\n".join(module for module in modules if crashes([module])))
