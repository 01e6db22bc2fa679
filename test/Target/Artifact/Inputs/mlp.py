"""Writes the MLP's weights, an input, and what NumPy computes."""

import numpy as np
from safetensors.numpy import save_file

rng = np.random.default_rng(0)
shapes = {"net1.weight": (16, 4), "net1.bias": (16,), "net2.weight": (3, 16), "net2.bias": (3,)}
weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
save_file(weights, "w.safetensors")

x = rng.standard_normal((8, 4)).astype(np.float32)
hidden = np.maximum(x @ weights["net1.weight"].T + weights["net1.bias"], 0)
np.save("x.npy", x)
np.save("y.npy", hidden @ weights["net2.weight"].T + weights["net2.bias"])
