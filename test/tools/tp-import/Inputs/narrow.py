"""A model whose inputs, buffers, parameters and outputs are bytes and short integers: narrow.py <dir>"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

directory = Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)


class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randint(0, 256, (6, 4), dtype=torch.uint8))
        self.quantized = nn.Parameter(torch.randint(-128, 128, (4, 3), dtype=torch.int8), requires_grad=False)
        self.scale = nn.Parameter(torch.rand(3))

    def forward(self, pixels, ids, short):
        pixels = torch.cat([pixels, self.table[ids]], 0)
        product = (pixels.float() / 255) @ self.quantized.float() * self.scale
        # Sums of int8 wrap around.
        return product, pixels.t().contiguous(), short * 3 - 7, self.quantized + self.quantized


model = Narrow().eval()
inputs = {
    "pixels": torch.randint(0, 256, (4, 4), dtype=torch.uint8),
    "ids": torch.randint(0, 6, (4,)),
    "short": torch.randint(-30000, 30000, (2, 4), dtype=torch.int16),
}
torch.jit.script(model).save(str(directory / "model.pt"))
for name, value in inputs.items():
    np.save(directory / f"{name}.npy", value.numpy())
for i, value in enumerate(model(*inputs.values())):
    np.save(directory / f"output{i}.npy", value.detach().numpy())
