"""Saves scripted models that take long, or much memory, to run: NAME.pt.

usage: endless.py
"""

import torch

# Sizes are computed from the input's, or torch.jit.script would run what is constant.


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


class Repeated(torch.nn.Module):
    def forward(self, x):
        return x * len([0] * (2000000000 * x.size(0)))


class Padded(torch.nn.Module):
    def forward(self, x):
        return x * len("a".ljust(2000000000 * x.size(0)))


class Joined(torch.nn.Module):
    def forward(self, x):
        count = 50000 * x.size(0)
        return x * len("a".ljust(count).join(["b"] * count))


class Replaced(torch.nn.Module):
    def forward(self, x):
        count = 50000 * x.size(0)
        return x * len("a".ljust(count).replace(" ", "b".ljust(count)))


class Grown(torch.nn.Module):
    def forward(self, x):
        sizes = [1]
        for _ in range(60):
            sizes += sizes
        return x * len(sizes)


class Extended(torch.nn.Module):
    def forward(self, x):
        sizes = [1]
        for _ in range(60):
            sizes.extend(sizes)
        return x * len(sizes)


class Multiplied(torch.nn.Module):
    def forward(self, x):
        sizes = [1]
        sizes *= 2000000000 * x.size(0)
        return x * len(sizes)


class Appended(torch.nn.Module):
    """Many steps, and few elements."""

    def forward(self, x):
        rows = [0]
        for i in range(20000):
            rows.append(i)
        return x * len(rows)


for model in (Doubled, DoubledText, Nested, Repeated, Padded, Joined, Replaced, Grown, Extended, Multiplied, Appended):
    torch.jit.script(model()).save(f"{model.__name__}.pt")
