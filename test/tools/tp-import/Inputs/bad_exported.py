"""Saves programs of torch.export that can't be imported: bad_exported.py <directory>"""

import json
import pathlib
import sys
import warnings
import zipfile

import torch
from torch import nn
from torch.export import Dim, export, save
from torch.export.pt2_archive._package import package_pt2

import archive

directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")
x = torch.randn(2, 4)


@torch.library.custom_op("sample::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twice.register_fake(lambda x: torch.empty_like(x))


class Inner(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvalsh(x @ x.T) + twice(x).sum()


class Unsupported(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(torch.nextafter(x, x + 1))


class Item(nn.Module):
    def forward(self, x):
        return x * x.sum().item()


class Nonzero(nn.Module):
    def forward(self, x):
        return x.nonzero()


class Cond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Autocast(nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x.T


class Parameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4), requires_grad=False)

    def forward(self, x):
        self.weight[1:] += 1
        return x + 1


class Torn(nn.Module):
    """It writes a view that the importer has copied: PyTorch's kernel of attention puts its result elsewhere."""

    def forward(self, x):
        q = x.view(1, 2, 2, 2).transpose(1, 2)
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        z = y.transpose(1, 2).view(2, 4)
        z += 1
        return y


class Input(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x)


for cls in (Unsupported, Item, Nonzero, Cond, Autocast, Parameter, Torn, Input, Plain):
    save(export(cls(), (x.clone(),)), directory / f"{cls.__name__}.pt2")
save(export(Input(), (x.clone(),)).run_decompositions(), directory / "InputCore.pt2")
plain = directory / "Plain.pt2"



class Mapped(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda row: (row * row[0]).expand(3, 4))(x)


class Expanded(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda row: (row * 2).expand(3, 4))(x)


mapped = directory / "Expanded.pt2"
for cls in (Mapped, Expanded):
    save(export(cls(), (x.clone(),), strict=True), directory / f"{cls.__name__}.pt2")


def cut(name, target, count):
    """Leaves so many arguments to the ops `target` of the mapped program."""
    def change(program):
        for node in program["graph_module"]["graph"]["nodes"]:
            if target in node["target"]:
                del node["inputs"][count:]

    archive.rewrite_program(mapped, directory / f"{name}.pt2", change)


cut("no-sizes", "aten.expand", 1)
cut("no-level", "_add_batch_dim", 2)
cut("no-tensor", "_remove_batch_dim", 0)

whole = plain.read_bytes()
(directory / "truncated.pt2").write_bytes(whole[: len(whole) // 2])
with zipfile.ZipFile(directory / "old.pt2", "w") as old:
    old.writestr("serialized_exported_program.json", "{}")
package_pt2(str(directory / "several.pt2"), exported_programs={name: export(Plain(), (x,)) for name in ("a", "b")})


def change(name, function):
    archive.rewrite_program(plain, directory / f"{name}.pt2", function)


def change_records(name, function):
    archive.rewrite(plain, directory / f"{name}.pt2", function)


def change_weights(name, function):
    def change(records):
        config = json.loads(records["data/weights/model_weights_config.json"])
        function(config["config"]["proj.weight"])
        records["data/weights/model_weights_config.json"] = json.dumps(config).encode()

    change_records(name, change)


def first_node(program):
    return program["graph_module"]["graph"]["nodes"][0]


change("future", lambda program: program["schema_version"].update(major=9, minor=1))
change("type", lambda program: first_node(program).update(target=5))
change("missing", lambda program: first_node(program).pop("outputs"))
change("union", lambda program: first_node(program)["inputs"][0].update(arg={"as_tensor": {"name": "x"}, "as_int": 1}))
change("undefined", lambda program: first_node(program)["inputs"][0]["arg"]["as_tensor"].update(name="y"))
change("argument", lambda program: first_node(program)["inputs"][1].update(arg={"as_string": "w"}))
change("surplus", lambda program: first_node(program)["inputs"][1].update(name="weights"))
change("unknown-kind", lambda program: first_node(program)["inputs"][1].update(arg={"as_custom_obj": {}}))
change("stack", lambda program: first_node(program)["metadata"].update(nn_module_stack=";".join(f"k{i},m{i},M" for i in range(1000))))
change_records("version", lambda records: records.update(archive_version=b"1"))
change_records("endian", lambda records: records.update(byteorder=b"big"))
change_records("none", lambda records: records.pop("models/model.json"))
change_records("deep", lambda records: records.update({"models/model.json": b'{"a":' + b"[" * 1000000}))
change_records("text", lambda records: records.update({"models/model.json": b"program"}))
change_records("short", lambda records: records.update({"data/weights/weight_0": bytes(60)}))
change_records("lost", lambda records: records.pop("data/weights/weight_0"))
change_weights("large", lambda meta: meta["tensor_meta"].update(sizes=[{"as_int": 1 << 62}, {"as_int": 4}]))
change_weights("expanded", lambda meta: meta["tensor_meta"].update(sizes=[{"as_int": 1 << 40}, {"as_int": 4}], strides=[{"as_int": 0}, {"as_int": 1}]))
change_weights("negative", lambda meta: meta["tensor_meta"].update(storage_offset={"as_int": -4}))
change_weights("pickled", lambda meta: meta.update(use_pickle=True))
change_weights("dtype", lambda meta: meta["tensor_meta"].update(dtype=99))
