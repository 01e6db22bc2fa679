"""Writes the weight and the input of gemm-choice.mlir, and their product."""

import numpy as np
from safetensors.numpy import save_file

rng = np.random.default_rng(0)
x = rng.standard_normal((128, 96)).astype(np.float32)
w = rng.standard_normal((160, 96)).astype(np.float32)
save_file({"w": w}, "w.safetensors")
np.save("x.npy", x)
np.save("y.npy", x @ w.T)
