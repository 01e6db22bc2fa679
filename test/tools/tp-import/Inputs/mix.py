"""A module that uses its arguments in another order than it takes them."""

from torch import nn


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, scale: float, y, unused, z):
        return self.proj(z) - y.tanh() + x * scale
