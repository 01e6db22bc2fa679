# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of PyTorch in the extension module: imports, weights, errors, results equal to PyTorch's."""

import gc
import io
import os
import subprocess
import sys
import unittest
import unittest.mock
from concurrent.futures import ThreadPoolExecutor

import models
import torch
from resources import check_growth
from torch import nn
from tp_mlir import InputError, _native
from tp_mlir._native import Session


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 64)
        self.down = nn.Linear(64, 16)
        self.register_buffer("scale", torch.arange(16).float()[::2].repeat_interleave(2))

    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x)))) * self.scale


PLAN = "mesh: {tp: 2}\nplan: {up: ColwiseParallel, down: RowwiseParallel}\n"
FOLDER = models.Folder()
unittest.addModuleCleanup(FOLDER.cleanup)


def export(model, *inputs):
    """The bytes of the exported program."""
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, inputs), file)
    return file.getvalue()


class Import(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Block().eval()
        self.x = torch.randn(8, 16)
        self.archive = export(self.model, self.x)

    def test_a_file_and_its_bytes_are_the_same(self):
        path = FOLDER / "block.pt2"
        path.write_bytes(self.archive)
        of_file, of_bytes = _native.import_program(path), _native.import_program(self.archive, name="block.pt2")
        self.assertEqual(of_file.text(), of_bytes.text())
        self.assertEqual(of_bytes.notes, "")
        self.assertEqual(of_file.weights.keys(), of_bytes.weights.keys())

    def test_weights_are_the_models(self):
        program = _native.import_program(self.archive)
        state = self.model.state_dict()
        self.assertEqual(set(program.weights), set(state))
        for name, array in program.weights.items():
            self.assertTrue(torch.equal(torch.from_dlpack(array), state[name]), name)
        self.assertEqual(_native.import_program(self.archive, weights=False).weights, {})
        names = sorted(state)
        program = _native.import_program(self.archive, without=names[1:])
        self.assertEqual((set(program.weights), sorted(program.weight_names)), ({names[0]}, names))

    def test_weights_outlive_their_program(self):
        program = _native.import_program(self.archive)
        copy = program.parallelize({"plan": "plan"}, files={"plan": PLAN})
        weight = torch.from_dlpack(program.weights["up.weight"])
        self.assertEqual(torch.from_dlpack(copy.weights["up.weight"]).data_ptr(), weight.data_ptr())
        del program, copy
        gc.collect()
        self.assertTrue(torch.equal(weight, self.model.up.weight))

    def test_the_result_is_pytorchs(self):
        program = _native.import_program(self.archive)
        ranks = program.parallelize({"plan": "plan"}, files={"plan": PLAN})
        artifact = models.make_artifact(FOLDER, ranks, "block.tpx")
        # The model's own tensors, which require gradients.
        weights = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        for given in (program.weights, weights):
            (output,) = Session(artifact, given).run_flat([self.x])
            torch.testing.assert_close(torch.from_dlpack(output), self.model(self.x).detach(), rtol=1e-5, atol=1e-5)

    def test_a_bf16_model(self):
        model, x = self.model.to(torch.bfloat16), self.x.to(torch.bfloat16)
        program = _native.import_program(export(model, x))
        self.assertEqual(program.weights["up.weight"].dtype, "bf16")
        artifact = models.make_artifact(FOLDER, program.parallelize({"plan": "plan"}, files={"plan": PLAN}), "bf16.tpx")
        (output,) = Session(artifact, program.weights).run_flat([x])
        self.assertEqual(output.dtype, "bf16")
        torch.testing.assert_close(torch.from_dlpack(output), model(x).detach(), rtol=5e-2, atol=5e-2)

    def test_wrong_tensors_of_pytorch(self):
        program = _native.import_program(self.archive)
        artifact = models.make_artifact(FOLDER, program.parallelize({"plan": "plan"}, files={"plan": PLAN}), "wrong.tpx")
        session = Session(artifact, program.weights)
        for x, text in ((self.x.to("meta"), "'x' can't be read: "), (self.x.to_sparse(), "'x' can't be read: "),
                        (self.x.to(torch.complex64), "element type")):
            with self.subTest(text), self.assertRaisesRegex(InputError, text):
                session.run({"x": x})

    def test_dynamic_sizes(self):
        file = io.BytesIO()
        batch = torch.export.Dim("batch", max=64)
        torch.export.save(torch.export.export(self.model, (self.x,), dynamic_shapes={"x": {0: batch}}), file)
        program = _native.import_program(file.getvalue(), inputs=["x=24x16xf32"])
        self.assertIn("tensor<24x16xf32>", program.text())
        with self.assertRaisesRegex(InputError, "x=24x17xf32|17"):
            _native.import_program(file.getvalue(), inputs=["x=24x17xf32"])
        with self.assertRaisesRegex(InputError, "x=24y"):
            _native.import_program(file.getvalue(), inputs=["x=24y"])

    def test_a_torchscript_model(self):
        path = FOLDER / "block.pt"
        torch.jit.save(torch.jit.trace(self.model, self.x), path)
        self.assertIn("nn.linear", _native.import_program(path, inputs=["x=8x16xf32"]).text())


class Errors(unittest.TestCase):
    def test_files_that_are_no_models(self):
        (FOLDER / "text.pt2").write_text("text")
        for source, text in ((FOLDER / "nowhere.pt2", "'.*nowhere.pt2'.*No such file"), (FOLDER / "text.pt2", "not a zip file"),
                             (b"", "'<bytes>': the file is empty"), (b"PK\x03\x04truncated", "'<bytes>'.*truncated or damaged"),
                             (FOLDER.name, "directory")):
            with self.subTest(source=source), self.assertRaisesRegex(InputError, text):
                _native.import_program(source)
        with self.assertRaisesRegex(InputError, "'the model': the file is empty"):
            _native.import_program(b"", name="the model")
        with self.assertRaisesRegex(InputError, "nowhere.json"):
            _native.import_program(b"", signature=FOLDER / "nowhere.json")
        with self.assertRaises(TypeError):
            _native.import_program(7)

    def test_ops_that_are_not_supported(self):
        class Model(nn.Module):
            def forward(self, x):
                return torch.linalg.svdvals(x) + torch.linalg.eigvalsh(x @ x.T).sum()

        with self.assertRaises(InputError) as caught:
            _native.import_program(export(Model(), torch.randn(4, 4)), name="svd.pt2")
        self.assertIn("cannot import 'svd.pt2'", str(caught.exception))
        self.assertIn("svd", str(caught.exception).replace("'svd.pt2'", ""))

    def test_without_pytorch(self):
        code = ("import sys; sys.modules['torch'] = None\nfrom tp_mlir import Error, _native\n"
                "try:\n    _native.import_program(b'')\nexcept Error as error:\n    print(error)")
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("importing a model needs PyTorch; this package is for PyTorch 2.", run.stdout)

    def test_another_version_of_pytorch(self):
        with unittest.mock.patch.object(torch, "__version__", "2.7.1+cpu"):
            with self.assertRaisesRegex(_native.Error, r"PyTorch 2.7.1\+cpu can't be used to import a model; this package is for"):
                _native.import_program(b"")


class Memory(unittest.TestCase):
    def test_imports_leave_nothing(self):
        archive = export(Block().eval(), torch.randn(8, 16))

        def work():
            for _ in range(20):
                _native.import_program(archive)
                try:
                    _native.import_program(archive[:-100])
                except InputError:
                    pass

        check_growth(self, work, 16 << 20, repeat=2)

    def test_threads_import_at_the_same_time(self):
        archive = export(Block().eval(), torch.randn(8, 16))
        with ThreadPoolExecutor(3) as pool:
            texts = list(pool.map(lambda _: _native.import_program(archive).text(), range(9)))
        self.assertEqual(len(set(texts)), 1)


if __name__ == "__main__":
    unittest.main()
