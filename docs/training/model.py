# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small classifier in training mode: writes model.pt, x.npy and y.npy."""

import numpy as np
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.w1 = nn.Linear(64, 128)
        self.w2 = nn.Linear(128, 64)

    def forward(self, x):
        return x + self.w2(torch.relu(self.w1(self.norm(x))))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.output = nn.Linear(64, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.output(x)


torch.manual_seed(0)
x = torch.randn(256, 64)
np.save("x.npy", x.numpy())
np.save("y.npy", torch.randint(0, 10, (256,)).numpy())
torch.jit.script(Classifier()).save("model.pt")
