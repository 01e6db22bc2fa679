# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients and training of parallelized modules, against PyTorch."""

import copy
import unittest
import warnings

import torch
import torch.nn.functional as F
from networks import MESH, MLP, PLAN, Nested, Normalized, make, parallelize
from torch import nn

import tp_mlir as tp

X = torch.linspace(-1, 1, 64).view(8, 8)
LABELS = torch.arange(8)


def compare(found, expected, tolerance=1e-4):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def compare_gradients(found, expected):
    for (name, one), (_, other) in zip(found.named_parameters(), expected.named_parameters()):
        if other.grad is None:
            assert one.grad is None, name
        else:
            compare(one.grad, other.grad)


class Autograd(unittest.TestCase):
    def test_parameters_and_inputs(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        inputs = [X.clone().requires_grad_() for _ in range(2)]
        for model, x in ((module, inputs[0]), (expected, inputs[1])):
            (model(x, scale=2.0).square().sum() + model(x).sum()).backward()
        compare(inputs[0].grad, inputs[1].grad)
        compare_gradients(module, expected)

    def test_trees_frozen_and_unused(self):
        models = parallelize(make(Nested)), make(Nested)
        for model in models:
            model.up.weight.requires_grad_(False)
            model.unused = nn.Parameter(torch.ones(3))
            result = model({"x": X}, 2)
            (result["y"].sum() + result["parts"][0].square().sum()).backward()
        compare_gradients(*models)
        self.assertIsNone(models[0].unused.grad)

    def test_buffers(self):
        models = parallelize(make(Normalized)), make(Normalized)
        for model in models:
            for _ in range(2):
                (model(X).square().sum()).backward()
        compare_gradients(*models)
        for name, buffer in models[1].named_buffers():
            compare(models[0].get_buffer(name), buffer)

    def test_functions_of_autograd(self):
        module, expected = parallelize(make(MLP)), make(MLP)
        found, wanted = (torch.autograd.grad(model(X).sum(), list(model.parameters())) for model in (module, expected))
        for one, other in zip(found, wanted):
            compare(one, other)
        y = module(X)
        with torch.no_grad():
            module.up.weight.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()
        with torch.no_grad():
            self.assertFalse(module(X).requires_grad)

    def test_optimizers_of_pytorch(self):
        models = parallelize(make(MLP)), make(MLP)
        optimizers = [torch.optim.Adagrad(model.parameters(), lr=0.1) for model in models]
        for step in range(3):
            losses = []
            for model, optimizer in zip(models, optimizers):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(X + step), LABELS)
                loss.backward()
                optimizer.step()
                losses.append(loss)
            compare(*losses)

    def test_dropout_needs_a_training_step(self):
        class Dropped(MLP):
            def __init__(self):
                super().__init__()
                self.dropout = nn.Dropout()

            def forward(self, x):
                return self.dropout(super().forward(x))

        class Functional(MLP):
            def forward(self, x):
                return F.dropout(super().forward(x), 0.5, self.training)

        class Attention(MLP):
            def forward(self, x):
                x = super().forward(x)[None]
                return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5 if self.training else 0.0)

        for kind, fqn in (Dropped, "dropout"), (Functional, ""), (Attention, ""):
            module, expected = parallelize(make(kind)), make(kind).eval()
            for call in module, torch.no_grad()(module):
                with self.assertRaisesRegex(tp.UnsupportedError, r"test_gradients.py:\d+:1: .*drops out") as caught:
                    call(X)
                self.assertEqual(caught.exception.fqn, fqn)
            module.eval()
            for model in module, expected:
                model(X).square().sum().backward()
            compare(module(X), expected(X))
            compare_gradients(module, expected)


