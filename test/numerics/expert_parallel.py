#!/usr/bin/env python3
"""Expert parallelism beside single-device PyTorch: models and blocks of transformers whose tokens travel to the ranks of their
experts. Programs are proven, the rows that move are those that the routers choose, and losses after training steps agree.

  expert_parallel.py [NAME…]

Exit code 1 when anything differs.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

import experts
from exported import Logits, run, train_compiled, train_with_torch
from ranks import Ranks


def make_plan(mesh, styles):
    plan = {"mesh": mesh, "expert_parallel": {"ep": "all_to_all"}}
    if "dp" in mesh:
        plan["data_parallel"] = {"dp": "fsdp"}
    if "tp" in mesh:
        plan |= {"match": "hf", "mesh_dim": "tp", "plan": styles}
    return plan


class Case(experts.Case):
    def compile(self, plan, options=""):
        (self.folder / "plan.json").write_text(json.dumps(plan))
        run("tp-opt", self.folder / "model.mlir", "-o", self.folder / "ranks.mlir",
            f"--tp-parallelize=plan={self.folder / 'plan.json'} report={self.folder / 'report.json'} {options}")
        run("tp-compile", self.folder / "ranks.mlir", "-o", self.folder / "model.tpx")

    def is_proven(self, options=""):
        process = subprocess.run(["tp-opt", self.folder / "ranks.mlir", "-o", "/dev/null",
                                  f"--tp-verify-spmd=reference={self.folder / 'model.mlir'} {options}"], capture_output=True, text=True)
        if process.returncode:
            print(process.stderr[:1000])
        return process.returncode == 0

    def run(self, expected, *options):
        np.save(self.folder / "expected.npy", expected.numpy())
        flags = [flag for name in self.inputs for flag in ("--input", f"{name}={self.folder / name}.npy")]
        run("tp-run", self.folder / "model.tpx", "--weights", self.folder / "model.safetensors", *flags, "--expect",
            self.folder / "expected.npy", "--rtol", "1e-4", "--atol", "1e-5", "--json", self.folder / "run.json", *options)

    def get_exchanges(self):
        """For each all-to-all of experts, the bytes that each rank may receive, and those that it has received."""
        predicted = json.loads((self.folder / "report.json").read_text())
        executed = json.loads((self.folder / "run.json").read_text())["ranks"]
        return [([rank.get_bytes(i) for rank in Ranks(predicted)], [rank["collectives"][i]["bytes"] for rank in executed])
                for i, each in enumerate(predicted["collectives"]) if each["kind"] == "all_to_all"]


def count_rows(ids, ranks, num_experts, width):
    """The bytes that each rank of a group receives: of each token of another rank one byte, and its row if one of its experts is there."""
    needed = torch.stack([(ids // (num_experts // ranks) == rank).any(1) for rank in range(ranks)])
    tokens = ids.shape[0] // ranks
    dispatched, combined = [], []
    for rank in range(ranks):
        own = torch.zeros(ids.shape[0], dtype=torch.bool)
        own[rank * tokens:(rank + 1) * tokens] = True
        others = int((~own).sum())
        dispatched.append(others + 4 * width * int(needed[rank][~own].sum()))
        combined.append(others + 4 * width * sum(int(needed[other][own].sum()) for other in range(ranks) if other != rank))
    return dispatched, combined


def check(folder, name, module, inputs, meshes, styles, check_rows=lambda case, mesh: None):
    with torch.no_grad():
        expected = module(*inputs.values())
    case = Case(folder / name, module, inputs)
    for mesh in meshes:
        case.compile(make_plan(mesh, styles))
        case.run(expected)
        exchanges = case.get_exchanges()
        for bounds, received in exchanges:
            assert all(0 < bytes <= bound for bytes, bound in zip(received, bounds, strict=True)), (bounds, received)
        print(f"{name} agrees on {' x '.join(f'{axis}{size}' for axis, size in mesh.items())}: {len(exchanges)} all-to-alls"
              f"{', proven' * case.is_proven()}")
        check_rows(case, mesh)


def check_model(folder, name, make):
    torch.manual_seed(0)
    model, ids = make().eval(), torch.randint(experts.BASE["vocab_size"], (4, 8))
    experts.disturb(model)
    meshes = [{"ep": 2}, {"ep": 4}]
    if name == "mixtral":
        meshes += [{"ep": 2, "tp": 2}, {"dp": 2, "ep": 2}]
    check(folder, name, Logits(model), {"ids": ids}, meshes, model.tp_plan)


def check_block(folder, name, make):
    torch.manual_seed(0)
    block = make().eval()
    block.experts.config._experts_implementation = "grouped_mm"
    experts.disturb(block)
    chosen = []
    block.experts.register_forward_pre_hook(lambda module, arguments: chosen.append(arguments[1].detach().clone()))
    x = torch.randn(4, 4, experts.BASE["hidden_size"])
    with torch.no_grad():
        block(x)
    block.experts._forward_pre_hooks.clear()

    def check_rows(case, mesh):
        # Groups of data parallelism don't exchange tokens.
        groups = [count_rows(ids, mesh["ep"], block.experts.num_experts, x.shape[-1]) for ids in chosen[0].chunk(mesh.get("dp", 1))]
        expected = [sum(lists, []) for lists in zip(*groups)]
        assert [received for _, received in case.get_exchanges()] == expected, (case.get_exchanges(), expected)
        print("  the rows that move are those of the chosen experts")

    check(folder, name, block, {"hidden_states": x}, [{"ep": 2}, {"ep": 4}, {"dp": 2, "ep": 2}], {}, check_rows)


def train(folder, make):
    """Steps of Adam: the losses are those of PyTorch."""
    torch.manual_seed(0)
    model, ids = make().train(), torch.randint(experts.BASE["vocab_size"], (4, 8))
    target = torch.randn(4, 8, experts.BASE["vocab_size"])
    case = Case(folder / "training", Logits(model), {"ids": ids})
    trained = Logits(copy.deepcopy(model))
    losses = train_with_torch(trained, (ids,), target, torch.optim.Adam(trained.parameters(), lr=0.01, eps=1e-3), steps=4)
    file = case.folder / "train.yaml"
    file.write_text("loss: mse\noptimizer: {name: Adam, lr: 0.01, eps: 1.0e-3}\n")
    for mesh in {"ep": 2}, {"ep": 4}, {"ep": 2, "tp": 2}, {"dp": 2, "ep": 2}:
        case.compile(make_plan(mesh, model.tp_plan), f"train={file}")
        np.testing.assert_allclose(train_compiled(case.folder, {"ids": ids}, target, len(losses)), losses, rtol=1e-4)
        exchanges = [each for each in json.loads((case.folder / "report.json").read_text())["collectives"] if each["kind"] == "all_to_all"]
        print(f"training agrees on {' x '.join(f'{axis}{size}' for axis, size in mesh.items())}: {len(exchanges)} all-to-alls"
              f"{', proven' * case.is_proven(f'train={file}')}")


def main():
    warnings.simplefilter("ignore")
    models = experts.make_models()
    blocks = {f"{name}-block": lambda name=name: models[name]().model.layers[1].mlp for name in ("mixtral", "qwen2-moe", "deepseek-v3")}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in sys.argv[1:] or [*blocks, "mixtral", "qwen3-moe", "training"]:
            if name in blocks:
                check_block(folder, name, blocks[name])
            elif name == "training":
                train(folder, models["mixtral"])
            else:
                check_model(folder, name, models[name])


if __name__ == "__main__":
    sys.exit(main())
