#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run what pages of the documentation show: commands, files, C and C++.

Each page runs in an empty folder of its own. The info string of a fence says what its block is:

    ```console              lines after '$ ' are commands, and must print what follows them
    ```sh                   commands that must succeed; the page doesn't show what they print
    ```LANGUAGE file=NAME   a file, which later commands of the page find
    ```LANGUAGE from=PATH   an excerpt of a file of the repository
    ```c, ```cpp            code that must compile
    ``` … skip="REASON"     commands or code that can't run here, and why

In printed text and in excerpts, '…' stands for any text, and on a line of its own for any lines.
Two kinds of comments aren't visible to readers:

    <!-- run                commands, like sh
    <!-- wrap               code around the next C or C++ block, which replaces the line SNIPPET

Commands find the repository in $TP and the build tree in $TP_BUILD. A command may fail if what the
page shows of it has the word 'error'.
"""

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# References that have only IR and declarations, both from sources.
REFERENCES = {"Interfaces.md", "NN.md", "TP.md", "TPRT.md"}
BLOCK = re.compile(r"^```(?P<info>\S.*)\n(?P<text>(?:.*\n)*?)^```$|^<!-- (?P<kind>run|wrap)\n(?P<hidden>(?:.*\n)*?)-->$", re.M)
FENCE = re.compile(r"^```.*?^```$|^<!--.*?-->$", re.M | re.S)
COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n?", re.M)
TOOLS = r"(?:tp-\w+|cmake|mlir-opt\S*|python3?|scripts/\S+|\.venv/\S+)"


def find_pages():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples/README.md"]
    return [page for page in pages if page.name not in REFERENCES]


def matches(shown, printed):
    """Whether `printed` is what is shown, with '…' for any text."""
    pattern = "".join(r"(?:.*\n)*" if line.strip() == "…" else
                      ".*".join(map(re.escape, line.split("…"))) + "\n" for line in shown.splitlines())
    return re.fullmatch(pattern, printed if printed.endswith("\n") or not printed else printed + "\n") is not None


class Page:
    """A page's blocks, run in order in `folder`."""

    def __init__(self, path, folder, arguments):
        self.name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
        self.text = path.read_text()
        self.folder = folder
        self.arguments = arguments
        path = [arguments.build / "bin", Path(sys.executable).parent, os.environ["PATH"]]
        self.environment = os.environ | {
            "PATH": os.pathsep.join(map(str, path)), "TP": str(ROOT), "TP_BUILD": str(arguments.build),
            "PYTHONPATH": str(arguments.build / "python"),
            "CXX": arguments.cxx, "CC": arguments.cc, "LDFLAGS": "-fuse-ld=lld"}
        self.wrapper = None
        self.problems = []
        self.skipped = 0
        self.ran = 0

    def report(self, block, message):
        line = self.text.count("\n", 0, block.start()) + 1
        self.problems.append(f"{self.name}:{line}: {message}")

    def run(self):
        """The page's text with what its commands print now."""
        for indented in re.finditer(rf"^ {{4}}{TOOLS} ", FENCE.sub(lambda b: "\n" * b[0].count("\n"), self.text), re.M):
            self.problems.append(f"{self.name}: the command '{indented[0].strip()} …' must be in a fence")
        now = BLOCK.sub(self.run_block, self.text)
        if self.wrapper:
            self.problems.append(f"{self.name}: no code follows the last 'wrap'")
        return now

    def run_block(self, block):
        if block["kind"] == "wrap":
            self.wrapper = block["hidden"]
            return block[0]
        language, *options = shlex.split(block["info"] or "sh")
        options = dict(option.split("=", 1) for option in options)
        text = block["hidden"] or block["text"]
        if unknown := options.keys() - {"file", "from", "skip"}:
            self.report(block, f"unknown option {', '.join(sorted(unknown))}")
        if "skip" in options:
            self.skipped += 1
            return block[0]
        if "from" in options:
            self.check_excerpt(block, text, ROOT / options["from"])
        if "file" in options:
            (self.folder / options["file"]).write_text(self.wrap(text))
        elif "from" in options:
            pass
        elif language in ("c", "cpp", "c++"):
            self.compile(block, language, self.wrap(text))
        elif language == "console":
            return block[0].replace(text, self.run_console(block, text))
        elif language in ("sh", "bash"):
            self.run_script(block, text)
        else:
            return block[0]
        self.ran += 1
        return block[0]

    def shell(self, script):
        with tempfile.TemporaryFile("w+", errors="replace") as hidden:
            script = script.replace("2>/dev/null", f"2>&{hidden.fileno()}")
            done = subprocess.run(["bash", "-o", "pipefail", "-c", script], cwd=self.folder, env=self.environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  pass_fds=[hidden.fileno()])
            hidden.seek(0)
            done.stderr = hidden.read()  # what the page sends to /dev/null
            return done

    def run_script(self, block, script):
        done = self.shell("set -e\n" + script)
        if done.returncode:
            self.report(block, f"exit code {done.returncode}:\n{script}{done.stdout}{done.stderr}")

    def run_console(self, block, text):
        lines = ""
        commands = list(COMMAND.finditer(text))
        for command, following in zip(commands, [*commands[1:], None]):
            shown = text[command.end():following.start() if following else len(text)]
            done = self.shell(command[1])
            if done.returncode and "error" not in shown:
                self.report(block, f"exit code {done.returncode}: {command[1]}\n{done.stdout}{done.stderr}")
            printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip("\n").splitlines())
            lines += f"$ {command[1]}\n" + (shown if matches(shown, printed) else printed)
        self.ran += 1
        return lines

    def check_excerpt(self, block, text, path):
        strip = lambda code: "".join(f"{line.strip()}\n" for line in code.splitlines())
        if not matches("…\n" + strip(text) + "…\n", strip(path.read_text())):
            self.report(block, f"{path.relative_to(ROOT)} doesn't contain this:\n{text}")

    def wrap(self, text):
        """The text in the code of the 'wrap' before it, if there is one; includes go first."""
        if not self.wrapper:
            return text
        include = re.compile(r"^#include .*\n", re.M)
        code, self.wrapper = self.wrapper, None
        return "".join(include.findall(text)) + code.replace("SNIPPET\n", include.sub("", text))

    def compile(self, block, language, code):
        source = self.folder / ("snippet.c" if language == "c" else "snippet.cpp")
        source.write_text(code)
        command = [self.arguments.cc, "-std=c99"] if language == "c" else [self.arguments.cxx, "-std=c++20"]
        folders = [ROOT / "include", self.arguments.build / "include", ROOT / "runtime/include"]
        command += [f"-I{folder}" for folder in folders] + [f"-isystem{self.arguments.mlir}", "-fsyntax-only", source]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            self.report(block, f"doesn't compile:\n{done.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="*", help="pages to run (default: all)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build tree (default: %(default)s)")
    parser.add_argument("--cxx", default="clang++-22", help="C++ compiler (default: %(default)s)")
    parser.add_argument("--cc", default="clang-22", help="C compiler (default: %(default)s)")
    parser.add_argument("--mlir", type=Path, default=Path("/usr/lib/llvm-22/include"), help="headers of LLVM and MLIR (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="only print the names of all pages")
    parser.add_argument("--update", action="store_true", help="write what is printed into the pages")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    if arguments.list:
        print("\n".join(str(page.relative_to(ROOT)) for page in find_pages()))
        return

    failed = False
    for path in [page.resolve() for page in arguments.pages] or find_pages():
        with tempfile.TemporaryDirectory() as folder:
            page = Page(path, Path(folder), arguments)
            now = page.run()
        if now != page.text and arguments.update and not page.problems:
            path.write_text(now)
        elif now != page.text:
            sys.stdout.writelines(difflib.unified_diff(page.text.splitlines(True), now.splitlines(True),
                                                       str(page.name), "printed now"))
            page.problems.append(f"{page.name} shows something else than the tools print; read the difference,"
                                 f" and update the page with 'docs/examples.py --update {page.name}'")
        print(f"{page.name}: {page.ran} blocks, {page.skipped} skipped", *page.problems, sep="\n")
        failed |= bool(page.problems)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
