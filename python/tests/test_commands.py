# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tp-mlir run MODEL …`: from a model to a result in one command."""

import contextlib
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import unittest
import unittest.mock

import models
import numpy as np

from tp_mlir import tools
from tp_mlir.commands import steps

try:
    import torch
except ImportError:
    torch = None

STEPS = "import", "plan", "shard", "compile"


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = models.Folder()
        self.addCleanup(self.folder.cleanup)
        (self.folder / "mlp.mlir").write_text(models.make_mlp())
        (self.folder / "plan.yaml").write_text(models.PLAN)
        np.save(self.folder / "x.npy", np.ones((4, 8), np.float32))

    def start(self, *arguments):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}
        return subprocess.Popen([sys.executable, "-m", "tp_mlir", *map(str, arguments)], cwd=self.folder.name, env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def check(self, *arguments, code=0):
        """What a command printed, on both outputs."""
        process = self.start(*arguments)
        out, messages = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, out + messages)
        return out, messages

    def list_steps(self, messages):
        """The steps that ran."""
        lines = [line for line in messages.splitlines() if line.split(" ")[0] in STEPS]
        return [line.split(" ")[0] for line in lines if not line.endswith("as before")]

    def export(self, path="model.pt2"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        x = torch.randn(4, 8)
        if path.endswith(".pt2"):
            torch.export.save(torch.export.export(model, (x,)), self.folder / path)
        else:
            torch.jit.save(torch.jit.trace(model, x), self.folder / path)
        np.save(self.folder / "x.npy", x.numpy())
        np.save(self.folder / "y.npy", model(x).detach().numpy())

    def test_help(self):
        out, _ = self.check("--help")
        for name in ("run", "train", "plan", "report", "explain", "compile"):
            self.assertIn(f"\n  {name} ", out)
            self.assertIn("--plan FILE", self.check(name, "--help")[0])

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_runs_a_model(self):
        for path in ("model.pt2", "model.pt"):
            self.export(path)
            out, messages = self.check("run", path, "--ranks", 2, "--input", "input=x.npy", "--expect", "y.npy", "--atol", "1e-5",
                                       "--directory", f"{path}.tp")
            self.assertIn("matches 'y.npy'", out)
            self.assertEqual(self.list_steps(messages), list(STEPS))
            # A later command needs neither the shapes nor a step again. Those of a program of torch.export aren't the file's.
            out, messages = self.check("report", path, "--ranks", 2, "--directory", f"{path}.tp")
            self.assertEqual(self.list_steps(messages), [])
            self.assertTrue(out.startswith("mesh "))

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_trains_a_model(self):
        self.export()
        (self.folder / "train.yaml").write_text("loss: mse\noptimizer: {name: SGD, lr: 0.1}\n")
        arguments = ("--training", "train.yaml", "--data", "input=x.npy", "--data", "target=y.npy", "--steps", 3, "--log-every", 1)
        out, _ = self.check("train", "model.pt2", "--mesh", "tp=2", *arguments)
        self.assertIn("step 3", out)

    def test_report_and_explanation(self):
        out, messages = self.check("report", "mlp.mlir", "--plan", "plan.yaml")
        self.assertIn("all_reduce", out)
        self.assertEqual(self.list_steps(messages), ["shard"])
        out, messages = self.check("report", "mlp.mlir", "--plan", "plan.yaml", "--json", "--quiet")
        self.assertEqual(len(json.loads(out)["collectives"]), 1)
        self.assertEqual(messages, "")
        out, _ = self.check("explain", "mlp.mlir", "--plan", "plan.yaml")
        self.assertIn("plan.yaml:", out)
        self.assertIn("redistributions", json.loads(self.check("explain", "mlp.mlir", "--plan", "plan.yaml", "--json")[0]))

    def read_page(self, path):
        """The report and the explanation that a page shows."""
        page = (self.folder / path).read_text(encoding="utf-8")
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        return [json.loads(page.split(f' id="{name}">', 1)[1].split("</script>", 1)[0]) for name in ("report", "explanation")]

    def test_report_as_a_page(self):
        out, messages = self.check("report", "mlp.mlir", "--plan", "plan.yaml", "--json", "--html", "report.html")
        self.assertEqual(self.list_steps(messages), ["shard"])
        self.assertRegex(messages, "(?m)^explain ")
        report, explanation = self.read_page("report.html")
        self.assertEqual(report, json.loads(out))
        self.assertEqual([item["reason"] for item in explanation["redistributions"]], [item["reason"] for item in report["collectives"]])
        # Warnings are printed once, though tp-explain has them, too.
        (self.folder / "uneven.yaml").write_text(models.PLAN.replace("tp: 2", "tp: 3"))
        _, messages = self.check("report", "mlp.mlir", "--plan", "uneven.yaml", "--html", "report.html")
        self.assertEqual(messages.count("not divisible"), len(set(re.findall(".*not divisible.*", messages))))
        self.assertRegex(messages, "not divisible")
        # What tp-explain doesn't know isn't explained.
        _, messages = self.check("report", "mlp.mlir", "--plan", "plan.yaml", "--option", "overlap", "--html", "report.html")
        self.assertNotRegex(messages, "(?m)^explain ")
        self.assertIsNone(self.read_page("report.html")[1])
        _, messages = self.check("report", "mlp.mlir", "--plan", "plan.yaml", "--html", "no/report.html", code=1)
        self.assertIn("No such file or directory", messages)

    def test_a_plan_is_found_and_taken(self):
        self.check("plan", "mlp.mlir", "--ranks", 2, "-o", "found.yaml")
        found = (self.folder / "found.yaml").read_text()
        self.assertEqual(found, self.check("plan", "mlp.mlir", "--ranks", 2, "-q")[0])
        self.check("report", "mlp.mlir", "--plan", "found.yaml")
        out, _ = self.check("compile", "mlp.mlir", "--plan", "found.yaml", "--directory", "a folder")
        self.assertTrue((self.folder / out.strip()).exists())

    def test_only_what_changed_runs_again(self):
        command = "compile", "mlp.mlir", "--plan", "plan.yaml"
        steps = self.list_steps(self.check(*command)[1])
        self.assertEqual(steps, ["shard", "compile"])
        model, plan = self.folder / "mlp.mlir", self.folder / "plan.yaml"
        changes = {
            "nothing": (lambda: None, []),
            "a time": (lambda: os.utime(plan, (1, 1)), []),
            "a comment of the plan": (lambda: plan.write_text(models.PLAN + "\n# more\n"), ["shard"]),
            "the plan": (lambda: plan.write_text(models.PLAN.replace("2", "4", 1)), ["shard", "compile"]),
            "the model": (lambda: model.write_text(models.make_mlp().replace("4x8x", "8x8x").replace("4x16x", "8x16x")), ["shard", "compile"]),
            "a result": ((self.folder / "mlp.tp/model.tpx").unlink, ["compile"]),
            "the record": (lambda: (self.folder / "mlp.tp/steps.json").write_text("[1"), ["shard", "compile"]),
        }
        for what, (change, expected) in changes.items():
            with self.subTest(what):
                change()
                self.assertEqual(self.list_steps(self.check(*command)[1]), expected)
        self.assertEqual(self.list_steps(self.check(*command, "--target-cpu", "x86-64-v3")[1]), ["compile"])

    def test_a_description_of_the_machine_is_read_again(self):
        machine = self.folder / "machine.json"
        text = (pathlib.Path(__file__).resolve().parents[2] / "test/tools/tp-run/Inputs/machine.json").read_text()
        machine.write_text(text)
        command = "report", "mlp.mlir", "--ranks", 2, "--machine", "machine.json"
        self.assertEqual(self.list_steps(self.check(*command)[1]), ["plan", "shard"])
        self.assertEqual(self.list_steps(self.check(*command)[1]), [])
        machine.write_text(text + "\n")
        self.assertIn("plan", self.list_steps(self.check(*command)[1]))

    def test_where_a_plan_goes(self):
        command = "plan", "mlp.mlir", "--ranks", 2, "-q", "-o"
        printed, _ = self.check(*command, "-")
        (self.folder / "kept.yaml").write_text("before")
        (self.folder / "link.yaml").symlink_to("kept.yaml")
        self.check(*command, "link.yaml")
        self.assertTrue((self.folder / "link.yaml").is_symlink())
        self.assertEqual((self.folder / "kept.yaml").read_text(), printed)
        self.check(*command, "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertEqual(self.check(*command, "/dev/stdout")[0], printed)

    def test_a_tool_that_is_killed(self):
        made = steps.Steps(self.folder / "killed.tp", is_quiet=True)
        with (made.lock(), unittest.mock.patch.object(tools, "get_command", lambda _: ["sh", "-c", "kill -9 $$"]),
              (self.folder / "messages").open("w") as messages, contextlib.redirect_stderr(messages),
              self.assertRaises(steps.Failure) as caught):
            made.run("plan", "tp-opt", [], reads=[], writes=[], what="a plan")
        self.assertEqual(caught.exception.code, 128 + 9)
        self.assertIn("tp-opt was ended by SIGKILL", (self.folder / "messages").read_text())

    def test_a_failure_keeps_what_there_was(self):
        command = "compile", "mlp.mlir", "--plan", "plan.yaml"
        self.check(*command)
        artifact = (self.folder / "mlp.tp/model.tpx").read_bytes()
        (self.folder / "plan.yaml").write_text("mesh: {tp: 2}\nplan: {nowhere: ColwiseParallel}\n")
        out, messages = self.check(*command, code=1)
        self.assertIn("plan.yaml:2:8: error:", messages)
        self.assertEqual(out, "")
        self.assertEqual((self.folder / "mlp.tp/model.tpx").read_bytes(), artifact)
        (self.folder / "plan.yaml").write_text(models.PLAN)
        self.assertEqual(self.list_steps(self.check(*command)[1]), ["shard"])

    def test_commands_wait_for_each_other(self):
        processes = [self.start("compile", "mlp.mlir", "--plan", "plan.yaml") for _ in range(4)]
        steps = []
        for process in processes:
            out, messages = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, messages)
            self.assertEqual(out.strip(), "mlp.tp/model.tpx")
            steps += self.list_steps(messages)
        self.assertEqual(sorted(steps), ["compile", "shard"])  # by one of them

    def test_wrong_usage(self):
        (self.folder / "weights").mkdir()
        plan = "--plan", "plan.yaml"
        for arguments, expected in (
                (("run",), "usage: tp-mlir run MODEL"),
                (("run", "--ranks", 2, "mlp.mlir"), "the model comes first; found '--ranks'"),
                (("run", "nowhere.pt2", "--ranks", 2), "there is no model 'nowhere.pt2'"),
                (("run", "weights", "--ranks", 2), "'weights' is a folder: it has weights, but no program"),
                (("run", "mlp.mlir"), "a plan is needed: --plan FILE, or --ranks N to find one"),
                (("run", "mlp.mlir", *plan, "--ranks", 2), "not allowed with argument"),
                (("run", "mlp.mlir", "--ranks", "two"), "invalid int value: 'two'"),
                (("run", "mlp.mlir", *plan, "--memory-limit", "1GB"), "--memory-limit is for a plan that is found"),
                (("plan", "mlp.mlir", *plan), "this command finds a plan"),
                (("plan", "mlp.mlir", "--ranks", 2, "--option", "sequence-parallel"), "--option has no meaning for this command"),
                (("explain", "mlp.mlir", *plan, "--training", "t.yaml"), "--training has no meaning for this command"),
                (("compile", "mlp.mlir", "--ranks", 2, "--target", "cuda:sm_90"), "with --target, name it, as in --machine h100-nvlink"),
                (("train", "mlp.mlir", *plan), "--training FILE is needed"),
                (("train", "mlp.mlir", *plan, "--training", "t.yaml"), "--steps N is needed"),
                (("report", "mlp.mlir", *plan, "--input", "x=x.npy"), "unknown option '--input'"),
                (("report", "mlp.mlir", "--plan", "it's"), "quotes, braces and line breaks can't be passed to a pass"),
                (("rum", "mlp.mlir"), "no command 'rum'; commands are run, train")):
            with self.subTest(arguments):
                out, messages = self.check(*arguments, code=2)
                self.assertIn(expected, out + messages)
                self.assertNotIn("Traceback", messages)
        for arguments, expected in (
                (("plan", "mlp.mlir", "--ranks", 2, "--memory-limit", "1 parsec"), "a memory limit is a number of bytes"),
                (("plan", "mlp.mlir", "--ranks", 2, "--memory-limit", "10"), "no plan fits"),
                (("plan", "mlp.mlir", "--ranks", 2, "-o", "nowhere/plan.yaml"), "nowhere"),
                (("compile", "mlp.mlir", *plan, "--directory", "plan.yaml"), "plan.yaml"),
                (("run", "mlp.mlir", "--plan", "nowhere.yaml"), "nowhere.yaml")):
            with self.subTest(arguments):
                out, messages = self.check(*arguments, code=1)
                self.assertIn(expected, messages)
                self.assertNotIn("Traceback", messages)
        self.assertFalse((self.folder / "nowhere.tp").exists())

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_wrong_inputs(self):
        self.export("model.pt")
        np.savez(self.folder / "several.npz", np.ones(3))
        (self.folder / "empty.npy").write_bytes(b"")
        for path in ("several.npz", "empty.npy", "nowhere.npy", "plan.yaml"):
            with self.subTest(path):
                out, messages = self.check("run", "model.pt", "--ranks", 2, "--shape", "input=4x8xf32", "--input", f"input={path}", code=1)
                self.assertIn(path, messages)
                self.assertNotIn("Traceback", messages)


if __name__ == "__main__":
    unittest.main()
