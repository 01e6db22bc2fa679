# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans, meshes and places in the user's code, before anything is compiled."""

import json
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

import torch
from torch import nn
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor import parallel
from torch.distributed.tensor.placement_types import _StridedShard

import tp_mlir as tp
from tp_mlir import plan as plans
from tp_mlir import styles
from tp_mlir.mesh import read_mesh


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.w1 = nn.Linear(4, 8)
        self.w2 = nn.Linear(8, 4)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])


MESH = tp.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))


def from_package(function):
    """`function`, as if the package had it: the user's code is what calls it."""
    return type(function)(function.__code__.replace(co_filename=plans.__file__), function.__globals__, function.__name__,
                          function.__defaults__, function.__closure__)


@from_package
def parallelize_module(module, mesh, parallelize_plan, **options):
    return plans.read_calls(module, mesh, parallelize_plan, **options)


class Styles(unittest.TestCase):
    def check(self, style, name, **arguments):
        self.assertEqual(styles.read(style), styles.Style(name, arguments))

    def test_all_styles_of_both_packages(self):
        for package, placements in ((parallel, (Shard, Replicate)), (tp, (tp.Shard, tp.Replicate))):
            shard, replicate = placements
            self.check(package.ColwiseParallel(), "ColwiseParallel", input_layouts="Replicate", output_layouts="Shard(-1)",
                       use_local_output=True)
            self.check(package.ColwiseParallel(output_layouts=replicate(), use_local_output=False), "ColwiseParallel",
                       input_layouts="Replicate", output_layouts="Replicate", use_local_output=False)
            self.check(package.RowwiseParallel(input_layouts=replicate(), output_layouts=shard(1)), "RowwiseParallel",
                       input_layouts="Replicate", output_layouts="Shard(1)", use_local_output=True)
            self.check(package.SequenceParallel(sequence_dim=2), "SequenceParallel", sequence_dim=2, use_local_output=False)
            self.check(package.PrepareModuleInput(input_layouts=(shard(1), None), desired_input_layouts=(replicate(), None)),
                       "PrepareModuleInput", input_layouts=["Shard(1)", None], desired_input_layouts=["Replicate", None],
                       use_local_output=False)
            self.check(package.PrepareModuleInput(input_kwarg_layouts={"x": shard(1)}, desired_input_kwarg_layouts={"x": replicate()}),
                       "PrepareModuleInput", input_kwarg_layouts={"x": "Shard(1)"}, desired_input_kwarg_layouts={"x": "Replicate"},
                       use_local_output=False)
            self.check(package.PrepareModuleOutput(output_layouts=replicate(), desired_output_layouts=shard(0)), "PrepareModuleOutput",
                       output_layouts=["Replicate"], desired_output_layouts=["Shard(0)"], use_local_output=True)
            self.check(package.PrepareModuleInputOutput(input_layouts=shard(0), desired_input_layouts=replicate(),
                                                        output_layouts=replicate(), desired_output_layouts=shard(0)),
                       "PrepareModuleInputOutput", input_layouts=["Shard(0)"], desired_input_layouts=["Replicate"],
                       use_local_input=False, output_layouts=["Replicate"], desired_output_layouts=["Shard(0)"], use_local_output=True)
            self.check(package.PrepareModuleInputOutput(output_layouts=replicate(), desired_output_layouts=shard(0)),
                       "PrepareModuleInputOutput", use_local_input=False, output_layouts=["Replicate"],
                       desired_output_layouts=["Shard(0)"], use_local_output=True)

    def test_every_style_of_pytorch_is_known(self):
        known = {name for name in parallel.__all__ if isinstance(getattr(parallel, name), type)} - {"ParallelStyle"}
        self.assertEqual(known, set(styles.STYLES))
        for name in known:
            self.assertTrue(hasattr(tp, name))

    def test_what_plan_files_have(self):
        self.check("colwise", "colwise")
        self.check({"style": "packed_colwise", "segments": [4, 2, 2]}, "packed_colwise", segments=[4, 2, 2])
        self.check({"style": "ColwiseParallel", "output_layouts": Replicate()}, "ColwiseParallel", output_layouts="Replicate")
        self.assertEqual(styles.read([Shard(0), Replicate()]), ["Shard(0)", "Replicate"])
        self.assertEqual(styles.read(_StridedShard(1, split_factor=2)), ["_StridedShard(1, split_factor=2)"])
        self.assertEqual(styles.read(tp._StridedShard(1, split_factor=2)), ["_StridedShard(1, split_factor=2)"])
        self.assertEqual(styles.read((Partial(), Partial("max"))), ["Partial(sum)", "Partial(max)"])

    def test_subclasses_of_styles_are_errors(self):
        class Own(parallel.ColwiseParallel):
            pass

        class Other(parallel.ParallelStyle):
            def _apply(self, module, device_mesh):
                return module

        with self.assertRaisesRegex(tp.PlanError, "Own' is a style with Python code .*; use ColwiseParallel$"):
            styles.read(Own())
        with self.assertRaisesRegex(tp.PlanError, "Other' is a style with Python code .*; use ColwiseParallel, RowwiseParallel, "):
            styles.read(Other())
        with self.assertRaisesRegex(tp.PlanError, "Own' is a style with Python code"):
            styles.read(type("Own", (tp.RowwiseParallel,), {"__module__": "script"})())

    def test_placements_that_a_plan_cannot_have(self):
        from torch.distributed.tensor._ops._math_ops import _NormPartial
        for placement, name in ((_NormPartial(), "_NormPartial"), (type("Own", (Shard,), {"__module__": "script"})(0), "Own")):
            with self.assertRaisesRegex(tp.PlanError, f"'{name}' isn't Shard, Replicate, Partial or _StridedShard"):
                styles.read(parallel.ColwiseParallel(output_layouts=placement))

    def test_other_values(self):
        for value in (7, None, nn.Linear(1, 1), parallel.ColwiseParallel):
            with self.assertRaisesRegex(tp.PlanError, "a style is expected"):
                styles.read(value)
        with self.assertRaisesRegex(tp.PlanError, "a placement is expected"):
            styles.read(["Shard(0)", 7])
        with self.assertRaisesRegex(tp.PlanError, "the same length"):
            tp.PrepareModuleInput(input_layouts=(tp.Shard(0), None), desired_input_layouts=tp.Shard(0))
        with self.assertRaisesRegex(tp.PlanError, "has no layouts"):
            styles.read(parallel.PrepareModuleInput())


