# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The MLP of docs/IRByExample.md: writes model.pt2, x.npy and y_ref.npy."""

import numpy as np
import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 64)
        self.down = nn.Linear(64, 16)

    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


torch.manual_seed(0)
model = MLP().eval()
x = torch.randn(8, 16)
torch.export.save(torch.export.export(model, (x,)), "model.pt2")
np.save("x.npy", x.numpy())
np.save("y_ref.npy", model(x).detach().numpy())
