# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's autograd does around a parallelized module and inside it: the same, or a precise error."""

import unittest
import warnings

import torch
from networks import MESH, MLP, PLAN, make, parallelize
from torch import nn
from torch.utils.checkpoint import checkpoint

import tp_mlir as tp

X = torch.linspace(-1, 1, 64).view(8, 8)


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Rounded(MLP):
    def forward(self, x):
        return self.down(Straight.apply(self.up(x)))


class Frozen(MLP):
    """Parts of a forward that autograd doesn't record."""

    def forward(self, x, how):
        if how == "all":
            with torch.no_grad():
                return super().forward(x)
        if how == "detach":
            return self.down(torch.relu(self.up(x)).detach()) + x
        with torch.inference_mode() if how == "inference" else torch.no_grad():
            h = torch.relu(self.up(x))
            if how == "enable":
                with torch.enable_grad():
                    return self.down(h)
        return self.down(h.clone())


class Results(MLP):
    def forward(self, x):
        y = super().forward(x)
        return y, y.detach(), self.up(x), x > 0


class Buffers(MLP):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(8))
        self.shift = torch.ones(8)

    def forward(self, x):
        return super().forward(x) * self.scale * self.shift


def get_gradients(module, *others):
    return [tensor.grad for tensor in (*module.parameters(), *others)]


class Comparison(unittest.TestCase):
    def compare(self, function, kind=MLP):
        """Calls the function with PyTorch's module and with a parallelized one; it returns tensors, None and values."""
        expected, found = function(make(kind)), function(parallelize(make(kind)))
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            if isinstance(other, torch.Tensor):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
            else:
                self.assertEqual(one, other)

    def refuse(self, error, message, function, kind=MLP):
        with self.assertRaisesRegex(error, message):
            function(parallelize(make(kind)))