class TrainStep(unittest.TestCase):
    def train(self, make_optimizer, steps=4, kind=MLP, schedule=None, **options):
        """Trains in both ways; returns the step and PyTorch's model and optimizer."""
        module, expected = make(kind), make(kind)
        optimizers = [make_optimizer(model) for model in (module, expected)]
        schedules = [schedule(optimizer) if schedule else None for optimizer in optimizers]
        step = tp.train_step(module, MESH, PLAN, loss="cross_entropy", optimizer=optimizers[0], schedule=schedules[0], **options)
        for i in range(steps):
            found = step(X + i, target=LABELS)
            optimizers[1].zero_grad()
            loss = F.cross_entropy(expected(X + i), LABELS)
            loss.backward()
            if "clip_grad_norm" in options:
                norm = torch.nn.utils.clip_grad_norm_(expected.parameters(), options["clip_grad_norm"])
                self.assertAlmostEqual(found.grad_norm, norm.item(), places=4)
            self.assertAlmostEqual(found.lr, optimizers[1].param_groups[0]["lr"], places=6)
            optimizers[1].step()
            if schedule:
                schedules[1].step()
            self.assertAlmostEqual(found.loss, loss.item(), places=4)
        for one, other in zip(module.state_dict().values(), expected.state_dict().values()):
            compare(one, other)
        return step, optimizers

    def check_state(self, optimizers):
        found, expected = (optimizer.state_dict()["state"] for optimizer in optimizers)
        self.assertEqual(found.keys(), expected.keys())
        for key, values in expected.items():
            for name, value in values.items():
                if value is not None:
                    compare(found[key][name].float(), value.float())

    def test_optimizers(self):
        for make_optimizer in (lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True),
                               lambda model: torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.8, 0.9), amsgrad=True),
                               lambda model: torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)):
            self.check_state(self.train(make_optimizer)[1])

    def test_groups_schedules_and_clipping(self):
        def groups(model):
            return torch.optim.AdamW([{"params": [model.up.weight, model.down.weight]},
                                      {"params": [model.up.bias, model.down.bias], "weight_decay": 0.0}], lr=1e-2, weight_decay=0.5)

        self.train(groups, schedule=lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8), clip_grad_norm=0.1)
        from transformers import get_cosine_schedule_with_warmup
        self.train(groups, schedule=lambda optimizer: get_cosine_schedule_with_warmup(optimizer, 2, 8))

    def test_parameters_that_the_optimizer_lacks(self):
        step, _ = self.train(lambda model: torch.optim.SGD(model.down.parameters(), lr=0.1))
        compare(step.module.up.weight, make(MLP).up.weight, 0)

    def test_accumulate(self):
        self.train(lambda model: torch.optim.SGD(model.parameters(), lr=0.1), accumulate=2)

    def test_state(self):
        step, optimizers = self.train(lambda model: torch.optim.AdamW(model.parameters(), lr=1e-2))
        state = copy.deepcopy(step.state_dict())
        module = make(MLP)
        again = tp.train_step(module, MESH, PLAN, loss=nn.CrossEntropyLoss(),
                              optimizer=torch.optim.AdamW(module.parameters(), lr=1e-2), update_module=False)
        again.load_state_dict(state)
        for i in range(2):
            self.assertAlmostEqual(step(X * i, target=LABELS).loss, again(X * i, target=LABELS).loss, places=6)
        for one, other in zip(step.module.state_dict().values(), module.state_dict().values()):
            compare(one, other, 1e-6)
        self.assertEqual(again.state_dict()["steps"], 6)

    def test_batches_of_several_sizes(self):
        models = make(MLP), make(MLP)
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-2) for model in models]
        step = tp.train_step(models[0], MESH, PLAN, loss="cross_entropy", optimizer=optimizers[0])
        for size in (8, 4, 8):
            step(X[:size], target=LABELS[:size])
            optimizers[1].zero_grad()
            F.cross_entropy(models[1](X[:size]), LABELS[:size]).backward()
            optimizers[1].step()
        for one, other in zip(*(model.parameters() for model in models)):
            compare(one, other)
        self.check_state(optimizers)

    def test_losses(self):
        for loss, target, function in (("mse", X * 2, F.mse_loss), (nn.MSELoss(reduction="sum"), X, nn.MSELoss(reduction="sum")),
                                       (nn.CrossEntropyLoss(label_smoothing=0.1), LABELS, nn.CrossEntropyLoss(label_smoothing=0.1))):
            module = make(MLP)
            step = tp.train_step(module, MESH, PLAN, loss=loss, optimizer=torch.optim.SGD(module.parameters(), lr=0.1))
            self.assertAlmostEqual(step(X, target=target).loss, function(make(MLP)(X), target).item(), places=3)

        class WithLoss(MLP):
            def forward(self, x, labels):
                return F.cross_entropy(super().forward(x), labels)

        module = make(WithLoss)
        step = tp.train_step(module, MESH, PLAN, loss="output", optimizer=torch.optim.SGD(module.parameters(), lr=0.1))
        self.assertAlmostEqual(step(X, LABELS).loss, make(WithLoss)(X, LABELS).item(), places=4)

    def test_llama(self):
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
                             num_key_value_heads=2)
        models = [make(LlamaForCausalLM, config) for _ in range(2)]
        ids, labels = torch.randint(0, 48, (2, 8)), torch.randint(0, 48, (2, 8))
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
        mesh = tp.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        tp.parallelize_module(models[0], mesh["tp"], "auto")
        tp.fully_shard(models[0], mesh=mesh["dp"])
        step = tp.train_step(models[0], loss="cross_entropy", optimizer=optimizers[0])
        for _ in range(2):
            loss = F.cross_entropy(models[1](ids, use_cache=False).logits.flatten(0, 1), labels.flatten())
            optimizers[1].zero_grad()
            loss.backward()
            optimizers[1].step()
            self.assertAlmostEqual(step(ids, use_cache=False, target=labels).loss, loss.item(), places=4)
        compare(models[0].lm_head.weight, models[1].lm_head.weight)
        self.assertIn("reduce_scatter", step.report.count())

    def test_proof(self):
        module = make(MLP)
        step = tp.train_step(module, MESH, PLAN, loss="mse", optimizer=torch.optim.SGD(module.parameters(), lr=0.1), example_inputs=X)
        self.assertRegex(str(step.prove()), "is proven for 2 ranks")

    def test_errors(self):
        module = make(MLP)
        sgd = torch.optim.SGD(module.parameters(), lr=0.1)

        def check(message, error=tp.UnsupportedError, **options):
            with self.assertRaisesRegex(error, message):
                tp.train_step(make(MLP), **{"device_mesh": MESH, "parallelize_plan": PLAN, "loss": "mse", "optimizer": sgd, **options})

        check("SGD, Adam or AdamW; found torch.optim.adagrad.Adagrad", optimizer=torch.optim.Adagrad(module.parameters()))
        check("groups with lr \\[0.1, 0.2\\]", optimizer=torch.optim.SGD([{"params": [module.up.weight], "lr": 0.1},
                                                                        {"params": [module.up.bias], "lr": 0.2}], lr=0.1))
        check("schedule StepLR can't be compiled", schedule=torch.optim.lr_scheduler.StepLR(sgd, 1))
        check("found <function", loss=lambda y, target: y)
        check("MLP has no plan", tp.PlanError, device_mesh=None, parallelize_plan=None)
        step = tp.train_step(module, MESH, PLAN, loss={"name": "mse", "reduction": "max"}, optimizer=sgd)
        with self.assertRaisesRegex(tp.Error, r"test_gradients.py:\d+:\d+.*reduction"):
            step(X, target=X)
        step = tp.train_step(module, loss="mse", optimizer=sgd)
        with self.assertRaisesRegex(tp.InputError, "needs a target"):
            step(X)
        step(X, target=X)
        sgd.param_groups[0]["lr"] = 0.5
        with self.assertRaisesRegex(tp.InputError, "learning rates were \\[0.1\\].*are \\[0.5\\] now"):
            step(X, target=X)


