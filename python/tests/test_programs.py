# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of the extension module: parsing, passes, files in memory, errors, artifacts."""

import ast
import gc
import json
import os
import pathlib
import unittest
from concurrent.futures import ThreadPoolExecutor

import models
import tp_mlir
from resources import check_growth
from tp_mlir import CompileError, Error, InputError, _native
from tp_mlir._native import Program


class Parse(unittest.TestCase):
    def test_text_is_read_again(self):
        program = Program.parse(models.make_mlp(), "mlp.mlir")
        again = Program.parse(program.text())
        self.assertEqual(program.text(), again.text())
        self.assertIn('nn.module "up"', program.text())

    def test_bytecode_is_read_again(self):
        program = Program.parse(models.make_mlp().encode(), "mlp.mlir")
        bytecode = program.bytecode()
        self.assertIsInstance(bytecode, bytes)
        self.assertEqual(Program.parse(bytecode).text(), program.text())

    def test_locations_are_printed_if_wanted(self):
        program = Program.parse(models.make_mlp(), "mlp.mlir")
        self.assertNotIn("loc(", program.text())
        self.assertIn('loc("mlp.mlir":', program.text(locations=True))

    def test_an_error_has_its_place(self):
        with self.assertRaises(CompileError) as caught:
            Program.parse("func.func @main() {\n  nn.nothing\n}", "bad.mlir")
        error = caught.exception
        self.assertIsInstance(error, Error)
        self.assertIsInstance(error, RuntimeError)
        (diagnostic,) = error.diagnostics
        self.assertEqual((diagnostic.file, diagnostic.line, diagnostic.column), ("bad.mlir", 2, 3))
        self.assertEqual((diagnostic.severity, diagnostic.location), ("error", "bad.mlir:2:3"))
        self.assertTrue(str(error).startswith("bad.mlir:2:3: error: "), str(error))
        self.assertEqual(str(diagnostic), str(error))
        self.assertEqual(error.outputs, {})

    def test_wrong_sources(self):
        for source in (b"ML\xefR\x00\x01damaged", b"\xff\xfe", "module {"):
            with self.subTest(source=source), self.assertRaises(CompileError):
                Program.parse(source)
        with self.assertRaisesRegex(InputError, "the source must be of type 'str' or 'bytes', not 'int'"):
            Program.parse(7)


