"""Programs with torch.vmap, exported with strict=True, against PyTorch: types are promoted as without mapped dimensions."""

import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch

from functions import run


class Mapped(torch.nn.Module):
    """A number of each call meets tensors. For two operands it is weaker than a tensor; for more, PyTorch takes it for one."""

    def forward(self, x, a, h, i, d):
        return {
            "sum": torch.vmap(lambda number: x + number)(d),
            "half": torch.vmap(lambda number: h * number)(a),
            "chosen": torch.vmap(lambda number: torch.where(number > 0, x, number))(d),
            "compared": torch.vmap(lambda number: h > number)(a),
            "integers": torch.vmap(lambda number: i + number)(a),
            "numbers": torch.vmap(lambda number: number * d[0])(h),
            "rows": torch.vmap(lambda row: row * d[0])(torch.stack([x, x])),
            "nested": torch.vmap(lambda first: torch.vmap(lambda second: first * second + h)(d))(a),
        }


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    inputs = {
        "x": torch.randn(3), "a": torch.randn(4), "h": torch.randn(3).half(), "i": torch.arange(3),
        "d": torch.randn(4, dtype=torch.float64),
    }
    module = Mapped()
    expected = module(*inputs.values())
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        torch.export.save(torch.export.export(module, tuple(inputs.values()), strict=True), folder / "model.pt2")
        run("tp-import", folder / "model.pt2", "-o", folder / "model.mlir", "--weights", folder / "model.safetensors")
        run("tp-compile", folder / "model.mlir", "-o", folder / "model.tpx")
        for name, value in inputs.items():
            np.save(folder / f"{name}.npy", value.numpy())
        flags = [flag for name in inputs for flag in ("--input", f"{name}={folder / name}.npy")]
        flags += [flag for name in expected for flag in ("--output", f"{name}={folder / name}.out.npy")]
        run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors", *flags)
        wrong = 0
        for name, value in expected.items():
            try:
                torch.testing.assert_close(torch.from_numpy(np.load(folder / f"{name}.out.npy")), value)
            except AssertionError as error:
                wrong += 1
                print(f"FAIL {name}: {error}")
    print(f"{len(expected) - wrong} of {len(expected)} results equal PyTorch")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
