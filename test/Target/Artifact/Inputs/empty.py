"""Writes the inputs of empty.mlir: 0, 1, 2, 3, 4, 0, … where there are elements."""

import numpy as np

SHAPES = {"x": (2, 3, 4), "e": (2, 0, 4), "w": (5, 4), "w0": (0, 4), "xk0": (3, 0), "wk0": (5, 0), "bias": (5,),
          "q": (2, 2, 3, 4), "q0": (2, 0, 3, 4), "kv0": (2, 2, 0, 4), "ids0": (2, 0), "h": (3, 0), "hw": (5, 0)}
TYPES = {"ids0": "i8", "h": "f2", "hw": "f2"}

for name, shape in SHAPES.items():
    np.save(name, (np.arange(np.prod(shape)) % 5).reshape(shape).astype(TYPES.get(name, "f4")))