class Around(Comparison):
    def test_backward_twice(self):
        def retained(module):
            y = module(X).square().sum()
            y.backward(retain_graph=True)
            y.backward()
            return get_gradients(module)

        def freed(module):
            y = module(X).square().sum()
            y.backward()
            with self.assertRaisesRegex(RuntimeError, "second time"):
                y.backward()
            return get_gradients(module)

        self.compare(retained)
        self.compare(freed)

    def test_second_derivatives(self):
        def run(module):
            x = X.clone().requires_grad_()
            gradient, = torch.autograd.grad(module(x).square().sum(), x, create_graph=True)
            gradient.sum().backward()

        def penalty(module):
            x = X.clone().requires_grad_()
            y = module(x)
            gradient, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
            (y.mean() + (gradient.norm(dim=1) - 1).square().mean()).backward()

        for refused in (run, penalty, lambda module: torch.autograd.functional.hessian(lambda x: module(x).sum(), X)):
            self.refuse(tp.UnsupportedError, "no second derivatives", refused)

        def first(module):
            x = X.clone().requires_grad_()
            return torch.autograd.grad(module(x).sum(), x, create_graph=True)[0].detach()

        self.compare(first)

    def test_cotangents_that_are_missing(self):
        class Infinite(MLP):
            def forward(self, x):
                y = super().forward(x)
                return y, (y * 0).sqrt(), y.square().log()

        for numbers in ([0], [0, 2], [0, 1, 2]):
            def run(module, numbers=numbers):
                outputs = module(X)
                sum(outputs[i].sum() for i in numbers if i != 1).backward()
                return get_gradients(module)

            self.compare(run, Infinite)

    def test_buffers_that_are_written(self):
        class Counting(MLP):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.ones(()))

            def forward(self, x):
                self.count.add_(1)
                return super().forward(x) * self.count

        def run(module):
            y = module(X).sum()
            y.backward(retain_graph=True)
            y.backward(retain_graph=True)
            y.backward()
            return [*get_gradients(module), module.count.clone()]

        self.compare(run, Counting)

    def test_contexts_of_the_backward_pass(self):
        def under_autocast(module):
            y = module(X).square().sum()
            for _ in range(2):
                with torch.autocast("cpu", torch.bfloat16):
                    y.backward()

        def without_gradients(module):
            with torch.inference_mode(), torch.enable_grad():
                return module(X).clone()

        self.refuse(tp.UnsupportedError, "autocast", under_autocast)
        self.compare(without_gradients)
        self.refuse(tp.UnsupportedError, "is_grads_batched", lambda module: torch.autograd.grad(
            module(X.clone().requires_grad_()), module.up.weight, torch.eye(8).expand(3, 8, 8), is_grads_batched=True))

        def forward_mode(module):
            with torch.autograd.forward_ad.dual_level():
                module(torch.autograd.forward_ad.make_dual(X, torch.ones_like(X)))

        self.refuse(tp.UnsupportedError, "forward-mode", forward_mode)

        def frozen(module):
            with torch.no_grad():
                forward_mode(module)

        self.refuse(tp.UnsupportedError, "forward-mode", frozen)

    def test_accumulation_and_hooks_of_tensors(self):
        def run(module):
            seen = []
            module.up.weight.register_hook(lambda gradient: gradient * 2)
            module.up.bias.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad.clone()))
            module(X).square().sum().backward()
            kept = module.up.weight.grad
            module.zero_grad(set_to_none=False)
            module(X + 1).square().sum().backward()
            module(X).sum().backward()
            return [*get_gradients(module), *seen, module.up.weight.grad is kept]

        self.compare(run)

    def test_views_and_writes(self):
        def views(module):
            base = torch.cat([X, X]).requires_grad_()
            y = module((base * 1)[::2].t().t())
            y.add_(1)
            y.t()[1:, ::2].sum().backward()
            return get_gradients(module, base)

        def write_input(module):
            x = X.clone()
            y = module(x)
            x.add_(1)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                y.sum().backward()
            return []

        self.compare(views)
        self.compare(write_input)

    def test_some_outputs(self):
        def run(module):
            x = X.clone().requires_grad_()
            results = module(x)
            results[2].sum().backward()
            return [*(result.requires_grad for result in results), *get_gradients(module, x)]

        self.compare(run, Results)

    def test_checkpoint_and_scaler(self):
        def run(module, use_reentrant):
            x = X.clone().requires_grad_()
            checkpoint(module, x, use_reentrant=use_reentrant).square().sum().backward()
            return get_gradients(module, x)

        def scale(module):
            optimizer, scaler = torch.optim.SGD(module.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
            for i in range(2):
                optimizer.zero_grad()
                scaler.scale(module(X + i).square().mean()).backward()
                scaler.step(optimizer)
                scaler.update()
            return [*module.state_dict().values(), scaler.get_scale()]

        self.compare(lambda module: run(module, False))
        self.compare(lambda module: run(module, True))
        self.compare(scale)

    def test_weights_of_the_forward_pass(self):
        def replace(module):
            y = module(X).square().sum()
            before = list(module.parameters())
            module.up.weight = nn.Parameter(torch.zeros(16, 8))
            module.down.weight.data = torch.zeros(8, 16)
            y.backward()
            return [parameter.grad for parameter in before]

        def call_functionally(module):
            weights = {name: (2 * parameter).detach().requires_grad_() for name, parameter in module.named_parameters()}
            for _ in range(2):
                torch.func.functional_call(module, weights, (X,)).square().sum().backward()
            return [weight.grad for weight in weights.values()]

        self.compare(replace)
        self.compare(call_functionally)

    def test_changes_between_forward_and_backward_pass(self):
        def write(name):
            def run(module):
                module.down.weight.requires_grad_(False)
                y = module(X).sum()
                with torch.no_grad():
                    module.get_parameter(name).zero_() if "." in name else module.get_buffer(name).zero_()
                y.backward()

            return run

        def assign(module):
            y = module(X).sum()
            module.shift = torch.zeros(8)
            y.backward()

        self.refuse(RuntimeError, "'down.weight' has been modified by an inplace operation", write("down.weight"), Buffers)
        self.refuse(RuntimeError, "'scale' has been modified by an inplace operation", write("scale"), Buffers)
        self.refuse(tp.InputError, "Buffers has changed between forward and backward pass", assign, Buffers)

    def test_a_gradient_that_the_program_lacks(self):
        module = parallelize(make(MLP))
        module(X).sum().backward()
        (backward,) = module._tp_mlir.get_last().backward.values()
        del backward._outputs["grad.module.up.weight"]
        with self.assertRaisesRegex(tp.Error, "PyTorch computes a gradient of 'up.weight', and the program has none"):
            module(X).sum().backward()

    def test_transforms(self):
        self.refuse(tp.UnsupportedError, "a transform of torch.func", lambda module: torch.func.vmap(module)(X[None]))


class Inside(Comparison):
    def test_what_requires_gradients(self):
        def run(module):
            results = []
            for how in ("none", "detach", "enable", "all"):
                for trains_input, trains_weight in ((True, True), (False, True), (True, False)):
                    module.zero_grad()
                    module.up.requires_grad_(trains_weight)
                    x = X.clone().requires_grad_(trains_input)
                    y = module(x, how)
                    results += [y, y.requires_grad]
                    if y.requires_grad:
                        y.square().sum().backward()
                        results += get_gradients(module, x)
            return results

        self.compare(run, Frozen)

    def test_what_a_program_loses(self):
        class Hooked(MLP):
            def forward(self, x):
                h = self.up(x)
                if h.requires_grad:
                    h.register_hook(lambda gradient: gradient * 2)
                return self.down(h)

        class Sparse(MLP):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(8, 8, sparse=True)

            def forward(self, x):
                return super().forward(self.embed(x.abs().long()))

        class Attribute(MLP):
            def __init__(self):
                super().__init__()
                self.scale = torch.ones(8, requires_grad=True)

            def forward(self, x):
                return super().forward(x) * self.scale

        class Checkpointed(MLP):
            def forward(self, x):
                return checkpoint(super().forward, self.up(x)[:, :8], use_reentrant=True)

        for kind, message in ((Rounded, "the torch.autograd.Function 'Straight' has a backward of its own"),
                              (Hooked, r"Tensor.register_hook is called at .*test_autograd.py:\d+"),
                              (Sparse, "an embedding has sparse=True"),
                              (Attribute, r"a tensor of shape \(8,\) that is neither a parameter nor an argument requires a gradient"),
                              (Checkpointed, "use_reentrant=False")):
            with self.subTest(kind.__name__):
                self.refuse(tp.UnsupportedError, f"the gradients of {kind.__name__} can't be compiled: .*{message}", lambda module: module(X),
                            kind)
                with torch.no_grad():
                    parallelize(make(kind))(X)
        self.refuse(tp.UnsupportedError, r"torch.inference_mode\(\) is active at .*test_autograd.py:\d+",
                    lambda module: module(X, "inference"), Frozen)

    def test_checkpoint(self):
        class Checkpointed(MLP):
            def forward(self, x):
                return checkpoint(super().forward, x, use_reentrant=False)

        def run(module):
            module(X).square().sum().backward()
            return get_gradients(module)

        self.compare(run, Checkpointed)


    def test_checkpoints_of_transformers(self):
        from transformers import Qwen2Config, Qwen2ForCausalLM
        config = Qwen2Config(vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
                             num_key_value_heads=2, tie_word_embeddings=True)
        models = [make(Qwen2ForCausalLM, config) for _ in range(2)]
        tp.parallelize_module(models[0], MESH, "auto")
        ids = torch.arange(16).view(2, 8)
        for model in models:
            model.gradient_checkpointing_enable()
            model.train()
            model(ids, labels=ids, use_cache=False).loss.backward()
        for one, other in zip(*map(get_gradients, models)):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


class TrainStep(unittest.TestCase):
    def make_step(self, kind):
        module = make(kind)
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, weight_decay=0.5)
        return tp.train_step(module, MESH, PLAN, loss={"name": "mse", "reduction": "mean"}, optimizer=optimizer), optimizer

    def test_parameters_without_gradients(self):
        class Detached(MLP):
            def forward(self, x):
                return self.down(torch.relu(self.up(x)).detach())

        step, optimizer = self.make_step(Detached)
        expected = make(Detached)
        other = torch.optim.AdamW(expected.parameters(), lr=1e-2, weight_decay=0.5)
        for _ in range(2):
            step(X, target=X)
            other.zero_grad()
            torch.nn.functional.mse_loss(expected(X), X).backward()
            other.step()
        for one, wanted in zip(step.module.parameters(), expected.parameters()):
            torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-4)
        self.assertEqual(optimizer.state_dict()["state"].keys(), other.state_dict()["state"].keys())

    def test_what_a_program_loses(self):
        with self.assertRaisesRegex(tp.UnsupportedError, "Function 'Straight' has a backward of its own"):
            self.make_step(Rounded)[0](X, target=X)
        for add in (lambda step, optimizer: step.module.up.weight.register_hook(print),
                    lambda step, optimizer: step.module.up.weight.register_post_accumulate_grad_hook(print),
                    lambda step, optimizer: optimizer.register_step_post_hook(print)):
            step, optimizer = self.make_step(MLP)
            handle = add(step, optimizer)
            with self.assertRaisesRegex(tp.UnsupportedError, "the optimizer of a training step, or one of its parameters, has the hook 'print'"):
                step(X, target=X)
            handle.remove()
            step(X, target=X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