class Meshes(unittest.TestCase):
    def test_dimensions(self):
        self.assertEqual((MESH.shape, MESH.ndim, MESH.size(), MESH.mesh_dim_names), ((2, 2), 2, 4, ("dp", "tp")))
        self.assertEqual((MESH["tp"].shape, MESH["tp"].axes), ((2,), ("tp",)))
        self.assertEqual(MESH["dp", "tp"], MESH)
        both = MESH._flatten("both")
        self.assertEqual((both.shape, both.axes, MESH["both"]), ((4,), ("dp", "tp"), both))
        self.assertEqual(read_mesh({"tp": 2}).layout.describe(), {"tp": 2})
        self.assertEqual(tp.init_device_mesh("cpu", (2,)).mesh_dim_names, ("tp",))
        self.assertEqual(tp.DeviceMesh("cpu", [[0, 2], [1, 3]], mesh_dim_names=("dp", "tp")).layout.describe(),
                         {"dims": {"dp": 2, "tp": 2}, "devices": [0, 2, 1, 3]})
        with MESH["tp"] as mesh:
            self.assertEqual(read_mesh(None), mesh)

    def test_errors(self):
        for message, make in (
                ("no dimension 'pp'; it has 'dp', 'tp'", lambda: MESH["pp"]),
                ("in the order of the mesh", lambda: MESH["tp", "dp"]),
                ("ranks 0 to 1, each of them once; found 0, 2", lambda: tp.DeviceMesh("cpu", [0, 2])),
                ("must have the same length", lambda: tp.DeviceMesh("cpu", [[0, 1], [2]])),
                ("device_type must be 'cpu'; found 'cuda'", lambda: tp.init_device_mesh("cuda", (2,))),
                ("2 different names", lambda: tp.init_device_mesh("cpu", (2, 2), mesh_dim_names=("tp", "tp"))),
                ("a letter first; found '1d'", lambda: tp.init_device_mesh("cpu", (2,), mesh_dim_names=("1d",))),
                ("sizes of at least 1", lambda: tp.init_device_mesh("cpu", (0,))),
                ("a mesh is a DeviceMesh", lambda: read_mesh(7)),
                ("no mesh is given", lambda: read_mesh(None)),
                ("select one, as in mesh\\['tp'\\]", lambda: parallelize_module(Model(), MESH, {}))):
            with self.assertRaisesRegex(tp.MeshError, message):
                make()

    def test_meshes_of_pytorch(self):
        # In a process of its own, because a process group belongs to the process.
        script = """
            import torch, torch.distributed as dist
            from torch.distributed.device_mesh import init_device_mesh
            import torch.testing._internal.distributed.fake_pg
            from tp_mlir.mesh import read_mesh
            dist.init_process_group("fake", rank=0, world_size=8, store=dist.HashStore())
            mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
            print(read_mesh(mesh).layout.describe(), read_mesh(mesh).axes)
            print(read_mesh(mesh["tp"]).layout.describe(), read_mesh(mesh["tp"]).axes)
            print(read_mesh(mesh["dp", "cp"]._flatten("dp_cp")).axes, read_mesh(mesh["cp", "tp"]).axes)
            with mesh["cp"]:
                print(read_mesh(None).axes)
        """
        self.assertEqual(self.run_script(script), "{'dp': 2, 'cp': 2, 'tp': 2} ('dp', 'cp', 'tp')\n"
                         "{'dp': 2, 'cp': 2, 'tp': 2} ('tp',)\n('dp', 'cp') ('cp', 'tp')\n('cp',)\n")

    def test_several_processes(self):
        script = """
            import os
            import tp_mlir as tp
            os.environ |= {"TORCHELASTIC_RUN_ID": "0", "WORLD_SIZE": "2"}
            from tp_mlir.mesh import read_mesh
            try:
                read_mesh(tp.DeviceMesh("cpu", [0, 1]))
            except tp.MeshError as error:
                print(error)
        """
        self.assertRegex(self.run_script(script), r"^torchrun has started 2 processes, and they have no process group: .*init_device_mesh "
                                                  r"before\n$")

    def test_backends_of_processes(self):
        for config, found in ("cuda:nccl", "no backend for CPUs"), ("cpu:mpi,cuda:nccl", "'mpi' for CPUs"):
            with (unittest.mock.patch("tp_mlir.processes.count", return_value=2),
                  unittest.mock.patch("torch.distributed.get_backend_config", return_value=config),
                  self.assertRaisesRegex(tp.MeshError, f"{found}; make it by init_process_group")):
                read_mesh({"tp": 2})

    def run_script(self, script):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout


