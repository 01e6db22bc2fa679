# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that are found: the placements fit the memory, and the modules compute what PyTorch computes."""

import unittest
import warnings

import torch

import tp_mlir as tp


class Gated(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w1, self.w2 = torch.nn.Linear(width, hidden), torch.nn.Linear(width, hidden)
        self.w3 = torch.nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.w3(torch.nn.functional.silu(self.w1(x)) * self.w2(x))


class Net(torch.nn.Module):
    """Enough to compute that splitting it saves time on CPUs."""

    def __init__(self, width=256, hidden=1024):
        super().__init__()
        self.embed = torch.nn.Embedding(512, width)
        self.layers = torch.nn.ModuleList(Gated(width, hidden) for _ in range(3))
        self.head = torch.nn.Linear(width, 512)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def make(seed=0):
    torch.manual_seed(seed)
    return Net().eval()


IDS = torch.arange(64).reshape(1, 64) % 512
WEIGHT_BYTES = sum(parameter.numel() * 4 for parameter in make().parameters())


class Found(unittest.TestCase):
    def check(self, plan, ids=IDS):
        module = make()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")  # a plan that is found gives no advice about itself
            expected = module(ids)
            tp.parallelize_module(module, plan.mesh, plan, example_inputs=ids)
            torch.testing.assert_close(module(ids), expected, rtol=1e-5, atol=1e-5)
        module.prove()
        return module

    def test_splits_layers(self):
        plan = tp.auto_plan(make(), {"tp": 2}, example_inputs=IDS)
        self.assertEqual(plan.mesh, tp.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",)))
        self.assertIn("layers.*.w3", " ".join(plan.entries))
        self.assertIn("mesh: {tp: 2}", str(plan))
        self.assertGreater(plan.seconds, 0)
        self.check(plan)

    def test_memory_limit(self):
        whole = tp.auto_plan(make(), {"tp": 2}, example_inputs=torch.zeros(4, 2, dtype=torch.int64))
        limit = int(0.75 * WEIGHT_BYTES)
        for spelled in limit, str(limit), f"{limit / 1e6}MB", f"{limit / 1024} KiB":
            with self.subTest(limit=spelled):
                plan = tp.auto_plan(make(), {"tp": 2}, example_inputs=torch.zeros(4, 2, dtype=torch.int64), memory_limit=spelled)
                self.assertLessEqual(plan.memory_bytes, limit)
                self.assertLessEqual(whole.seconds, plan.seconds)
        self.check(plan, torch.zeros(4, 2, dtype=torch.int64))

    def test_modules_without_values(self):
        plan = tp.auto_plan(make(), {"tp": 2}, example_inputs=IDS)
        for ids in IDS, IDS.to("meta"):
            self.assertEqual(tp.auto_plan(make().to("meta"), {"tp": 2}, example_inputs=ids).text, plan.text)

    def test_number_of_ranks(self):
        ids = (torch.arange(256) % 512).reshape(4, 64)
        plan = tp.auto_plan(make(), 4, example_inputs={"ids": ids})
        self.assertEqual(plan.mesh.size(), 4)
        self.check(plan, ids)
        self.assertEqual(sorted(other.seconds for other in plan.alternatives), [other.seconds for other in plan.alternatives])
        self.assertTrue(all(other.seconds >= plan.seconds for other in plan.alternatives))
        self.check(plan.alternatives[0], ids)

    def test_every_alternative_is_right(self):
        ids = (torch.arange(16) % 512).reshape(2, 8)
        plan = tp.auto_plan(make(), {"dp": 2, "tp": 2}, example_inputs=ids, alternatives=6)
        self.assertGreater(len(plan.alternatives), 2)
        for other in plan.alternatives:
            with self.subTest(plan=other.text):
                self.check(other, ids)

    def test_training(self):
        train = {"loss": "cross_entropy", "optimizer": {"name": "SGD", "lr": 0.1}}
        plan = tp.auto_plan(make(), {"tp": 2}, example_inputs=IDS, train=train)
        eager, module = make().train(), make().train()
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (eager, module)]
        step = tp.train_step(module, plan.mesh, plan, loss="cross_entropy", optimizer=optimizers[1])
        target = IDS.roll(-1, 1)
        for _ in range(3):
            loss = torch.nn.functional.cross_entropy(eager(IDS).flatten(0, 1), target.flatten())
            optimizers[0].zero_grad()
            loss.backward()
            optimizers[0].step()
            self.assertAlmostEqual(step(IDS, target=target).loss, loss.item(), delta=1e-4)

    def test_torch_compile(self):
        plan = tp.auto_plan(make(), {"tp": 2}, example_inputs=IDS)
        module = make()
        with torch.no_grad():
            expected = module(IDS)
            compiled = torch.compile(module, backend="tp_mlir", options={"mesh": plan.mesh, "plan": plan})
            torch.testing.assert_close(compiled(IDS), expected, rtol=1e-5, atol=1e-5)

    def test_options_reach_plans_of_data_parallelism(self):
        ids = torch.zeros(64, 1, dtype=torch.int64)
        found = tp.auto_plan(make(), {"dp": 2}, example_inputs=ids)
        plan = next(plan for plan in (found, *found.alternatives) if "ddp" in plan.text)
        module = tp.parallelize_module(make(), plan.mesh, plan, example_inputs=ids, options={"machine": "cpu"})
        self.assertIsNotNone(module.report.prediction)


class Errors(unittest.TestCase):
    def expect(self, error, text, **changed):
        arguments = {"device_mesh": {"tp": 2}, "example_inputs": IDS} | changed
        with self.assertRaisesRegex(error, text):
            tp.auto_plan(make(), **arguments)

    def test_nothing_fits(self):
        self.expect(tp.PlanError, "test_auto_plan.py:\\d+:\\d+: no plan fits: the memory limit is 1000 bytes", memory_limit=1000)

    def test_memory_limits(self):
        for limit in "80 pigs", "-3", "", "GB", "8iB", -1:
            with self.subTest(limit=limit):
                self.expect(tp.InputError, "a memory limit is a number of bytes", memory_limit=limit)

    def test_machines(self):
        self.expect(tp.PlanError, "no machine is called 'abacus'", machine="abacus")
        self.expect(tp.InputError, "a machine is", machine="cpu} x")

    def test_training_file(self):
        self.expect(tp.PlanError, "loss", train={"loss": "luck"})
        self.expect(tp.PlanError, "key 'loss' is missing", train={})

    def test_meshes(self):
        self.expect(tp.MeshError, "a mesh is", device_mesh="tp")
        self.expect(tp.PlanError, "'ranks' must be at least 1", device_mesh=-1)
        mesh = tp.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        self.expect(tp.PlanError, "a whole mesh", device_mesh=mesh["tp"])

    def test_inputs(self):
        self.expect(tp.InputError, "the inputs of one call", example_inputs=[IDS, IDS])

    def test_arguments_of_written_plans(self):
        plan = tp.auto_plan(make(), {"tp": 2}, example_inputs=IDS)
        for argument in {"match": "hf"}, {"on_unmatched": "warn"}, {"loss_parallel": True}:
            with self.subTest(**argument), self.assertRaisesRegex(tp.PlanError, f"{next(iter(argument))} can't be given"):
                tp.parallelize_module(make(), plan.mesh, plan, **argument)

    def test_another_mesh(self):
        plan = tp.auto_plan(make(), {"tp": 2}, example_inputs=IDS)
        with self.assertRaisesRegex(tp.MeshError, "test_auto_plan.py:.*pass plan.mesh"):
            tp.parallelize_module(make(), {"tp": 4}, plan)


if __name__ == "__main__":
    unittest.main()
