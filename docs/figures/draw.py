#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the figures of the documentation: levels.svg, pair.svg and redistribution.svg, in this folder.

usage: draw.py [--check]    --check: only compare with the files
"""

import argparse
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLORS = ["#cfe3f7", "#fbe0c3", "#d5ecd0", "#f6d1d5", "#e3d7f1", "#fdf3bf", "#cdecea", "#e4e4e4"]
RANK_0, RANK_1, WHOLE = COLORS[0], COLORS[1], "#f4f4f4"


class Figure:
    def __init__(self, width, height, title):
        self.size = width, height
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="Helvetica, Arial, sans-serif" font-size="13" text-anchor="middle">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#333"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="white"/>']

    def text(self, x, y, text, size=13, anchor="middle", weight="normal", mono=False):
        family = ' font-family="Menlo, Consolas, monospace"' if mono else ""
        self.lines.append(f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}"{family}'
                          f' fill="#222">{escape(text)}</text>')

    def box(self, x, y, width, height, fill=WHOLE, text="", note="", stroke="#555", weight="bold"):
        self.lines.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="{stroke}"/>')
        middle = y + height / 2 + 4.5
        if text:
            self.text(x + width / 2, middle - (8 if note else 0), text, weight=weight)
        if note:
            self.text(x + width / 2, middle + 9, note, 11)

    def arrow(self, *points):
        path = " L".join(f"{x} {y}" for x, y in points)
        self.lines.append(f'<path d="M{path}" fill="none" stroke="#333" stroke-width="1.3" marker-end="url(#head)"/>')

    def finish(self):
        return "\n".join([*self.lines, "</svg>", ""])


def draw_levels():
    figure = Figure(700, 560, "The levels of IR and the passes between them")
    figure.box(20, 70, 660, 280, "#f3f8fd", stroke="none")
    figure.box(20, 400, 660, 150, "#fdf5ea", stroke="none")
    figure.text(664, 90, "global shapes", 12, "end")
    figure.text(664, 420, "local shapes", 12, "end")
    levels = [
        ("model.pt2", "torch.export", 10, None),
        ("Model IR", "nn ops, modules with FQNs", 100, ["tp-import"]),
        ("Annotated IR", "+ mesh, placements of parameters and boundaries", 200, ["tp-apply-plan"]),
        ("Sharded IR", "every value placed, every change a tp.redistribute", 300, ["tp-propagate"]),
        ("Per-rank IR", "ops on local blocks, collectives", 410, ["tp-partition", "tp-optimize-collectives"]),
        ("Artifact", "one shared object and its manifest", 500, ["tp-compile"])]
    for index, (name, note, y, passes) in enumerate(levels):
        figure.box(210, y, 310, 40, "white", name, note)
        if passes:
            above = levels[index - 1][2] + 40
            figure.arrow((365, above), (365, y))
            for line, pass_name in enumerate(passes):
                figure.text(375, (above + y) / 2 + 5 + 16 * line - 8 * (len(passes) - 1), pass_name, 12, "start", mono=True)
    figure.text(105, 175, "plan.yaml", weight="bold")
    figure.arrow((145, 171), (360, 171))
    # A training file is read twice: before the plan, and after it.
    figure.text(105, 120, "train.yaml", weight="bold")
    figure.arrow((145, 116), (210, 116))
    figure.text(122, 138, "tp-add-loss", 11, mono=True)
    figure.arrow((67, 116), (45, 116), (45, 216), (210, 216))
    figure.text(122, 210, "tp-grad", 11, mono=True)
    figure.text(105, 484, "tp-verify-spmd", 12, mono=True)
    figure.arrow((105, 468), (105, 430), (210, 430))
    figure.text(105, 500, "proves it against the model", 11)
    return figure.finish()


def draw_pair():
    figure = Figure(760, 330, "A column-parallel and a row-parallel product on two ranks, with one all-reduce")
    columns = [("x", "Replicate", 90), ("up.weight", "Shard(0)", 210), ("relu", "Shard(1)", 340), ("down.weight", "Shard(1)", 470),
               ("partial sums", "Partial(sum)", 590), ("y", "Replicate", 710)]
    for name, placement, x in columns:
        figure.text(x, 28, name, weight="bold")
        figure.text(x, 46, placement, 11)
    for rank, color in enumerate([RANK_0, RANK_1]):
        y = 70 + 125 * rank
        figure.text(30, y + 50, f"rank {rank}", 12)
        figure.box(65, y, 50, 90, WHOLE)
        # The whole weight is outlined; the rank's half is filled.
        figure.box(170, y, 80, 90, "white")
        figure.box(170 + 40 * rank, y, 40, 90, color)
        figure.box(300, y, 80, 90, "white")
        figure.box(300 + 40 * rank, y, 40, 90, color)
        figure.box(430, y, 80, 90, "white")
        figure.box(430, y + 45 * rank, 80, 45, color)
        figure.box(565, y, 50, 90, color, "Σ")
        figure.box(685, y, 50, 90, WHOLE)
        for start, end in [(115, 170), (250, 300), (380, 430), (510, 565), (615, 685)]:
            figure.arrow((start, y + 45), (end, y + 45))
    figure.box(643, 60, 14, 235, "#d9534f", stroke="none")
    figure.text(650, 315, "all-reduce", weight="bold")
    figure.text(340, 315, "no communication: each rank keeps its half of the features", 12)
    return figure.finish()


def draw_redistribution():
    """A 16×8 tensor over a mesh (x = 4, y = 2): who holds each 4×2 block."""
    figure = Figure(760, 350, "A redistribution in two steps, or in one exchange")
    # The rank, x · 2 + y, that holds the block of rows 4q … 4q + 3 and columns 2c, 2c + 1.
    states = [("[{x}, {y}]", "4×4 per rank", lambda q, c: 2 * q + c // 2),
              ("[{y, x:(2)2}, {x:(1)2}]", "4×4 per rank", lambda q, c: 2 * (2 * (c // 2) + q % 2) + q // 2),
              ("[{y}, {x}]", "8×2 per rank", lambda q, c: 2 * c + q // 2)]
    for index, (placement, note, owner) in enumerate(states):
        left = 30 + 270 * index
        figure.text(left + 80, 26, placement, 12, weight="bold", mono=True)
        figure.text(left + 80, 44, note, 11)
        for q in range(4):
            for c in range(4):
                rank = owner(q, c)
                figure.box(left + 40 * c, 56 + 52 * q, 40, 52, COLORS[rank], str(rank), stroke="#999", weight="normal")
    for x, name, over in [(195, "permute", "{x, y}"), (465, "all_to_all", "{x:(2)2}")]:
        figure.arrow((x, 160), (x + 100, 160))
        figure.text(x + 50, 150, name, 12, mono=True)
        figure.text(x + 50, 178, f"over {over}", 11)
    figure.arrow((110, 272), (110, 315), (650, 315), (650, 272))
    figure.text(380, 308, "exchange", 12, mono=True)
    figure.text(380, 335, "one step, only the 96 elements that ranks lack: 384 bytes, the lower bound", 12)
    return figure.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare with the files")
    arguments = parser.parse_args()
    figures = {"levels.svg": draw_levels(), "pair.svg": draw_pair(), "redistribution.svg": draw_redistribution()}
    for name, text in figures.items():
        if not arguments.check:
            (HERE / name).write_text(text)
        elif (HERE / name).read_text() != text:
            sys.exit(f"docs/figures/{name} is stale; draw it again with 'docs/figures/draw.py'")


if __name__ == "__main__":
    main()
