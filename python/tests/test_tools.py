# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tp_mlir TOOL`: from a model of PyTorch to its result."""

import os
import subprocess
import sys
import unittest

import models
import numpy as np

try:
    import torch
except ImportError:
    torch = None


def run(*arguments, **keywords):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}
    return subprocess.run([sys.executable, "-m", "tp_mlir", *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=environment, **keywords)


class Tools(unittest.TestCase):
    def setUp(self):
        self.folder = models.Folder()
        self.addCleanup(self.folder.cleanup)

    def check(self, *arguments, code=0, **keywords):
        made = run(*arguments, cwd=self.folder.name, **keywords)
        self.assertEqual(made.returncode, code, made.stdout + made.stderr)
        return made

    def test_usage(self):
        for arguments in ((), ("--help",)):
            self.assertIn("tp-compile", self.check(*arguments).stdout)
        self.assertIn("and tools are tp-import, tp-opt", self.check("tp-compil", code=2).stderr)

    def test_tools_have_their_exit_codes(self):
        for tool in ("tp-opt", "tp-compile", "tp-run", "tp-ckpt"):
            self.assertIn("0.1.0", self.check(tool, "--version").stdout)
        self.assertIn("nowhere", self.check("tp-opt", "nowhere.mlir", code=1).stderr)
        self.check("tp-run", "--nothing", code=2)

    def test_a_program(self):
        (self.folder / "mlp.mlir").write_text(models.make_mlp())
        (self.folder / "plan.yaml").write_text(models.PLAN)
        weights, x = models.make_weights(), np.ones((4, 8), np.float32)
        np.save(self.folder / "x.npy", x)
        self.check("tp-opt", "mlp.mlir", "--tp-parallelize=plan=plan.yaml", "-o", "ranks.mlir")
        self.check("tp-compile", "ranks.mlir", "-o", "mlp.tpx", "-O1")
        try:
            from safetensors.numpy import save_file
        except ImportError:
            self.skipTest("safetensors isn't installed")
        save_file(weights, self.folder / "w.safetensors")
        self.check("tp-run", "mlp.tpx", "--weights", "w.safetensors", "--input", "x=x.npy", "--output", "y.npy")
        np.testing.assert_allclose(np.load(self.folder / "y.npy"), models.compute_mlp(weights, x), rtol=1e-5, atol=1e-5)

    @unittest.skipUnless(torch, "PyTorch isn't installed")
    def test_imports(self):
        torch.export.save(torch.export.export(torch.nn.Linear(8, 4), (torch.ones(2, 8),)), self.folder / "model.pt2")
        self.check("tp-import", "model.pt2", "-o", "model.mlir", "--weights", "w.safetensors")
        self.assertIn("nn.linear", (self.folder / "model.mlir").read_text())
        self.assertTrue((self.folder / "w.safetensors").exists())
        self.assertIn("tp-import: error: cannot load 'nowhere.pt2'", self.check("tp-import", "nowhere.pt2", code=1).stderr)
        self.assertIn("aten", self.check("tp-import", "--list-ops").stdout)


if __name__ == "__main__":
    unittest.main()