class Parallelize(unittest.TestCase):
    def setUp(self):
        self.model = Program.parse(models.make_mlp(), "mlp.mlir")

    def test_a_copy_is_changed(self):
        before = self.model.text()
        ranks = self.model.parallelize({"plan": "plan.yaml"}, files={"plan.yaml": models.PLAN})
        self.assertEqual(self.model.text(), before)
        self.assertIn("tp.all_reduce", ranks.text())
        report = json.loads(ranks.report())
        self.assertEqual([each["kind"] for each in report["collectives"]], ["all_reduce"])
        self.assertEqual(report["collectives"][0]["reason"], "plan.yaml:4:3: RowwiseParallel output_layouts Replicate")

    def test_options_of_all_types(self):
        options = {"plan": "it's a plan.yaml", "sequence-parallel": True, "bucket-bytes": 1024, "strategy": "greedy"}
        ranks = self.model.parallelize(options, files={"it's a plan.yaml": models.PLAN.encode()})
        self.assertIn("it's a plan.yaml:4:3", ranks.report())

    def test_files_of_the_system(self):
        with models.Folder() as name, self.subTest(name):
            path = os.path.join(name, "plan.yaml")
            with open(path, "w") as file:
                file.write(models.PLAN)
            self.assertIn("tp.all_reduce", self.model.parallelize({"plan": path}).text())
            # A file in memory comes first.
            with self.assertRaisesRegex(CompileError, "expects a mesh|mesh"):
                self.model.parallelize({"plan": path}, files={path: "plan: {up: ColwiseParallel}"})

    def test_an_error_in_a_plan_has_its_place(self):
        plan = models.PLAN.replace("down", "dwn")
        with self.assertRaises(CompileError) as caught:
            self.model.parallelize({"plan": "plan.py"}, files={"plan.py": plan})
        (error,) = (each for each in caught.exception.diagnostics if each.severity == "error")
        self.assertEqual((error.file, error.line, error.column), ("plan.py", 4, 3))
        self.assertIn("'dwn'", error.message)
        self.assertIn("did you mean 'down'", str(error))
        # The model can still be used.
        self.assertIn("tp.all_reduce", self.model.parallelize({"plan": "p"}, files={"p": models.PLAN}).text())

    def test_wrong_options(self):
        for options, type, text in (
            ({"plam": "x"}, InputError, "tp-parallelize has no option 'plam'; did you mean 'plan'"),
            ({"everything": True}, InputError, "has no option 'everything'; options are alternatives, bucket-bytes, chunks, "),
            ({"plan": "no such file"}, CompileError, "can't read the plan 'no such file': No such file"),
            ({"chunks": "many"}, CompileError, "many"),
            ({"plan": "\"'"}, InputError, "has both kinds of quotes"),
            ({"plan": 1.5}, TypeError, "incompatible function arguments"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(type, text):
                self.model.parallelize(options)
        with self.assertRaisesRegex(InputError, "the file 'plan' must be of type 'str' or 'bytes', not 'int'"):
            self.model.parallelize({"plan": "plan"}, files={"plan": 7})

    def test_an_error_without_a_mesh(self):
        with self.assertRaisesRegex(CompileError, "mesh"):
            self.model.parallelize()


class RunPipeline(unittest.TestCase):
    def test_outputs_are_in_memory(self):
        model = Program.parse(models.make_mlp(), "mlp.mlir")
        before = model.text()
        outputs = model.run_pipeline(
            "builtin.module(tp-explain{plan=plan.yaml format=json file=why.json})", files={"plan.yaml": models.PLAN},
            outputs=["why.json", "never.json"])
        self.assertEqual(list(outputs), ["why.json"])
        self.assertIn("values", json.loads(outputs["why.json"]))
        self.assertFalse(os.path.exists("why.json"))
        self.assertEqual(model.text(), before)

    def test_the_proof_reads_its_reference_from_memory(self):
        model = Program.parse(models.make_mlp(), "mlp.mlir")
        ranks = model.parallelize({"plan": "plan.yaml"}, files={"plan.yaml": models.PLAN})
        annotated = model.clone()
        annotated.run_pipeline("builtin.module(tp-apply-plan{plan=plan.yaml})", files={"plan.yaml": models.PLAN})
        outputs = ranks.run_pipeline(
            "builtin.module(tp-verify-spmd{reference=model report=proof.json})", files={"model": annotated.bytecode()},
            outputs=["proof.json"])
        self.assertEqual(json.loads(outputs["proof.json"])["functions"][0]["verdict"], "proven")
        self.assertIn("is proven for 2 ranks", ranks.diagnostics[0].message)

    def test_a_failure_changes_nothing(self):
        program = models.parallelize_mlp()
        before = program.text()
        wrong = program.text().replace("tp.all_reduce", "tp.all_reduce", 1)
        self.assertEqual(wrong, before)
        with self.assertRaises(CompileError) as caught:
            program.run_pipeline("builtin.module(cse,tp-verify-spmd{reference=other report=proof.json})",
                                 files={"other": models.make_mlp().replace("nn.relu", "nn.gelu")}, outputs=["proof.json"])
        self.assertEqual(program.text(), before)
        self.assertNotEqual(json.loads(caught.exception.outputs["proof.json"])["functions"][0]["verdict"], "proven")

    def test_wrong_pipelines(self):
        program = Program.parse(models.make_mlp())
        for pipeline, text in (("builtin.module(tp-nothing)", "tp-nothing"), ("func.func(cse)", "not of 'builtin.module'"),
                               ("builtin.module(", "in the pipeline")):
            with self.subTest(pipeline=pipeline), self.assertRaisesRegex(CompileError, text):
                program.run_pipeline(pipeline)


class Compile(unittest.TestCase):
    def setUp(self):
        self.folder = models.Folder()
        self.addCleanup(self.folder.cleanup)

    def test_an_artifact_has_a_manifest(self):
        program = models.parallelize_mlp()
        before = program.text()
        program.compile(self.folder / "m.tpx", cpu="x86-64", opt_level=0, name="forward")
        self.assertEqual(program.text(), before)
        artifact = _native.Artifact(self.folder / "m.tpx")
        self.assertEqual(artifact.path, str(self.folder / "m.tpx"))
        manifest = json.loads(artifact.manifest)
        self.assertEqual(manifest["mesh"]["axes"], [{"name": "tp", "size": 2}])
        self.assertEqual([each["name"] for each in manifest["programs"]], ["forward"])

    def test_several_programs_of_different_models(self):
        programs = [(f"rows{rows}", models.parallelize_mlp(rows=rows)) for rows in (2, 4)]
        self.assertEqual(_native.compile_programs(programs, self.folder / "m.tpx", opt_level=1), [])
        manifest = json.loads(_native.Artifact(self.folder / "m.tpx").manifest)
        self.assertEqual([each["name"] for each in manifest["programs"]], ["rows2", "rows4"])

    def test_failures_leave_no_file(self):
        program = models.parallelize_mlp()
        path = self.folder / "m.tpx"
        for wrong, type, text in (
            ({"cpu": "no-such-cpu"}, CompileError, "no-such-cpu"),
            ({"opt_level": 4}, CompileError, "the optimization level is 0 to 3, not 4"),
            ({"target": "cuda:sm_1"}, CompileError, "sm_1"),
        ):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(type, text):
                program.compile(path, **wrong)
        with self.assertRaisesRegex(InputError, "there are no programs to compile"):
            _native.compile_programs([], path)
        with self.assertRaisesRegex(CompileError, "No such file or directory"):
            program.compile(self.folder / "nowhere" / "m.tpx")
        with self.assertRaises(InputError):
            program.compile("m\0.tpx")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_artifacts_that_are_none(self):
        with self.assertRaisesRegex(InputError, "nowhere.tpx"):
            _native.Artifact(self.folder / "nowhere.tpx")
        (self.folder / "text.tpx").write_text("text")
        with self.assertRaisesRegex(InputError, "text.tpx"):
            _native.Artifact(self.folder / "text.tpx")


class Threads(unittest.TestCase):
    def test_threads_use_the_same_and_other_programs(self):
        shared = Program.parse(models.make_mlp(), "mlp.mlir")

        def work(number):
            plan = models.PLAN if number % 2 else models.PLAN.replace("down", "dwn")
            for _ in range(5):
                for program in (shared, Program.parse(models.make_mlp(rows=number + 1))):
                    options = {"plan": f"{number}.yaml"}
                    if number % 2:
                        program.parallelize(options, files={f"{number}.yaml": plan})
                    else:
                        with self.assertRaisesRegex(CompileError, f"{number}.yaml:4:3"):
                            program.parallelize(options, files={f"{number}.yaml": plan})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))

    def test_a_fork_gets_an_error(self):
        program = Program.parse(models.make_mlp())
        child = os.fork()
        if child == 0:
            code = 1
            try:
                program.text()
            except Error as error:
                code = 0 if "this program was made by process" in str(error) else 2
            del program
            gc.collect()
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertIn("nn.relu", program.text())


class Stubs(unittest.TestCase):
    def test_the_stubs_have_what_the_module_has(self):
        tree = ast.parse(pathlib.Path(tp_mlir.__file__).with_name("_native.pyi").read_text())
        described = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for protocol in "_SupportsDLPack", "_Transport":  # which objects of others have
            del described[protocol]

        def public(names):
            return {name for name in names if not name.startswith("_")}

        self.assertEqual(set(described), public(dir(_native)))
        for name, node in described.items():
            if isinstance(node, ast.FunctionDef):
                continue
            with self.subTest(name):
                bases = getattr(_native, name).__mro__[1:]
                inherited = {each for base in bases for each in dir(base)}
                members = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                members |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
                self.assertEqual(public(members), public(dir(getattr(_native, name))) - inherited)


class Memory(unittest.TestCase):
    def test_programs_leave_nothing(self):
        def work():
            for _ in range(10):
                models.parallelize_mlp().report()
                try:
                    Program.parse("nothing")
                except CompileError:
                    pass

        check_growth(self, work, 8 << 20)


if __name__ == "__main__":
    unittest.main()
