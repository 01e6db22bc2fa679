"""Saves programs of torch.export: exported.py <folder of tp_trace.py> <directory>"""

import io
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.export import Dim, export, save

import archive
from mix import Mix

sys.path.insert(0, sys.argv[1])
import tp_trace

directory = pathlib.Path(sys.argv[2])
directory.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")
torch.manual_seed(0)


class Dynamic(nn.Module):
    """Sizes are computed from the batch's, which is even."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, input, scale=2.0):
        half = x.shape[0] // 2
        y = self.proj(x).view(half, 2, 4) * half + input
        return y / (x.shape[0] + 1)


half = Dim("half", min=2, max=8)
save(export(Dynamic(), (torch.randn(6, 4), torch.randn(3, 2, 4)), dynamic_shapes=({0: 2 * half}, {0: half})),
     directory / "dynamic.pt2")


class Sizes(nn.Module):
    """Its outputs have sizes of all forms; one is a number that the program takes."""

    def forward(self, x, k):
        return {"more": torch.cat([x, x[:1]]), "fewer": x[3:], "pairs": x.reshape(-1, 2), "every": x[::2],
                "wide": x.unsqueeze(1).expand(-1, k, -1), "zeros": torch.zeros(3)}


save(export(Sizes(), (torch.randn(12, 4), 5), dynamic_shapes={"x": {0: Dim("n", min=8, max=64)}, "k": Dim.DYNAMIC}),
     directory / "sizes.pt2")


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(4))
        self.register_buffer("scale", torch.ones(4), persistent=False)
        self.inner = Inner()

    def forward(self, x):
        self.count += 1
        return self.inner(x * self.scale) + self.count


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(2, 4))

    def forward(self, x):
        y = x - self.last
        self.last.copy_(x)
        return y


stateful = export(Stateful(), (torch.randn(2, 4),))
save(stateful, directory / "stateful.pt2")
save(stateful.run_decompositions(), directory / "stateful-core.pt2")


class Overwritten(nn.Module):
    """Nothing reads the buffers, and both have one next value."""

    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.zeros(2, 4))
        self.register_buffer("second", torch.zeros(2, 4))

    def forward(self, x):
        y = x + 1
        self.first.copy_(y)
        self.second.copy_(y)
        return y


save(export(Overwritten(), (torch.randn(2, 4),)), directory / "overwritten.pt2")


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = Mix()

    def forward(self, a, b):
        return self.mix(a, 2.0, b, z=b + 1, unused=a) + self.mix(b, 2.0, a, z=a, unused=b)


example = torch.randn(2, 4), torch.randn(2, 4)
save(export(Mixed(), example), directory / "plain.pt2")
save(export(Mixed(), example, preserve_module_call_signature=("mix",)), directory / "preserved.pt2")
tp_trace.export(Mixed(), example, directory / "ordered.pt2")


class Nested(nn.Module):
    def forward(self, pair, *, table):
        with torch.no_grad():
            stopped = pair[0].sin()
        return {"sum": pair[0] + pair[1] + table["x"], "parts": (stopped, [pair[1].cos()]), "none": None}


save(export(Nested(), (example,), {"table": {"x": torch.randn(4)}}), directory / "nested.pt2")


class Tied(nn.Module):
    """A training graph: dropout, tied weights, a frozen bias, a constant."""

    def __init__(self):
        super().__init__()
        self.embed, self.drop, self.head = nn.Embedding(10, 4), nn.Dropout(0.25), nn.Linear(4, 10)
        self.head.weight = self.embed.weight
        self.head.bias.requires_grad_(False)

    def forward(self, ids):
        return self.head(self.drop(self.embed(ids)) * torch.tensor([1.0, -1.0, 3.0, 0.5]))


tied = export(Tied().train(), (torch.zeros(2, 5, dtype=torch.int64),))
save(tied, directory / "tied.pt2")
save(tied.run_decompositions(), directory / "tied-core.pt2")


def store_as_2_8(records):
    """PyTorch 2.8 stores the tensors as torch.save does."""
    for folder, tensors in (("weights", tied.state_dict), ("constants", tied.constants)):
        for name in [name for name in records if name.startswith(f"data/{folder}/")]:
            del records[name]
        buffer = io.BytesIO()
        torch.save(tensors, buffer)
        records[f"data/{folder}/model.pt"] = buffer.getvalue()


archive.rewrite(directory / "tied.pt2", directory / "tied-2.8.pt2", store_as_2_8)


class Split(nn.Module):
    """Another module's op lies between the ops of a call, as one that a hook adds does."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x).relu()


def interleave(program):
    nodes = program["graph_module"]["graph"]["nodes"]
    (relu,) = [node for node in nodes if "relu" in node["target"]]
    (linear,) = [node for node in nodes if "linear" in node["target"]]
    sin = {**relu, "target": "torch.ops.aten.sin.default", "outputs": [{"as_tensor": {"name": "sin"}}]}
    sin["inputs"] = [{"name": "self", "arg": {"as_tensor": {"name": "linear"}}, "kind": 1}]
    relu["inputs"][0]["arg"]["as_tensor"]["name"] = "sin"
    relu["metadata"] = linear["metadata"]
    nodes.insert(nodes.index(relu), sin)


save(export(Split(), (torch.randn(2, 4),)), directory / "split.pt2")
archive.rewrite_program(directory / "split.pt2", directory / "interleaved.pt2", interleave)
