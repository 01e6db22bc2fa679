"""Saves scripted models that take long, or much memory, to run: NAME.pt.

usage: endless.py
"""

import torch


class Doubled(torch.nn.Module):
    def forward(self, x):
        sizes = [1]
        for _ in range(60):
            sizes = sizes + sizes
        return x * len(sizes)


class DoubledText(torch.nn.Module):
    def forward(self, x):
        text = "a"
        for _ in range(60):
            text = text + text
        return x * len(text)


class Nested(torch.nn.Module):
    def forward(self, x):
        count = 0
        for _ in range(9999):
            for _ in range(9999):
                count += 1
        return x * count


for model in (Doubled, DoubledText, Nested):
    torch.jit.script(model()).save(f"{model.__name__}.pt")
