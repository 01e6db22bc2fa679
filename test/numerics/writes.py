"""Models that write slices and views from end to end: exported, imported, compiled and run on 1 and 2 ranks, as PyTorch.

  writes.py

Exit code 1 when anything differs.
"""

import copy
import pathlib
import sys
import tempfile
import types
import warnings

import numpy as np
import safetensors.torch
import torch
from torch import nn

from exported import Case, run, train_compiled, train_with_torch


class Slices(nn.Module):
    """A plan splits the rows of what is written, and what is written elsewhere whole."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        y = self.up(x)
        y[:, ::2] *= 2
        y[0] = y[1].clone()
        heads = y.view(-1, 4, 4)
        heads[:, :, 1].add_(heads[:, :, 0])
        y[y > 0.5] = 0.25
        y.view(-1)[3:20:5].neg_()
        z = self.down(y)
        z.diagonal().zero_()
        z.narrow(1, 1, 4).mul_(3)
        return z


class Cache(nn.Module):
    """Keys at a position of a cache that no checkpoint has; a mask that is only written; two buffers that swap their values."""

    def __init__(self):
        super().__init__()
        self.key = nn.Linear(8, 8)
        self.register_buffer("cache", torch.zeros(2, 4, 8), persistent=False)
        self.register_buffer("last", torch.zeros(2, 8))
        self.register_buffer("first", torch.arange(4.0))
        self.register_buffer("second", -torch.arange(4.0))

    def forward(self, x):
        self.cache[:, 1:] = self.cache[:, :-1].clone()
        self.cache[:, 0] = self.key(x)
        self.last.copy_(x)
        first = self.first.clone()
        self.first.copy_(self.second)
        self.second.copy_(first)
        return self.cache.sum(1) + self.first.sum(), first


class Held(nn.Module):
    """State of an object that isn't a module, as transformers' StaticCache: two of its tensors are buffers as well, one is nothing else."""

    def __init__(self):
        super().__init__()
        self.key = nn.Linear(8, 8)
        self.cache = types.SimpleNamespace(keys=torch.zeros(2, 4, 8), length=torch.tensor(0), seen=torch.zeros(2, 8))
        self.register_buffer("keys", self.cache.keys, persistent=False)
        self.register_buffer("length", self.cache.length, persistent=False)

    def forward(self, x):
        self.cache.seen[:, ::2].add_(x[:, ::2])
        self.cache.keys.index_copy_(1, self.cache.length % 4 + torch.arange(1), self.key(x)[:, None])
        # PyTorch executes what doesn't depend on inputs during the export, writes too.
        self.cache.length.add_((x[0, 0] < 100).long())
        return self.cache.keys.sum(1) + self.cache.seen, self.keys.clone(), self.cache.length.clone()


def compare(folder, name, model, x, plan, forms=("exported", "core")):
    """The results and the buffers of three calls."""
    exported = torch.export.export(copy.deepcopy(model), (x.clone(),))
    for form in forms:
        case = Case(folder / f"{name}-{form}", exported if form == "exported" else exported.run_decompositions())
        weights = case.folder / "model.safetensors"
        assert "cache" not in safetensors.torch.load_file(weights)
        for ranks in 1, 2:
            after = copy.deepcopy(model)
            with torch.no_grad():
                for _ in range(3):
                    results = after(x.clone())
            results = results if isinstance(results, tuple) else (results,)
            case.compile(ranks, plan)
            np.save(case.folder / "x.npy", x.numpy())
            names = ["output"] if len(results) == 1 else [f"output{i}" for i in range(len(results))]
            flags = []
            for output, result in zip(names, results):
                np.save(case.folder / f"{output}.npy", result.numpy())
                flags += ["--expect", f"{output}={case.folder / output}.npy"]
            run("tp-run", case.folder / "model.tpx", "--weights", weights, "--input", f"x={case.folder / 'x'}.npy", *flags,
                "--rtol", "1e-5", "--atol", "1e-5", "--repeat", 3, "--output-weights", case.folder / "last.safetensors")
            stored = safetensors.torch.load_file(case.folder / "last.safetensors")
            for key, buffer in after.named_buffers():
                torch.testing.assert_close(stored[key], buffer)
    print(f"{name}: {' and '.join(forms)} agree on 1 and 2 ranks")


def check_training(folder):
    """The gradients of writes, in the losses of three steps."""
    model, x, target = Slices(), torch.randn(6, 8), torch.randn(6, 8)
    trained = copy.deepcopy(model)
    losses = train_with_torch(trained, (x,), target, torch.optim.SGD(trained.parameters(), lr=0.1), steps=3)
    case = Case(folder / "training", torch.export.export(model, (x,)))
    (case.folder / "train.yaml").write_text("loss: mse\noptimizer: {name: SGD, lr: 0.1}\n")
    for ranks in 1, 2:
        case.compile(ranks, {"up": "ColwiseParallel", "down": "RowwiseParallel"}, f"train={case.folder / 'train.yaml'}")
        np.testing.assert_allclose(train_compiled(case.folder, {"x": x}, target, 3), losses, rtol=1e-4)
    print("training: 3 losses agree")


def main():
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compare(folder, "slices", Slices().eval(), torch.randn(6, 8), {"up": "ColwiseParallel", "down": "RowwiseParallel"})
        compare(folder, "cache", Cache().eval(), torch.randn(2, 8), {"key": "ColwiseParallel"})
        compare(folder, "held", Held().eval(), torch.randn(2, 8), {"key": "ColwiseParallel"}, ["exported"])
        check_training(folder)


if __name__ == "__main__":
    sys.exit(main())