class Calls(unittest.TestCase):
    def test_text(self):
        call = parallelize_module(Model(), MESH["tp"], {"layers.*.w1": tp.ColwiseParallel(), "layers.0.w2.weight": [Shard(1)]})
        data = plans.DataCall(MESH["dp"], "fsdp", False, {"x": 1}, call.place)
        text = plans.write_plan([("model", call), ("model.layers.0", data)], prefix="module")
        self.assertEqual(json.loads(text.text), {
            "mesh": {"dp": 2, "tp": 2},
            "data_parallel": {"dp": {"style": "fsdp", "modules": ["module.model.layers.0"], "reshard_after_forward": False}},
            "batch": {"x": 1},
            "parallelize": [{"mesh_dim": ["tp"], "match": "fnmatch", "plan": {
                "module.model.layers.*.w1": {"style": "ColwiseParallel", "input_layouts": "Replicate", "output_layouts": "Shard(-1)",
                                             "use_local_output": True},
                "module.model.layers.0.w2.weight": ["Shard(1)"]}}]})
        self.assertEqual(len(text.places), len(text.text.splitlines()))

    def test_hsdp(self):
        mesh = tp.init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("replicate", "shard", "tp"))
        place = parallelize_module(Model(), mesh["tp"], {}).place
        text = plans.write_plan([("", plans.DataCall(mesh["replicate", "shard"], "fsdp", None, {}, place))])
        self.assertEqual(json.loads(text.text)["data_parallel"], {"replicate": "ddp", "shard": {"style": "fsdp", "modules": []}})
        with self.assertRaisesRegex(tp.PlanError, "mesh dimension 'shard' has 'ddp' here, and 'fsdp' at"):
            plans.write_plan([("", plans.DataCall(mesh["shard"], style, None, {}, place)) for style in ("fsdp", "ddp")])
        with self.assertRaisesRegex(tp.PlanError, "must be the same for all"):
            plans.write_plan([("", plans.DataCall(mesh["shard"], "fsdp", reshard, {}, place)) for reshard in (True, False)])

    def test_parts_of_different_meshes(self):
        calls = [("", parallelize_module(Model(), tp.init_device_mesh("cpu", (size,)), {})) for size in (2, 4)]
        with self.assertRaisesRegex(tp.MeshError, "a part of another one"):
            plans.write_plan(calls)

    def test_plans_in_plans(self):
        call = parallelize_module(Model(), MESH["tp"], {"layers.*": {"w1": tp.ColwiseParallel(), "": tp.SequenceParallel()}})
        self.assertEqual([entry.pattern for entry in call.entries], ["layers.*.w1", "layers.*"])

    def test_unmatched_patterns(self):
        for pattern, message in (("layers.*.w3", "no submodule 'w3' in 'layers.0'; it has 'norm', 'w1', 'w2'"),
                                 ("layer.0", "no submodule 'layer' in the root, Model; did you mean 'layers'\\?"),
                                 ("layers.0.w1.bias.x", "no submodule 'bias' in 'layers.0.w1'")):
            with self.assertRaisesRegex(tp.PlanError, message) as caught:
                parallelize_module(Model(), MESH["tp"], {
                    pattern: tp.ColwiseParallel()})
            self.assertEqual(caught.exception.entry, pattern)
            self.assertEqual(caught.exception.place.file.rsplit("/", 1)[-1], "test_plan.py")
        parallelize_module(Model(), MESH["tp"], {"layers.*.w1.bias": [Shard(0)], "layers.*": tp.SequenceParallel()})
        self.assertEqual(len(parallelize_module(Model(), MESH["tp"], {"none": "colwise"}, on_unmatched="warn").entries), 1)


