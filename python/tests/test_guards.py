# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards: whatever changes in a module between two calls, the second one computes what PyTorch does, or says why it can't."""

import collections
import gc
import sys
import unittest
import weakref

import torch
from networks import MESH, MLP, make, parallelize
from resources import check_growth
from torch import nn

import tp_mlir as tp
from tp_mlir import _native, dtensors, hooks

X = torch.linspace(-1, 1, 32).view(4, 8)
PLAN = {"blocks.*.mlp.up": tp.ColwiseParallel(), "blocks.*.mlp.down": tp.RowwiseParallel()}


def compare(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.mlp = MLP()
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("gain", torch.full((8,), 1.5))
        self.register_buffer("mask", torch.ones(8), persistent=False)
        self.register_parameter("shift", None)
        self.register_buffer("offset", None)

    def forward(self, x):
        x = self.mlp(self.norm(x)) * self.gain * self.mask
        for term in (self.shift, self.offset):
            x = x if term is None else x + term
        # Without random numbers, which a program doesn't have.
        return x + 1 if self.dropout.training else x


class Tower(nn.Module):
    """Modules in modules, and tensors of each kind."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.scale = torch.full((8,), 0.5)
        self.scales = {"last": torch.full((8,), 2.0)}
        self.pair = (torch.zeros(8), [])

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x * self.scale * self.scales["last"] + self.pair[0]


def parallelize_tower():
    return tp.parallelize_module(make(Tower).eval(), MESH, PLAN)


def set_data(tensor, value):
    tensor.data = torch.full(tensor.shape, value)


def fill(tensor, value):
    with torch.no_grad():
        tensor.fill_(value)


def rename(module, old, new):
    module._modules[new] = module._modules.pop(old)


def swap(blocks):
    blocks[0], blocks[1] = blocks[1], blocks[0]


def replace_dictionary(module, name):
    module.__dict__[name] = type(module.__dict__[name])(module.__dict__[name])


# Each is one change between two calls.
CHANGES = {
    "a child is replaced": lambda model: setattr(model.blocks[0], "norm", make(nn.LayerNorm, 8, 0.5)),
    "a child is added": lambda model: model.blocks.append(make(Block).eval()),
    "a child is removed": lambda model: model.blocks.__delitem__(0),
    "a child is inserted": lambda model: model.blocks.insert(0, make(Block).eval()),
    "children are exchanged": lambda model: (fill(model.blocks[0].gain, 3), swap(model.blocks)),
    "a child of another class takes a place": lambda model: setattr(model.blocks[0], "norm", nn.Identity()),
    "a child is renamed": lambda model: rename(model.blocks, "1", "7"),
    "children are in another order": lambda model: (fill(model.blocks[0].gain, 4), rename(model.blocks, "0", "9")),
    "the dictionary of children is replaced": lambda model: (
        fill(model.blocks[0].gain, 2),
        model.blocks.__dict__.__setitem__("_modules", dict(reversed(model.blocks._modules.items())))),
    "a parameter is replaced": lambda model: setattr(model.blocks[0].mlp.up, "weight", nn.Parameter(torch.full((16, 8), 0.1))),
    "a parameter is set to None": lambda model: setattr(model.blocks[0].mlp.up, "bias", None),
    "a parameter that was None is set": lambda model: setattr(model.blocks[0], "shift", nn.Parameter(torch.full((8,), 0.3))),
    "a parameter is removed and set again": lambda model: (
        delattr(model.blocks[0].mlp.up, "weight"), setattr(model.blocks[0].mlp.up, "weight", nn.Parameter(torch.full((16, 8), 0.2)))),
    "a parameter gets data": lambda model: set_data(model.blocks[0].mlp.down.bias, 0.7),
    "a parameter is written in place": lambda model: fill(model.blocks[1].norm.bias, 0.4),
    "a view of a parameter is written": lambda model: fill(model.blocks[1].mlp.up.weight[3], 0.6),
    "parameters are shared": lambda model: setattr(model.blocks[1].mlp.up, "weight", model.blocks[0].mlp.up.weight),
    "the dictionary of parameters is replaced": lambda model: (
        replace_dictionary(model.blocks[0].mlp.up, "_parameters"), setattr(model.blocks[0].mlp.up, "weight", nn.Parameter(torch.ones(16, 8)))),
    "a state is loaded": lambda model: model.load_state_dict({key: value + 0.1 for key, value in model.state_dict().items()}),
    "a state is assigned": lambda model: model.load_state_dict({key: value + 0.1 for key, value in model.state_dict().items()}, assign=True),
    "a buffer is replaced": lambda model: setattr(model.blocks[0], "gain", torch.full((8,), 0.8)),
    "a buffer that was None is set": lambda model: setattr(model.blocks[0], "offset", torch.full((8,), 0.9)),
    "a buffer gets data": lambda model: set_data(model.blocks[0].gain, 1.1),
    "a buffer is written in place": lambda model: fill(model.blocks[1].gain, 1.2),
    "the dictionary of buffers is replaced": lambda model: (
        replace_dictionary(model.blocks[0], "_buffers"), setattr(model.blocks[0], "gain", torch.full((8,), 2.2))),
    "a buffer that isn't persistent is replaced": lambda model: setattr(model.blocks[0], "mask", torch.full((8,), 1.3)),
    "a buffer that isn't persistent is written": lambda model: fill(model.blocks[0].mask, 1.4),
    "a buffer that isn't persistent gets data": lambda model: set_data(model.blocks[0].mask, 1.6),
    "an attribute is replaced": lambda model: setattr(model, "scale", torch.full((8,), 1.7)),
    "an attribute is written in place": lambda model: fill(model.scale, 1.8),
    "an attribute gets data": lambda model: set_data(model.scale, 1.9),
    "a tensor of a dictionary is replaced": lambda model: model.scales.__setitem__("last", torch.full((8,), 2.1)),
    "a tensor of a tuple is written": lambda model: fill(model.pair[0], 2.3),
    "a module inside is in training": lambda model: model.blocks[1].dropout.train(),
    "a mode isn't a bool": lambda model: setattr(model.blocks[1].dropout, "training", 1),
    "a parameter needs a gradient no more": lambda model: model.blocks[0].requires_grad_(False),
    "the types are others": lambda model: model.double(),
    "nothing": lambda model: None,
}


class Changes(unittest.TestCase):
    def test_each_change_alone(self):
        for name, change in CHANGES.items():
            with self.subTest(name):
                module, expected = parallelize_tower(), make(Tower).eval()
                with torch.no_grad():
                    compare(module(X), expected(X))
                    compare(module(X), expected(X))
                    change(module), change(expected)
                    x = X.to(expected.scale.dtype if name != "the types are others" else torch.float64)
                    for _ in range(2):
                        compare(module(x), expected(x))

    def test_what_changes_no_program(self):
        module = parallelize_tower()
        with torch.no_grad():
            module(X)
            for change in (lambda: fill(module.blocks[0].gain, 2), lambda: set_data(module.blocks[1].mlp.up.bias, 0.5),
                           lambda: setattr(module.blocks[0].norm, "weight", nn.Parameter(torch.ones(8))), lambda: module.requires_grad_(False)):
                executable = module.__dict__["_tp_mlir"].get_last()
                change()
                module(X)
                self.assertIs(module.__dict__["_tp_mlir"].get_last(), executable)

    def test_hooks(self):
        module, expected = parallelize_tower(), make(Tower).eval()
        inner = module.blocks[1].mlp.up
        message = "the module 'blocks.1.mlp.up' in Tower has the"
        with torch.no_grad():
            module(X)
            for kind in ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"):
                handle = getattr(inner, f"register_{kind}")(lambda *_: None)
                for _ in range(2):
                    with self.assertRaisesRegex(tp.UnsupportedError, message):
                        module(X)
                handle.remove()
                compare(module(X), expected(X))

    def test_hooks_in_a_dictionary_of_their_own(self):
        """As in recipes that remove all hooks of a module."""
        module, expected = parallelize_tower(), make(Tower).eval()
        inner = module.blocks[1].mlp.up
        with torch.no_grad():
            for kind in hooks.KINDS:
                module(X)
                setattr(inner, kind, collections.OrderedDict())
                compare(module(X), expected(X))
                getattr(inner, kind)[-1] = lambda *_: None
                with self.assertRaisesRegex(tp.UnsupportedError, "the module 'blocks.1.mlp.up' in Tower has the"):
                    module(X)
                getattr(inner, kind).clear()
                compare(module(X), expected(X))

    def test_gradients_after_changes(self):
        module, expected = parallelize_tower(), make(Tower).eval()
        for name in ("nothing", "a parameter is replaced", "a parameter that was None is set", "parameters are shared",
                     "a parameter needs a gradient no more", "a parameter is written in place"):
            with self.subTest(name):
                for model in (module, expected):
                    CHANGES[name](model)
                    model.zero_grad()
                    model(X).square().sum().backward()
                for (fqn, one), (_, other) in zip(module.named_parameters(), expected.named_parameters(), strict=True):
                    self.assertEqual(one.grad is None, other.grad is None, fqn)
                    if one.grad is not None:
                        compare(one.grad, other.grad)

    def test_nothing_is_recorded_when_nothing_requires_it(self):
        module = parallelize(make(MLP))
        self.assertTrue(module(X).requires_grad)
        module.requires_grad_(False)
        self.assertFalse(module(X).requires_grad)
        module.down.bias.requires_grad_()
        self.assertTrue(module(X).requires_grad)
        module.requires_grad_(False)
        self.assertTrue(module(X.clone().requires_grad_()).requires_grad)

    def test_parameters_of_inference_mode(self):
        module = parallelize(make(MLP))
        with torch.no_grad():
            module(X)
        with torch.inference_mode():
            module.up.bias = nn.Parameter(torch.ones(16), requires_grad=False)
        with torch.no_grad(), self.assertRaisesRegex(tp.InputError, "was made under torch.inference_mode"):
            module(X)


class Inputs(unittest.TestCase):
    def test_kinds_of_tensors(self):
        module, expected = parallelize(make(MLP)).requires_grad_(False), make(MLP)
        wide = torch.arange(64, dtype=torch.float32).view(4, 16) / 64
        for x in (wide[:, ::2], wide.t()[:8].t(), X.expand(4, 8), nn.Parameter(X.clone(), requires_grad=False), X[:1].expand(4, 8),
                  X.clone().requires_grad_()):
            with torch.no_grad():
                compare(module(x), expected(x))

    def test_tensors_that_cannot_be_read(self):
        module = parallelize(make(MLP), example_inputs=X)
        session = module.__dict__["_tp_mlir"].get_last().bundle.weights.session
        for x, message in ((X.to_sparse(), "can't be read|strided"), (X.to("meta"), "isn't in the host's memory|can't be read"),
                           (torch.complex(X, X), "has an element type")):
            with self.assertRaisesRegex(tp.InputError, message):
                session.run_flat([x])


class Guards(unittest.TestCase):
    def test_of_modules(self):
        model = make(Tower)
        guard = _native.ModuleGuard(list(model.modules()), list(hooks.GLOBAL))
        modes = guard.check()
        self.assertEqual(modes, bytes([1] * len(list(model.modules()))))
        model.blocks[0].eval()
        self.assertEqual(guard.check(), bytes(inner.training for inner in model.modules()))
        model.blocks[0].norm = None
        self.assertIsNone(guard.check())
        self.assertIsNone(guard.check())

    def test_of_tensors(self):
        tensors = [torch.zeros(2), torch.zeros(3), torch.zeros(4)]
        slots = [({"x": tensors[0]}, "x"), ([tensors[1]], 0), ((tensors[2],), 0)]

        def make_guard():
            return _native.TensorGuard(slots, tensors, *dtensors.observe(tensors))

        self.assertTrue(make_guard().holds())
        for tensor in tensors:
            guard = make_guard()
            tensor.add_(1)
            self.assertFalse(guard.holds())
            self.assertTrue(make_guard().holds())
            tensor.data = tensor.clone()
            self.assertFalse(guard.holds())
        guard = make_guard()
        slots[1][0].clear()
        self.assertFalse(guard.holds())
        slots[1][0].append(tensors[1])
        self.assertTrue(guard.holds())
        slots[0][0].pop("x")
        self.assertFalse(guard.holds())
        slots[0][0].update(y=1, x=tensors[0])  # elsewhere in the dictionary
        self.assertTrue(guard.holds())
        self.assertFalse(_native.TensorGuard(slots, tensors, [0], [0]).holds())

    def test_of_other_classes(self):
        class Own(torch.Tensor):
            pass

        tensor = torch.zeros(2).as_subclass(Own)
        self.assertFalse(_native.TensorGuard([([tensor], 0)], [tensor], [0], [tensor.data_ptr()]).holds())

    def test_cycles_end(self):
        class Kept:
            pass

        kept = Kept()
        reference = weakref.ref(kept)
        kept.__dict__.update(slots={"kept": kept, "x": (tensor := torch.zeros(2))}, hooks={1: kept})
        kept.module = nn.Module()
        kept.module.kept = kept
        kept.guards = (_native.TensorGuard([(kept.slots, "x")], [tensor], *dtensors.observe([tensor])),
                       _native.ModuleGuard([kept.module], [kept.hooks]))
        self.assertIsNotNone(kept.guards[1].check())
        del kept, tensor
        gc.collect()
        self.assertIsNone(reference())

    def test_modules_are_freed(self):
        module = parallelize_tower()
        with torch.no_grad():
            module(X), module(X)
        reference = weakref.ref(module)
        del module
        gc.collect()
        self.assertIsNone(reference())

    def test_references_are_given_back(self):
        module, x = parallelize_tower(), X.clone()
        objects = [x, module.blocks, module.blocks._modules, module.blocks[0].gain, module.blocks[0].mlp.up.weight, module.scale]
        for context in (torch.inference_mode(), torch.enable_grad()):
            with context:
                module(x), module(x)
                gc.collect()
                before = list(map(sys.getrefcount, objects))
                for _ in range(100):
                    module(x)
                gc.collect()
                self.assertEqual(list(map(sys.getrefcount, objects)), before)

    def test_outputs_are_freed(self):
        module = parallelize(make(MLP, 8, 1024), example_inputs=(x := torch.ones(8192, 8))).requires_grad_(False)
        session = module.__dict__["_tp_mlir"].get_last().bundle.weights.session

        def work():
            for _ in range(20):
                module(x)
                (array,) = session.run_flat([x])
                array.__dlpack__()  # nobody takes it

        check_growth(self, work, 8 << 20)


if __name__ == "__main__":
    unittest.main()
