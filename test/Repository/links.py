# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the links between the repository's documents: that each leads to a file, and to a heading of it.

usage: links.py
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "examples", "benchmarks", "test")


def find_anchors(text):
    """The anchors of headings, as GitHub makes them."""
    anchors = set()
    for heading in re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        anchors.add(anchor)
    return anchors


def main():
    pages = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
    problems, count = [], 0
    for page in pages:
        text = page.read_text()
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`]*`", lambda m: "`x`", text, flags=re.S)):
            if link.startswith(("http:", "https:", "mailto:")):
                continue
            count += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                problems.append(f"{page.relative_to(ROOT)}: '{link}' leads to no file")
            elif anchor and anchor not in find_anchors(target.read_text()):
                problems.append(f"{page.relative_to(ROOT)}: '{link}' leads to no heading")
    if count < 100:
        problems.append(f"only {count} links were found")
    print("\n".join(problems))
    print(f"{count} links, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