class Compile(unittest.TestCase):
    def compile(self, module, **options):
        return torch.compile(module, backend="tp_mlir", options={"mesh": MESH, "plan": PLAN, **options})

    def test_forward_backward_and_shapes(self):
        models = make(Normalized), make(Normalized)
        compiled = self.compile(models[0])
        for x in (X, X, X[:4], X[:6]):
            found, expected = compiled(x), models[1](x)
            compare(found, expected)
            found.square().sum().backward()
            expected.square().sum().backward()
        compare_gradients(*models)
        for name, buffer in models[1].named_buffers():
            compare(models[0].get_buffer(name), buffer)

    def test_weights_that_change(self):
        module = make(MLP)
        compiled = self.compile(module)
        with torch.no_grad():
            compiled(X)
            module.up.weight.mul_(2)
            compare(compiled(X), module(X))

    def test_floats_and_dynamic_shapes(self):
        class Scaled(Normalized):
            def forward(self, x, scale=1.0):
                return torch.nn.functional.layer_norm(super().forward(x) * scale, (8,), eps=scale / 100) + scale

        module = make(Scaled).eval()
        for dynamic in (None, True):
            torch._dynamo.reset()
            compiled = torch.compile(module, backend="tp_mlir", options={"mesh": MESH, "plan": PLAN}, dynamic=dynamic)
            with torch.no_grad():
                for x, scale in ((X, 1.0), (X, 2.5), (X, -0.5), (X, 2.5), (X[:4], 3.0)):
                    with self.subTest(dynamic=dynamic, scale=scale):
                        compare(compiled(x, scale), module(x, scale))

    def test_errors(self):
        for options, message in (({"plan": {"upp": "colwise"}}, "no submodule 'upp' in the root, Graph; did you mean 'up'\\?"),
                                 ({"rank": 3}, "no option 'rank'"), ({"mesh": 3}, "a mesh is a DeviceMesh")):
            with self.assertRaisesRegex(Exception, message):
                self.compile(make(MLP), **options)(X)
        with self.assertRaisesRegex(Exception, "needs options with a mesh and a plan; there is no 'mesh' and no 'plan'"):
            torch.compile(make(MLP), backend="tp_mlir")(X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
