# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of parallelized modules, against PyTorch, and what is said when they can't work."""

import copy
import dataclasses
import json
import math
import pathlib
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import torch
from networks import MESH, MLP, PLAN, Nested, Normalized, make, parallelize
from torch import nn

import tp_mlir as tp

ROOT = pathlib.Path(__file__).resolve().parents[2]
X = torch.linspace(-1, 1, 32).view(4, 8)


def compare(test, found, expected, tolerance=1e-5):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


class Calls(unittest.TestCase):
    def test_the_module_is_changed_and_returned(self):
        module = make(MLP)
        names, tensors = list(module.state_dict()), list(module.parameters())
        self.assertIs(parallelize(module), module)
        self.assertIsInstance(module, tp.ParallelModule)
        self.assertIsInstance(module, MLP)
        self.assertEqual(list(module.state_dict()), names)
        self.assertTrue(all(map(lambda a, b: a is b, module.parameters(), tensors)))

    def test_ways_to_pass_arguments(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        with torch.no_grad():
            compare(self, module(X), expected(X))
            compare(self, module(x=X), expected(X))
            compare(self, module(X, scale=2.0), expected(X, scale=2.0))
            compare(self, module(X[:3]), expected(X[:3]))
            compare(self, module(X.t().contiguous().t()), expected(X))
            self.assertEqual(len(module.reports), 3)
            with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'size'"):
                module(X, size=3)

    def test_trees(self):
        module, expected = parallelize(make(Nested)), make(Nested)
        with torch.no_grad():
            for args in (({"x": X},), ({"x": X, "z": 2 * X}, 2, ("x", "z"))):
                found, wanted = module(*args), expected(*args)
                compare(self, found["y"], wanted["y"])
                compare(self, found["parts"][0], wanted["parts"][0])
                compare(self, found["parts"][1][0], wanted["parts"][1][0])
                self.assertIsNone(found["parts"][1][1])
                self.assertEqual(found["power"], wanted["power"])

    def test_results_live_on(self):
        module = parallelize(make(MLP))
        with torch.no_grad():
            first = module(X)
            kept = first.clone()
            module(X + 1)
            compare(self, first, kept, 0)

    def test_types(self):
        for dtype in (torch.float64, torch.bfloat16, torch.float16):
            module, expected = parallelize(make(MLP).to(dtype)), make(MLP).to(dtype)
            with torch.no_grad():
                compare(self, module(X.to(dtype)), expected(X.to(dtype)), 1e-5 if dtype == torch.float64 else 2e-2)

    def test_several_examples(self):
        module = parallelize(make(MLP), example_inputs=[X, X[:2]])
        with torch.no_grad():
            for x in (X, X[:2]):
                compare(self, module(x), make(MLP)(x))
            with self.assertRaisesRegex(tp.InputError, r"no program for the inputs \(float32\[3, 8\]\); its example_inputs were "
                                                       r"\(float32\[4, 8\]\) or \(float32\[2, 8\]\)"):
                module(X[:3])
            with self.assertRaisesRegex(tp.InputError, r"\(float64\[4, 8\]\)"):
                module(X.double())
            module.train(False)
            with self.assertRaisesRegex(tp.InputError, "other modes"):
                module(X)

    def test_weights_that_change(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        with torch.no_grad():
            module(X)
            for model in (module, expected):
                model.up.weight.mul_(2)  # in place
                model.down.bias = nn.Parameter(torch.ones(8))  # another tensor
                model.down.weight.data = model.down.weight.data + 1  # other memory
            compare(self, module(X), expected(X))
            state = {name: value + 1 for name, value in expected.state_dict().items()}
            module.load_state_dict(state), expected.load_state_dict(state)
            compare(self, module(X), expected(X))
            module.down.weight.data.zero_()
            module.refresh()
            compare(self, module(X), module.down.bias.expand(4, 8))

    def test_modules_that_change(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        with torch.no_grad():
            module(X)
            for model in (module, expected):
                torch.manual_seed(1)
                model.down = nn.Linear(16, 8)
            compare(self, module(X), expected(X))

    def test_buffers_and_modes(self):
        module, expected = parallelize(make(Normalized)), make(Normalized)
        with torch.no_grad():
            for x in (X, X[:3], X):
                compare(self, module(x), expected(x))
            for name, buffer in expected.named_buffers():
                compare(self, module.get_buffer(name), buffer)
            module.eval(), expected.eval()
            compare(self, module(X), expected(X))
            self.assertEqual(module.calls, 4)

    def test_copies(self):
        module = parallelize(make(MLP), example_inputs=X)
        other = copy.deepcopy(module)
        with torch.no_grad():
            other.up.weight.zero_()
            compare(self, module(X), make(MLP)(X))
            compare(self, other(X), other.down(torch.relu(other.up.bias)).expand(4, 8))
        with self.assertRaisesRegex(TypeError, "can't be pickled; save its state_dict"):
            torch.save(module, "/dev/null")

    def test_copies_by_the_modules_own_code(self):
        """Which makes another module of its type, or chooses what a copy has."""
        sequence = tp.parallelize_module(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), MESH, {"0": tp.ColwiseParallel()})
        part = sequence[:2]
        self.assertIs(type(part), nn.Sequential)
        torch.testing.assert_close(part(X), torch.relu(sequence[0](X)))

        class Loading(MLP):
            def __deepcopy__(self, memo):
                other = type(self)()
                other.load_state_dict(self.state_dict())
                return other

        class Locked(MLP):
            def __init__(self):
                super().__init__()
                self.mutex = threading.Lock()

            def __getstate__(self):
                return {key: value for key, value in self.__dict__.items() if key != "mutex"}

        class Without(Locked):
            def __getstate__(self):
                return {key: value for key, value in super().__getstate__().items() if not key.startswith("_tp")}

        for kind in (Loading, Locked):
            module = parallelize(make(kind))
            with torch.no_grad():
                compare(self, copy.deepcopy(module)(X), module(X))
        with self.assertRaisesRegex(tp.Error, "a copy without programs.*parallelize the copy"):
            copy.deepcopy(parallelize(make(Without)))(X)

    def test_numbers(self):
        """Which are a part of the program, by their bits."""
        class Dividing(MLP):
            def forward(self, x, number):
                return super().forward(x).detach() * 0 + 1 / torch.full((4, 8), number)

        module, expected = parallelize(make(Dividing)), make(Dividing)
        for number in (0.0, -0.0, 2.0, math.nan, math.nan):
            torch.testing.assert_close(module(X, number), expected(X, number), equal_nan=True)
        self.assertEqual(len(vars(module)["_tp_mlir"].executables), 4)  # NaN has one, too

    def test_threads(self):
        module, expected, failures = parallelize(make(MLP)), make(MLP), []

        def run(size):
            try:
                with torch.no_grad():
                    for _ in range(20):
                        compare(self, module(X[:size]), expected(X[:size]))
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=[size]) for size in (1, 2, 2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(failures, [])

    def test_own_members_stay(self):
        class Saved(MLP):
            def save(self):
                return "own"

        with self.assertWarnsRegex(UserWarning, "Saved has members named save of its own"):
            module = parallelize(make(Saved), example_inputs=X)
        self.assertEqual(module.save(), "own")
        self.assertEqual(len(module.report.collectives), 1)


class Models(unittest.TestCase):
    def test_minilm(self):
        from transformers import BertConfig, BertModel
        sys.path.insert(0, str(ROOT / "examples"))
        from minilm.model import SentenceEncoder
        torch.manual_seed(0)
        model = SentenceEncoder(BertModel(BertConfig(
            vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            max_position_embeddings=64), add_pooling_layer=False)).eval()
        ids, mask = torch.randint(0, 100, (2, 16)), torch.ones(2, 16, dtype=torch.int64)
        mask[1, 9:] = 0
        with torch.no_grad():
            expected = model(ids, mask)
            tp.parallelize_module(model, MESH, {
                "bert.encoder.layer.*.attention.self.query": tp.ColwiseParallel(),
                "bert.encoder.layer.*.attention.self.key": tp.ColwiseParallel(),
                "bert.encoder.layer.*.attention.self.value": tp.ColwiseParallel(),
                "bert.encoder.layer.*.attention.output.dense": tp.RowwiseParallel(),
                "bert.encoder.layer.*.intermediate.dense": tp.ColwiseParallel(),
                "bert.encoder.layer.*.output.dense": tp.RowwiseParallel(),
            })
            compare(self, model(ids, mask=mask), expected)
        self.assertEqual(model.report.count(), {"all_reduce": 4})

    def test_llama_with_its_own_plan(self):
        from transformers import LlamaConfig, LlamaForCausalLM
        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                             num_attention_heads=4, num_key_value_heads=2)).eval()
        ids = torch.randint(0, 48, (2, 8))
        with torch.no_grad():
            expected = model(input_ids=ids)
            tp.parallelize_module(model, MESH, "auto")
            found = model(input_ids=ids, use_cache=False)
            self.assertEqual(type(found), type(expected))
            compare(self, found.logits, expected.logits)
            self.assertEqual(model.report.count(), {"all_reduce": 5, "all_gather": 1})
            with self.assertRaisesRegex(tp.UnsupportedError, "the argument past_key_values is a DynamicCache.*use_cache=False"):
                model(input_ids=ids, past_key_values=expected.past_key_values)
            with self.assertRaisesRegex(tp.UnsupportedError, "the argument past_key_values is a DynamicCache.*use_cache=False"):
                model.generate(ids, max_new_tokens=2)
            self.assertEqual(model.generate(ids, max_new_tokens=2, use_cache=False).shape, (2, 10))
            cached = model(input_ids=ids)
            compare(self, cached.past_key_values.layers[1].keys, expected.past_key_values.layers[1].keys)

    def test_gpt2(self):
        from transformers import GPT2Config, GPT2LMHeadModel
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(vocab_size=48, n_positions=16, n_embd=32, n_layer=1, n_head=4)).eval()
        ids = torch.randint(0, 48, (2, 8))
        with torch.no_grad():
            expected = model(ids, use_cache=False).logits
            tp.parallelize_module(model, MESH, {"transformer.wte": tp.RowwiseParallel(input_layouts=tp.Replicate())})
            compare(self, model(ids, use_cache=False).logits, expected)

    def test_auto_needs_a_plan_of_the_model(self):
        with self.assertRaisesRegex(tp.PlanError, "test_module.py:.*tp_plan of a model of transformers, and MLP has none"):
            tp.parallelize_module(make(MLP), MESH, "auto")


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.module = parallelize(make(MLP), example_inputs=X, options={"machine": "cpu"})

    def test_report(self):
        report = self.module.report
        self.assertEqual(report.mesh, {"tp": 2})
        (collective,) = report.collectives
        self.assertEqual((collective.kind, collective.fqn, collective.shape, collective.bytes_per_rank), ("all_reduce", "down", (4, 8), 128))
        self.assertRegex(collective.reason, r"networks.py:\d+:\d+: RowwiseParallel output_layouts Replicate$")
        self.assertEqual({parameter.name: parameter.local_shape for parameter in report.parameters}["up.weight"], (8, 8))
        self.assertGreater(report.prediction.seconds, 0)
        self.assertEqual([rank.get_bytes(0) for rank in report.ranks], [128, 128])
        self.assertEqual(report.ranks[1].prediction["memory"]["total"], report.prediction.bytes_per_rank)
        self.assertEqual(report.ranks[-1].get_local_shape(report.json["inputs"][0]), report.inputs[0].local_shape)
        self.assertIn("all_reduce", str(report))
        self.assertIn("<td>down</td>", report._repr_html_())
        json.dumps(report.json)
        with self.assertRaisesRegex(ValueError, "found 'ranks'"):
            report.to_pandas("ranks")

    def test_page(self):
        def read(page, name):
            return json.loads(page.split(f' id="{name}">', 1)[1].split("</script>", 1)[0])

        report, explanation = self.module.report, self.module.explain()
        self.assertEqual(read(report.html(), "report"), report.json)
        self.assertIsNone(read(report.html(), "explanation"))
        self.assertEqual(read(report.html(explanation), "explanation")["redistributions"], explanation.json["redistributions"])
        other = dataclasses.replace(explanation, json={**explanation.json, "mesh": {"axes": [{"name": "tp", "size": 4}]}})
        with self.assertRaisesRegex(tp.InputError, "it explains the mesh tp=4, the report is of tp=2"):
            report.html(other)
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("webbrowser.open") as browser:
            for name, content, expected in (("trace", b"\xff", "what tp-run writes with --trace: it isn't text"),
                                            ("alternatives", b"", "what tp-auto-plan writes with 'report': it is empty"),
                                            ("scaling", b"{}", "this isn't what tp-scale-plan writes with 'report'")):
                path = pathlib.Path(folder, name)
                path.write_bytes(content)
                with self.assertRaisesRegex(tp.InputError, expected):
                    report.html(**{name: path})
            path = report.show(pathlib.Path(folder, "a report.html"))
            self.assertEqual(path.read_text(encoding="utf-8"), report.html())
            browser.assert_called_once_with(path.as_uri())
            path = report.show()
            self.addCleanup(path.unlink)
            self.assertEqual(path.read_text(encoding="utf-8"), report.html())

    def test_pandas(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaises(ImportError):
                self.module.report.to_pandas()
        else:
            self.assertEqual(list(self.module.report.to_pandas()["kind"]), ["all_reduce"])

    def test_explain(self):
        explanation = self.module.explain("down")
        self.assertRegex(str(explanation), r"all_reduce over \{tp\}")
        self.assertRegex(str(explanation), r"networks.py:\d+:\d+: RowwiseParallel")
        self.assertNotIn("parallelize_module:", str(explanation))
        self.assertEqual(explanation.json["totals"]["collectives"], 1)
        with self.assertRaises(tp.CompileError):
            self.module.explain("none")

    def test_prove(self):
        self.assertRegex(str(self.module.prove()), "'main' is proven for 2 ranks")

    def test_save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.tpx")
            module = parallelize(make(Nested), example_inputs=[({"x": X}, 2)])
            with torch.no_grad():
                module.up.bias.fill_(0.5)
                expected = module({"x": X}, 2)
            module.save(path)
            self.assertEqual(sorted(file.name for file in path.parent.iterdir()), ["model.safetensors", "model.tpx"])
            with self.assertRaisesRegex(FileNotFoundError, "'/nowhere/model.tpx'$"):
                module.save("/nowhere/model.tpx")
            loaded = tp.load(path)
            found = loaded({"x": X}, 2)
            compare(self, found["y"], expected["y"], 0)
            self.assertEqual(found["power"], 2)
            self.assertEqual(loaded.report.count(), {"all_reduce": 1})
            state = loaded.state_dict()
            self.assertEqual(set(state), set(module.state_dict()))
            loaded.load_state_dict({name: torch.zeros_like(value) for name, value in state.items()})
            compare(self, loaded({"x": X}, 2)["y"], torch.zeros(4, 8), 0)
            with self.assertRaisesRegex(tp.InputError, r"no program for the arguments \(.*float32\[2, 8\].*\); the programs are for \(.*"
                                        r"float32\[4, 8\].*2\)$"):
                loaded({"x": X[:2]}, 2)
            for arguments in ((), ({"x": X}, 2, 3), ({"x": X}, [{1}])):
                with self.assertRaisesRegex(tp.InputError, "no program for"):
                    loaded(*arguments)
            with self.assertRaisesRegex(tp.UnsupportedError, "has no gradients"):
                loaded({"x": X.clone().requires_grad_()}, 2)
            for wrong in ({}, {"other": X}, {**state, "other": X}):
                with self.assertRaises(tp.InputError):
                    loaded.load_state_dict(wrong)
            loaded.load_state_dict({"other": X, "up.bias": state["up.bias"]}, strict=False)
            compare(self, loaded.state_dict()["up.bias"], state["up.bias"], 0)
            path.with_suffix(".safetensors").unlink()
            with self.assertRaisesRegex(tp.InputError, "has no weights beside it"):
                tp.load(path)
            with self.assertRaises(tp.InputError):
                tp.load(pathlib.Path(folder, "none.tpx"))

    def test_arguments_of_loaded_programs_have_names(self):
        class Scaled(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up = torch.nn.Linear(8, 8)

            def forward(self, y, x, power=1):
                return self.up(x) * y ** power

        module = Scaled()
        x, y = torch.rand(4, 8), torch.rand(4, 8)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = pathlib.Path(folder, "model.tpx")
            expected = module(y, x, 2)
            tp.parallelize_module(module, MESH, {"up": tp.ColwiseParallel(output_layouts=tp.Replicate())},
                                  example_inputs=(y, x, 2))
            module.save(path)
            loaded = tp.load(path)
            for found in (loaded(y, x, 2), loaded(y, x, power=2), loaded(x=x, power=2, y=y)):
                compare(self, found, expected)
            with self.assertRaisesRegex(tp.InputError, "unexpected keyword argument 'z'"):
                loaded(y, x, z=2)

    def test_artifacts_of_the_tools(self):
        import safetensors.torch
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.tpx")
            module = parallelize(make(Nested), example_inputs=[({"x": X}, 2)])
            module.save(path)
            safetensors.torch.save_file(module.state_dict(), path.with_suffix(".safetensors"))
            with self.assertRaisesRegex(tp.InputError, "wasn't written by ParallelModule.save, but by tp-compile or tp-mlir"):
                tp.load(path)

    def test_wrong_arguments_of_methods(self):
        module = parallelize(make(Nested), example_inputs=[({"x": X}, 2)])
        with self.assertRaisesRegex(tp.InputError, "value is the name of a module.*found 3"):
            module.explain(3)
        with self.assertRaisesRegex(tp.InputError, "explanation is an Explanation.*found 'x'"):
            module.report.html(explanation="x")
        for size in (10**9, 10**30, 2.0, "2", True, 0):
            with self.assertRaisesRegex(tp.MeshError, "ranks; found|sizes of at least 1, which are ints; found"):
                tp.init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
        with self.assertRaisesRegex(tp.MeshError, "at most 65536 ranks"):
            tp.parallelize_module(torch.nn.Linear(2, 2), {"dp": 2**16, "tp": 2}, {"": tp.ColwiseParallel()})
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for accumulate in (0, "2", None, 1.5, True):
            with self.assertRaisesRegex(tp.InputError, "accumulate is the number of parts of a batch"):
                tp.train_step(module, loss="mse", optimizer=optimizer, accumulate=accumulate)
        with self.assertRaisesRegex(tp.InputError, "clip_grad_norm is a number above 0; found 'x'"):
            tp.train_step(module, loss="mse", optimizer=optimizer, clip_grad_norm="x")
        for checkpoint in ("up", 3, [3]):
            with self.assertRaisesRegex(tp.InputError, "checkpoint is a list of patterns"):
                tp.train_step(module, loss="mse", optimizer=optimizer, checkpoint=checkpoint)

    def test_nothing_to_report_yet(self):
        with self.assertRaisesRegex(tp.Error, "no program yet"):
            parallelize(make(MLP)).report


class BadInput(unittest.TestCase):
    def check(self, error, message, call, *args, **kwargs):
        with self.assertRaisesRegex(error, message) as caught:
            call(*args, **kwargs)
        return caught.exception

    def test_layouts_that_do_not_fit(self):
        error = self.check(tp.PlanError, r"test_module.py:\d+:\d+: .*Shard\(3\) is out of range for output 0 of 'up'",
                           lambda: tp.parallelize_module(make(MLP), MESH, {"up": tp.ColwiseParallel(output_layouts=tp.Shard(3))},
                                                         example_inputs=X))
        self.assertEqual((error.entry, error.place.file.rsplit("/", 1)[-1]), ("up", "test_module.py"))
        self.assertTrue(error.diagnostics)

    def test_entries_that_contradict(self):
        module = parallelize(make(MLP))
        self.check(tp.PlanError, r"test_module.py:", lambda: tp.parallelize_module(
            module, MESH, {"up": tp.RowwiseParallel()}, example_inputs=X))
        with torch.no_grad():
            compare(self, module(X), make(MLP)(X))  # the plan that failed is gone

    def test_unknown_option(self):
        self.check(tp.InputError, "no option 'sequences'", parallelize, make(MLP), example_inputs=X, options={"sequences": True})

    def test_warnings_of_lint(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tp.parallelize_module(make(MLP), MESH, {"up": tp.ColwiseParallel(output_layouts=tp.Replicate()), "down": tp.RowwiseParallel()},
                                  example_inputs=X)
        found = [warning for warning in caught if "is declared Shard(1), but comes as Replicate" in str(warning.message)]
        self.assertEqual([pathlib.Path(warning.filename).name for warning in found], ["test_module.py"])

    def test_devices(self):
        self.check(tp.InputError, "parameter 'up.weight' of MLP has no values, because it is on the device 'meta'",
                   parallelize(make(MLP).to("meta")), X)
        self.check(tp.InputError, r"input .* has no values", parallelize(make(MLP)), X.to("meta"))

    def test_modules_without_values(self):
        class Rotary(MLP):
            def __init__(self):
                super().__init__()
                self.register_buffer("frequencies", torch.linspace(0, 1, 8), persistent=False)

            def forward(self, x):
                return super().forward(x * self.frequencies.cos())

        for kind in MLP, Rotary:
            for x in X, X.to("meta"):
                reference = make(kind)
                with torch.device("meta"):
                    module = kind().eval()
                parallelize(module, example_inputs=x)
                self.assertEqual(module.report.count(), {"all_reduce": 1})
                module.prove()
                self.assertIn("all_reduce over {tp}", str(module.explain("down")))
                with self.assertRaisesRegex(tp.WeightError, "'(up.weight|frequencies)' has no values") as caught:
                    module(X)
                self.assertIn(caught.exception.fqn, ("up.weight", "frequencies"))
                module.load_state_dict(reference.state_dict(), assign=True)
                if kind is Rotary:
                    with self.assertRaisesRegex(tp.WeightError, "'frequencies' has no values"):
                        module(X)
                    module.frequencies = reference.frequencies
                torch.testing.assert_close(module(X), reference(X))
                with torch.no_grad():
                    expected = reference(X) + 1
                    module.down.bias.add_(1)
                    torch.testing.assert_close(module(X), expected)
        model = kind().to("meta")
        with self.assertRaisesRegex(tp.WeightError, "has no values"):
            tp.train_step(parallelize(model), loss="mse", optimizer=torch.optim.SGD(model.parameters(), lr=0.1))(X, target=X)

    def test_modules_that_cannot_be_exported(self):
        class Branches(MLP):
            def forward(self, x):
                return super().forward(x) if x.sum() > 0 else x

        class Heads(MLP):
            def forward(self, x):
                return super().forward(x).view(4, 3, 4)

        class Unknown(MLP):
            def forward(self, x):
                return torch.linalg.eigvalsh(super().forward(x)[:, :4])

        class Writes(MLP):
            def forward(self, x):
                x.add_(1)
                return super().forward(x)

        error = self.check(tp.CaptureError, "can't capture Branches: ", parallelize(make(Branches)), X)
        self.assertRegex(str(error), r"at .*test_module.py:\d+: return super\(\).forward\(x\) if x.sum\(\) > 0 else x")
        self.check(tp.CaptureError, "can't capture Heads: .*must not be divided by the size of the mesh", parallelize(make(Heads)), X)
        self.check(tp.CaptureError, "eigvalsh|_linalg_eigh", parallelize(make(Unknown)), X)
        self.check(tp.CaptureError, "Writes writes to its input 'x', and a program can't change the caller's tensor",
                   parallelize(make(Writes)), X.clone())

    def test_writes_to_parts_of_inputs(self):
        class Writes(MLP):
            def forward(self, batch):
                self.write(batch["x"][1])
                return super().forward(batch["x"][0])

        for write in (lambda x: x.view(-1)[3:].mul_(2), lambda x: x.t().__setitem__(0, 1.0), torch.no_grad()(lambda x: x.detach().zero_()),
                      lambda x: torch.add(x, 1, out=x)):
            module = parallelize(make(Writes))
            module.write = write
            self.check(tp.CaptureError, r"writes to its input 'batch\['x'\]\[1\]'", module, {"x": [X, X.clone()]})

    def test_places_in_errors(self):
        class Wrong(MLP):
            def forward(self, x):
                return super().forward(x).view(4, 3, 4)

        class Unknown(MLP):
            def forward(self, x):
                return torch.linalg.eigvalsh(super().forward(x)[:, :4])

        def check(kind, inner, plan, entry, fqn, line="tp.parallelize_module(module, MESH, plan"):
            module = nn.Sequential(nn.Identity(), make(inner))
            with self.assertRaises(kind) as caught:
                tp.parallelize_module(module, MESH, plan, example_inputs=X)
            error = caught.exception
            self.assertEqual((error.entry, error.fqn), (entry, fqn))
            file = pathlib.Path(error.place.file)
            self.assertEqual(file.name, "test_module.py")
            self.assertIn(line, file.read_text().splitlines()[error.place.line - 1])

        wide = tp.ColwiseParallel(output_layouts=tp.Shard(3))
        check(tp.PlanError, MLP, {"*.up": wide}, "*.up", "1.up")
        check(tp.PlanError, MLP, {"1.upp": wide}, "1.upp", "1")
        check(tp.PlanError, MLP, {"1.up.weight": [tp.Shard(5)]}, "1.up.weight", "1.up.weight")
        check(tp.CaptureError, Wrong, {"1.up": "colwise"}, None, "1", ".view(4, 3, 4)")
        check(tp.CaptureError, Unknown, {"1.up": "colwise"}, None, "1", "torch.linalg.eigvalsh")
        with self.assertRaises(tp.WeightError) as caught:
            parallelize(make(MLP).to("meta"))(X)
        self.assertEqual(caught.exception.fqn, "up.weight")
        with self.assertRaises(tp.MeshError) as caught:
            tp.parallelize_module(make(MLP), {"dp": 2, "tp": 2}, PLAN)
        self.assertEqual(pathlib.Path(caught.exception.place.file).name, "test_module.py")
        module = parallelize(make(MLP))
        module.down.register_forward_hook(print)
        with self.assertRaises(tp.UnsupportedError) as caught:
            module(X)
        self.assertEqual(caught.exception.fqn, "down")

    def test_kinds_of_modules(self):
        self.check(TypeError, "a torch.nn.Module is expected", tp.parallelize_module, 7, MESH, PLAN)
        self.check(tp.UnsupportedError, "compiled by TorchScript", tp.parallelize_module, torch.jit.script(nn.Linear(2, 2)), MESH,
                   tp.ColwiseParallel())
        module = make(MLP)
        module.forward = lambda x: x
        self.check(tp.UnsupportedError, "a forward of its own", parallelize, module)
        with self.assertWarnsRegex(UserWarning, "does nothing"):
            self.assertNotIsInstance(tp.parallelize_module(make(MLP), MESH), tp.ParallelModule)

    def test_options_of_data_parallelism(self):
        mesh = tp.init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("a", "b", "c"))
        self.check(tp.MeshError, "over one dimension of a mesh, or over two with fully_shard", tp.fully_shard, make(MLP), mesh=mesh)
        self.check(tp.UnsupportedError, "reshard_after_forward=2", tp.fully_shard, make(MLP), mesh=MESH, reshard_after_forward=2)
        self.check(tp.UnsupportedError, "doesn't support shard_placement_fn", tp.fully_shard, make(MLP), mesh=MESH,
                   shard_placement_fn=lambda parameter: None)
        self.check(tp.UnsupportedError, "doesn't support static_graph", tp.DistributedDataParallel, make(MLP), device_mesh=MESH,
                   static_graph=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
