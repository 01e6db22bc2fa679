"""Writes weights and an input of two_layers.mlir."""

import numpy as np
from safetensors.numpy import save_file

rng = np.random.default_rng(0)
shapes = {f"layers.{i}.{name}.weight": shape for i in range(2) for name, shape in (("up", (16, 4)), ("down", (4, 16)))}
shapes["head.weight"] = (6, 4)
save_file({name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}, "w.safetensors")
np.save("x.npy", rng.standard_normal((8, 4)).astype(np.float32))