class Places(unittest.TestCase):
    """The line of each entry of a script, by a comment on it."""

    def check(self, script):
        script, found = textwrap.dedent(script), []

        @from_package
        def call(module, device_mesh, parallelize_plan):
            found.append(plans.read_calls(module, device_mesh, parallelize_plan))

        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(script)
            file.flush()
            exec(compile(script, file.name, "exec"), {"parallelize": call, "tp": tp, "Model": Model, "MESH": MESH})
        lines = script.splitlines()
        entries = [entry for result in found for entry in result.entries]
        self.assertTrue(entries)
        for entry in entries:
            line = lines[entry.place.key.line - 1]
            self.assertIn(f"# {entry.pattern}", line)
            for name, place in entry.place.arguments.items():
                self.assertIn(f"{name}=", lines[place.line - 1][place.column - 1:])
        return entries

    def test_literal(self):
        entries = self.check("""
            parallelize(Model(), MESH["tp"], {
                "layers.*.w1": tp.ColwiseParallel(),  # layers.*.w1
                "layers.*.w2": tp.RowwiseParallel(  # layers.*.w2
                    output_layouts=tp.Replicate(),
                ),
            })
        """)
        self.assertEqual(list(entries[1].place.arguments), ["output_layouts"])

    def test_keyword_and_variables(self):
        self.check("""
            def build(blocks):
                plan = {
                    "norm": tp.SequenceParallel(),  # norm
                }
                plan["w1"] = tp.ColwiseParallel()  # w1
                plan.update({"w2": tp.RowwiseParallel()})  # w2
                for block in blocks:
                    parallelize(
                        block,
                        MESH["tp"],
                        parallelize_plan=plan,
                    )
            build(Model().layers)
        """)

    def test_other_forms(self):
        self.check("""
            common = {"layers.*.norm": tp.SequenceParallel()}  # layers.*.norm
            parallelize(Model(), MESH["tp"], {**common,
                "layers.0.w1": tp.ColwiseParallel()})  # layers.0.w1
            parallelize(Model(), MESH["tp"], common | {
                "layers.0.w1": tp.ColwiseParallel()})  # layers.0.w1
            parallelize(Model(), MESH["tp"], {
                f"layers.{0}.w1": tp.ColwiseParallel()})  # layers.0.w1
        """)

    def test_unknown_forms_have_the_place_of_the_call(self):
        self.check("""
            def get():
                return {"layers.*.w1": tp.ColwiseParallel()}
            parallelize(Model(), MESH["tp"], get())  # layers.*.w1
        """)

    def test_code_without_a_file(self):
        scope = {"parallelize_module": parallelize_module, "Model": Model, "MESH": MESH}
        call = eval("parallelize_module(Model(), MESH['tp'], {'layers.*.w1': 'colwise'})", scope)
        self.assertEqual(str(call.entries[0].place.key).split(":")[0], "<string>")


if __name__ == "__main__":
    unittest.main()
