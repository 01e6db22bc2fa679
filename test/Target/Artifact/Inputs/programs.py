"""make: writes the weights of programs.mlir, an input, and what NumPy computes.
check: compares every rank's blocks, and the bytes that it received."""

import json
import sys

import numpy as np
from safetensors.numpy import save_file


def make():
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape).astype(np.float32)
               for name, shape in {"net1.weight": (4, 3), "net2.weight": (5, 4)}.items()}
    save_file(weights, "w.safetensors")
    x = rng.standard_normal((8, 3)).astype(np.float32)
    np.save("x.npy", x)
    np.save("y.npy", np.maximum(x @ weights["net1.weight"].T, 0) @ weights["net2.weight"].T)


def check():
    y = np.load("y.npy")
    for rank in range(3):
        expected = {"y": y[:, 2 * rank:2 * rank + 2], "gathered": y, "rows": y[3 * rank:3 * rank + 3],
                    "offset": np.array([3 * rank])}
        for name, block in expected.items():
            found = np.load(f"blocks/{name}.{rank}.npy")
            assert found.shape == block.shape, (name, rank, found.shape)
            np.testing.assert_allclose(found, block, rtol=1e-5, atol=1e-6)
    # By hand, in elements: reduce_scatter, all_gather, all_reduce in chunks of 14, 14
    # and 12, exchange and all_to_all without what stays.
    expected = [[32, 24, 28 + 26, 9, 10], [32, 24, 28 + 26, 9, 10], [16, 32, 24 + 28, 8, 6]]
    with open("run.json") as file:
        run = json.load(file)
    found = [[count["bytes"] // 4 for count in rank["collectives"]] for rank in run["ranks"]]
    assert found == expected, found


{"make": make, "check": check}[sys.argv[1]]()
