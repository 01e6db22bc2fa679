# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that arrows run one way: that a folder includes, and links, only what the tables of docs/Architecture.md allow.

A row of a table is a folder, what it holds, and the folders that it uses, which are in rows above; one that is named
allows those in it. A folder uses itself and what is in it.

usage: layers.py
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = (".h", ".cpp", ".td", ".cu", ".cuh")


def read_table(heading):
    """The table below a heading of docs/Architecture.md: what each folder holds and uses, as far as that is in backticks."""
    text = (ROOT / "docs/Architecture.md").read_text()
    section = text.split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]
    rows = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and "`" in cells[0]:
            for folder in re.findall(r"`([^`]+)`", cells[0]):
                rows[folder] = [re.findall(r"`([^`]+)`", cell) for cell in cells[1:]]
    return rows


def is_in(folder, other):
    return folder == other or folder.startswith(other + "/")


def find_row(rows, folder):
    """The row that a folder belongs to: the longest name."""
    return max((row for row in rows if is_in(folder, row)), key=len, default=None)


class Project:
    """`roots` are folders of sources, relative to the repository's root; `prefixes` says how an include names one."""

    def __init__(self, heading, roots, prefixes, libraries):
        self.heading, self.roots, self.prefixes = heading, roots, prefixes
        self.rows = read_table(heading)
        self.libraries = libraries
        self.problems = []

    def check_use(self, place, folder, other):
        row, target = find_row(self.rows, folder), find_row(self.rows, other)
        for each, name in ((row, folder), (target, other)):
            if each is None:
                self.problems.append(f"{place}: '{name}' has no row under '{self.heading}' of docs/Architecture.md")
        if row is None or target is None or row == target:
            return
        if is_in(target, row) or any(is_in(target, allowed) for allowed in self.rows[row][1]):
            return
        self.problems.append(f"{place}: '{row}' may not use '{target}'")

    def check_order(self):
        above = []
        for row, (_, uses) in self.rows.items():
            self.problems += [f"docs/Architecture.md: '{row}' uses '{other}', which is no row above it" for other in uses
                              if not any(is_in(each, other) for each in above)]
            above.append(row)

    def locate(self, file, include):
        """The folder of an included file, or nothing where it isn't this project's."""
        for prefix, root in self.prefixes:
            if include.startswith(prefix) and (root / include).is_file():
                return self.get_folder(root / include)
        beside = file.parent / include
        return self.get_folder(beside.resolve()) if beside.is_file() else None

    def get_folder(self, path):
        for root in self.roots:
            if (ROOT / root) in path.parents:
                return self.name_folder(path.relative_to(ROOT / root))
        return None

    def name_folder(self, path):
        return str(path.parent)

    def run(self):
        count = 0
        for root in self.roots:
            for file in sorted((ROOT / root).rglob("*")):
                if file.name == "CMakeLists.txt":
                    self.check_links(file)
                if file.suffix not in SOURCES:
                    continue
                count += 1
                folder = self.get_folder(file)
                if find_row(self.rows, folder) is None:
                    self.problems.append(f"{file.relative_to(ROOT)}: '{folder}' has no row under '{self.heading}'")
                    continue
                for number, line in enumerate(file.read_text().splitlines(), 1):
                    if match := re.match(r'#?\s*include "([^"]+)"', line):
                        other = self.locate(file, match[1])
                        if other is not None:
                            self.check_use(f"{file.relative_to(ROOT)}:{number}", folder, other)
        self.check_order()
        if count < 50:
            self.problems.append(f"only {count} files under {', '.join(self.roots)}")
        return self.problems

    def check_links(self, file):
        for name, body in re.findall(r"tp_add_library\((\w+)(.*?)\)", file.read_text(), re.S):
            for other in body.partition(" LINK ")[2].split():
                if other in self.libraries:
                    self.check_link(str(file.relative_to(ROOT)), self.libraries[name], self.libraries[other])

    def check_link(self, place, folder, other):
        """A library links what any of its folders uses."""
        rows = [row for row in self.rows if is_in(row, folder)]
        if not any(is_in(other, allowed) or is_in(allowed, other) for row in rows for allowed in self.rows[row][1]):
            self.problems.append(f"{place}: '{folder}' may not link '{other}'")


class Compiler(Project):
    """A file of the runtime is its own row, named as it is included, so that the compiler uses only those that have one."""

    def get_folder(self, path):
        if ROOT / "runtime" in path.parents:
            return os.path.relpath(path, ROOT / "runtime/include")
        return super().get_folder(path)


class Runtime(Project):
    """A public header belongs to the folder of the source file of its name, or to the row that says that it holds it."""

    def get_folder(self, path):
        if (ROOT / "runtime/include/tprt") == path.parent:
            for source in (ROOT / "runtime/lib").rglob(path.stem + ".cpp"):
                return str(source.parent.relative_to(ROOT / "runtime/lib"))
            return next((row for row, (holds, _) in self.rows.items() if path.name in holds), path.name)
        return super().get_folder(path)


def find_libraries():
    """The folder of each library."""
    return {name: str(file.parent.relative_to(ROOT / "lib"))
            for file in (ROOT / "lib").rglob("CMakeLists.txt")
            for name in re.findall(r"tp_add_library\((\w+)", file.read_text())}


def main():
    compiler = Compiler("### The compiler", ["lib", "include/tp"],
                        [("tp/", ROOT / "include"), ("tprt/", ROOT / "runtime/include"), ("", ROOT / "lib")], find_libraries())
    runtime = Runtime("### The runtime", ["runtime/lib", "runtime/include/tprt"],
                      [("tprt/", ROOT / "runtime/include"), ("", ROOT / "runtime/lib")], {})
    problems = compiler.run() + runtime.run()
    print("\n".join(problems))
    print(f"{len(compiler.rows) + len(runtime.rows)} folders, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
