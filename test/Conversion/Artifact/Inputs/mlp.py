"""Writes the MLP's weights, an input, and what NumPy computes."""

import json
import struct

import numpy as np

rng = np.random.default_rng(0)
shapes = {"net1.weight": (16, 4), "net1.bias": (16,), "net2.weight": (3, 16), "net2.bias": (3,)}
weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
header, data = {}, b""
for name, value in weights.items():
    header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [len(data), len(data) + value.nbytes]}
    data += value.tobytes()
text = json.dumps(header).encode()
with open("w.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)

x = rng.standard_normal((8, 4)).astype(np.float32)
hidden = np.maximum(x @ weights["net1.weight"].T + weights["net1.bias"], 0)
np.save("x.npy", x)
np.save("y.npy", hidden @ weights["net2.weight"].T + weights["net2.bias"])
