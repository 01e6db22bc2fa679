# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that are in several places of a model, which torch.export names by the place that was called."""

import unittest

import torch
from torch import nn

import tp_mlir as tp

X = torch.linspace(-1, 1, 32).view(4, 8)
PLAN = {"*.up": tp.ColwiseParallel(), "*.down": tp.RowwiseParallel()}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x, scale, *, shift=None):
        y = self.down(torch.relu(self.up(x))) * scale
        return y if shift is None else y + shift


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(8), MLP()

    def forward(self, x, number):
        # Calls of one module pass other arguments.
        return x + (self.mlp(self.norm(x), x.mean(), shift=x) if number else self.mlp(x, 2.0))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            x = block(x, number)
        return x


def share_mlp(model):
    model.blocks[1].mlp = model.blocks[0].mlp


def share_norm(model):
    model.blocks[2].norm = model.blocks[1].norm


def share_linear(model):
    model.blocks[2].mlp.up = model.blocks[0].mlp.up


def share_block(model):
    model.blocks[2] = model.blocks[0]


def share_all_blocks(model):
    model.blocks = nn.ModuleList([model.blocks[0]] * 3)


def keep_another_name(model):
    model.first = model.blocks[0]


def keep_another_name_inside(model):
    model.blocks[1].other = model.blocks[0].mlp.up


SHARED = [share_mlp, share_norm, share_linear, share_block, share_all_blocks, keep_another_name, keep_another_name_inside]


class SharedModules(unittest.TestCase):
    def test_each_way_to_share(self):
        for share in SHARED:
            with self.subTest(share.__name__):
                torch.manual_seed(0)
                model = Tower()
                share(model)
                expected = model(X)
                expected.sum().backward()
                gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
                model.zero_grad()
                tp.parallelize_module(model, {"tp": 2}, {f"blocks.*.mlp{name[1:]}": style for name, style in PLAN.items()})
                found = model(X)
                torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
                found.sum().backward()
                for name, parameter in model.named_parameters():
                    if name in gradients:
                        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-4, atol=1e-5)
                self.assertEqual(model.report.count().get("all_reduce"), 3)
                self.assertTrue(model.prove().messages)

    def test_layouts_are_of_the_calls_arguments(self):
        torch.manual_seed(0)
        model = Tower()
        share_mlp(model)
        expected = model(X)
        plan = {"blocks.1.mlp": tp.PrepareModuleInput(input_kwarg_layouts={"shift": tp.Replicate()},
                                                      desired_input_kwarg_layouts={"shift": tp.Shard(0)})}
        tp.parallelize_module(model, {"tp": 2}, plan)
        with torch.no_grad():
            torch.testing.assert_close(model(X), expected, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
