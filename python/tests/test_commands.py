# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tp-mlir run MODEL …`: from a model to a result in one command."""

import contextlib
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import time
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


def wait_until(condition):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > 60:
            raise TimeoutError
        time.sleep(0.05)


def list_children(process):
    return [int(child) for path in pathlib.Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()]


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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
            help_text = self.check(name, "--help")[0]
            self.assertIn("--ranks N", help_text)
            self.assertEqual("--plan FILE" in help_text, name != "plan")

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
        arguments = ("--training", "train.yaml", "--data", "input=x.npy", "--data", "target=y.npy", "--steps", 3, "--log-every", 1, "--html", "run.html")
        out, _ = self.check("train", "model.pt2", "--mesh", "tp=2", *arguments)
        self.assertIn("step 3", out)
        self.assertIn('"state":"done","step":3,"steps":3,', (self.folder / "run.html").read_text())

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

    def test_a_command_that_is_killed_ends_its_tool(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                # Copying the model so often takes a while.
                (self.folder / "slow.yaml").write_text("{loss: mse, optimizer: SGD, accumulate: 1024}\n")
                process = self.start("report", "mlp.mlir", "--plan", "plan.yaml", "--training", "slow.yaml")
                record = self.folder / "mlp.tp/steps.json"
                wait_until(lambda: record.exists() and "shard" in record.read_text() and list_children(process.pid))
                (tool,) = list_children(process.pid)
                process.send_signal(number)
                process.communicate(timeout=60)
                wait_until(lambda: not is_running(tool))
                # The next command has the folder.
                self.check("report", "mlp.mlir", "--plan", "plan.yaml")

    def test_a_measured_run_on_the_page(self):
        common = "mlp.mlir", "--plan", "plan.yaml", "--machine", "cpu", "--quiet"
        self.check("run", *common, "--random", 1, "--input", "x=x.npy", "--repeat", 3, "--trace", "trace.json")
        self.check("report", *common, "--html", "page.html", "--trace", "trace.json")
        measured = re.search(r'id="measured">(.*?)</script>', (self.folder / "page.html").read_text())[1]
        self.assertEqual(json.loads(measured)["runs"], 3)
        for name, content in (("other", b"{}"), ("binary", b"\xff"), ("empty", b"")):
            (self.folder / name).write_bytes(content)
        (self.folder / "page.html").unlink()
        for trace, expected in (("other", "'other': this isn't what tp-run"), ("binary", "'binary': this isn't what tp-run"),
                                ("empty", "'empty': this isn't what tp-run"), ("nowhere", "No such file or directory: 'nowhere'")):
            _, messages = self.check("report", *common, "--html", "page.html", "--trace", trace, code=1)
            self.assertIn("tp-mlir report: error: ", messages)
            self.assertIn(expected, messages)
        self.assertFalse((self.folder / "page.html").exists())

    def test_other_plans_on_the_page(self):
        for plan, expected in ((("--plan", "plan.yaml"), ["search", "scale"]), (("--ranks", "2"), ["plan", "scale"])):
            with self.subTest(plan=plan):
                _, messages = self.check("report", "mlp.mlir", *plan, "--machine", "cpu", "--html", "page.html", "--compare")
                self.assertLessEqual(set(expected), set(re.findall("(?m)^(\\w+) ", messages)))
                page = (self.folder / "page.html").read_text()
                others, ranks = (json.loads(re.search(f'id="{name}">(.*?)</script>', page)[1]) for name in ("other-plans", "other-ranks"))
                self.assertEqual(sum(axis["size"] == 2 for axis in others["axes"]), 1)
                self.assertEqual([point["size"] for point in ranks["curves"][0]["points"]][:2], [1, 2])

    def test_a_tool_has_the_lock(self):
        made = steps.Steps(self.folder / "mlp.tp", is_quiet=True)
        with made.lock(), unittest.mock.patch.object(tools, "get_command", lambda _: ["sh", "-c", "sleep 2 >/dev/null 2>&1 &"]):
            made.run("plan", "tp-opt", [], reads=[], writes=[], what="a plan")
        begin = time.monotonic()
        with steps.Steps(self.folder / "mlp.tp", is_quiet=True).lock():
            self.assertGreater(time.monotonic() - begin, 0.5)

    def test_a_result_that_has_changed_is_made_again(self):
        command = "compile", "mlp.mlir", "--plan", "plan.yaml"
        self.check(*command)
        for name, expected in (("ranks.mlir", ["shard"]), ("report.json", ["shard"]), ("model.tpx", ["compile"])):
            with self.subTest(name):
                path = self.folder / "mlp.tp" / name
                before = path.read_bytes()
                path.write_bytes(before + b"\n")
                self.assertEqual(self.list_steps(self.check(*command)[1]), expected)
                self.assertEqual(path.read_bytes(), before)

    def test_version(self):
        out, _ = self.check("--version")
        self.assertRegex(out, r"^tp-mlir \d+\.\d+\.\d+\n$")

    def test_the_output_is_full_or_closed(self):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}
        read, closed = os.pipe()
        os.close(read)
        with open("/dev/full", "w") as full, os.fdopen(closed, "w"):
            for arguments in (("--help",), ("report", "--help"), ("report", "mlp.mlir", "--plan", "plan.yaml", "-q")):
                for stdout, code, expected in ((full, 1, r"tp-mlir.*: error: .*No space left on device\n"), (closed, -signal.SIGPIPE, "")):
                    for unbuffered in ("", "1"):
                        with self.subTest(arguments, stdout=stdout, unbuffered=unbuffered):
                            done = subprocess.run([sys.executable, "-m", "tp_mlir", *arguments], cwd=self.folder.name, text=True,
                                                  env={**environment, "PYTHONUNBUFFERED": unbuffered}, stdout=stdout, stderr=subprocess.PIPE)
                            self.assertEqual(done.returncode, code, done.stderr)
                            self.assertRegex(done.stderr, f"^{expected}$")

    def test_names_that_are_not_text(self):
        for name in ("caf\udce9.mlir", "-m.mlir"):
            with self.subTest(name):
                model, plan = self.folder / name, self.folder / name.replace("mlir", "yaml")
                model.write_text(models.make_mlp())
                plan.write_text(models.PLAN)
                process = subprocess.run(
                    [sys.executable, "-m", "tp_mlir", "compile", f"./{name}", "--plan", f"./{plan.name}"], cwd=self.folder.name,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}, capture_output=True)
                self.assertEqual(process.returncode, 0, process.stderr)
                self.assertTrue(os.path.exists(os.path.join(os.fsencode(self.folder.name), process.stdout.strip())))
                # A tool's message has the name as it is.
                plan.write_text("mesh: {tp: 2}\nplan: {nowhere: ColwiseParallel}\n")
                process = subprocess.run(
                    [sys.executable, "-m", "tp_mlir", "compile", f"./{name}", "--plan", f"./{plan.name}"], cwd=self.folder.name,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}, capture_output=True)
                self.assertEqual(process.returncode, 1, process.stderr)
                self.assertIn(os.fsencode(plan.name) + b":2:8: error:", process.stderr)

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_a_wrong_shape_is_not_remembered(self):
        self.export("model.pt")
        _, messages = self.check("report", "model.pt", "--ranks", 2, code=1)
        self.assertIn("add --shape input=", messages)
        self.check("report", "model.pt", "--ranks", 2, "--shape", "input=4x9xf32", code=1)
        self.assertIn("no shape is given", self.check("report", "model.pt", "--ranks", 2, code=1)[1])
        self.check("report", "model.pt", "--ranks", 2, "--shape", "input=4x8xf32")
        self.check("report", "model.pt", "--ranks", 2, "--shape", "input=4x9xf32", code=1)
        self.check("report", "model.pt", "--ranks", 2)

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_where_a_remembered_shape_comes_from(self):
        batch = torch.export.Dim("batch", min=2, max=64)
        torch.export.save(torch.export.export(torch.nn.Linear(8, 4), (torch.ones(4, 8),), dynamic_shapes=({0: batch},)), self.folder / "d.pt2")
        np.save(self.folder / "x.npy", np.ones((8, 8), np.float32))
        self.check("report", "d.pt2", "--ranks", 2, "--shape", "input=16x8xf32")
        _, messages = self.check("run", "d.pt2", "--ranks", 2, "--input", "input=x.npy", code=1)
        self.assertIn("note: the shape input=16x8xf32 is that of an earlier command; --shape input=8x8xf32 is that of the file", messages)
        self.check("run", "d.pt2", "--ranks", 2, "--input", "input=x.npy", "--shape", "input=8x8xf32")

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_an_input_without_a_name(self):
        self.export("model.pt")
        out, _ = self.check("run", "model.pt", "--ranks", 2, "--input", "x.npy", "--expect", "y.npy", "--atol", "1e-5")
        self.assertIn("matches 'y.npy'", out)

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_a_model_without_weights(self):
        self.export()
        torch.manual_seed(0)
        with torch.device("meta"):
            model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        torch.export.save(torch.export.export(model, (torch.ones(4, 8, device="meta"),)), self.folder / "meta.pt2")
        for arguments in (("plan",), ("report", "--html", "report.html"), ("explain",), ("compile",)):
            with self.subTest(arguments):
                self.check(arguments[0], "meta.pt2", "--ranks", 2, *arguments[1:])
        expected = "the weights of 'meta.pt2' have no values, because the model was built on the meta device; give them with --weights"
        _, messages = self.check("run", "meta.pt2", "--ranks", 2, "--input", "input=x.npy", code=2)
        self.assertIn(expected, messages)
        self.check("report", "model.pt2", "--ranks", 2)
        out, _ = self.check("run", "meta.pt2", "--ranks", 2, "--input", "input=x.npy", "--expect", "y.npy", "--atol", "1e-5", "--weights",
                            "model.tp/model.safetensors")
        self.assertIn("matches 'y.npy'", out)

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
        (self.folder / "-m.mlir").write_text(models.make_mlp())
        (self.folder / "ranks.mlir").write_text(models.make_mlp())
        plan = "--plan", "plan.yaml"
        for arguments, expected in (
                (("run",), "usage: tp-mlir run MODEL"),
                (("run", "--ranks", 2, "mlp.mlir"), "the model comes first; found '--ranks'"),
                (("run", "nowhere.pt2", "--ranks", 2), "there is no model 'nowhere.pt2'"),
                (("run", "weights", "--ranks", 2), "'weights' is a folder: it has weights, but no program"),
                (("run", "mlp.mlir"), "a plan is needed: --plan FILE, or --ranks N to find one"),
                (("run", "mlp.mlir", *plan, "--ranks", 2), "not allowed with argument"),
                (("run", "mlp.mlir", "--ranks", "two"), "a number from 1 to 4096 is expected; found 'two'"),
                (("run", "mlp.mlir", "--ranks", 0), "a number from 1 to 4096 is expected; found '0'"),
                (("run", "mlp.mlir", "--ranks", 10**20), "a number from 1 to 4096 is expected"),
                (("run", "-o"), "the model comes first; found '-o'"),
                (("run", "-m.mlir", "--ranks", 2), "A file of this name is './-m.mlir'"),
                (("report", "mlp.mlir", *plan, "--option", "plan=other.yaml"), "can't set 'plan': --plan gives it"),
                (("report", "mlp.mlir", *plan, "--option", "report=r.json"), "can't set 'report': the command report prints it"),
                (("report", "mlp.mlir", *plan, "--option", "html=r.html"), "can't set 'html': the option --html"),
                (("report", "mlp.mlir", *plan, "--option", "explanation=e.json"), "can't set 'explanation': the option --html"),
                (("report", "mlp.mlir", *plan, "--option", "train=t.yaml"), "can't set 'train': --training gives it"),
                (("report", "mlp.mlir", *plan, "--option", "machine=cpu"), "can't set 'machine': --machine gives it"),
                (("report", "mlp.mlir", *plan, "--option", "strict report=r.json"), "found 'strict report=r.json'"),
                (("report", "mlp.mlir", *plan, "--html", "mlp.mlir"), "--html 'mlp.mlir' is an input of this command"),
                (("report", "mlp.mlir", *plan, "--html", "./plan.yaml"), "--html 'plan.yaml' is an input of this command"),
                (("report", "mlp.mlir", *plan, "--html", "x.npy", "--trace", "x.npy"), "--html 'x.npy' is an input of this command"),
                (("report", "mlp.mlir", *plan, "--trace", "x.npy"), "--trace is shown on the page, which --html FILE writes"),
                (("report", "mlp.mlir", *plan, "--html", "x.html", "--compare"), "--html FILE and --machine NAME are needed"),
                (("report", "mlp.mlir", *plan, "--html", "x.html", "--machine", "cpu", "--compare", "--option", "overlap"), "leave --option out"),
                (("report", "mlp.mlir", *plan, "--option", "scaling=s.json"), "can't set 'scaling': the option --compare of the command"),
                (("report", "mlp.mlir", *plan, "--option", "trace=t.json"), "can't set 'trace': the option --trace of the command report"),
                (("plan", "mlp.mlir", "--ranks", 2, "-o", "mlp.mlir"), "--output 'mlp.mlir' is an input of this command"),
                (("plan", "mlp.mlir", "--ranks", 2, "--weights", "x.npy", "-o", "x.npy"), "--output 'x.npy' is an input of this command"),
                (("run", "mlp.mlir", *plan, "--memory-limit", "1GB"), "--memory-limit is for a plan that is found"),
                (("plan", "mlp.mlir", *plan), "--plan has no meaning for this command"),
                (("plan", "mlp.mlir"), "one of the arguments --ranks --mesh is required"),
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
                (("compile", "mlp.mlir", *plan, "--directory", "plan.yaml"),
                 "'plan.yaml', where the files of all steps stay, isn't a folder"),
                (("compile", "ranks.mlir", *plan, "--directory", "."), "'ranks.mlir' is a file that the step shard reads, and the one that it"),
                (("run", "mlp.mlir", "--plan", "nowhere.yaml"), "nowhere.yaml")):
            with self.subTest(arguments):
                out, messages = self.check(*arguments, code=1)
                self.assertIn(expected, messages)
                self.assertNotIn("Traceback", messages)
        self.assertFalse((self.folder / "nowhere.tp").exists())
        self.assertEqual((self.folder / "mlp.mlir").read_text(), models.make_mlp())
        _, messages = self.check("plan", "mlp.mlir", "--ranks", 2, "-o", "nowhere/plan.yaml", code=1)
        self.assertTrue(messages.endswith("No such file or directory: 'nowhere/plan.yaml'\n"), messages)

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_wrong_inputs(self):
        self.export("model.pt")
        np.savez(self.folder / "several.npz", np.ones(3))
        (self.folder / "empty.npy").write_bytes(b"")
        (self.folder / "cut.npz").write_bytes((self.folder / "several.npz").read_bytes()[:40])
        for path in ("several.npz", "cut.npz", "empty.npy", "nowhere.npy", "plan.yaml"):
            with self.subTest(path):
                out, messages = self.check("run", "model.pt", "--ranks", 2, "--shape", "input=4x8xf32", "--input", f"input={path}", code=1)
                self.assertIn(path, messages)
                self.assertNotIn("Traceback", messages)


if __name__ == "__main__":
    unittest.main()
