"""Saves scripted models of which LibTorch knows too late, or not at all, that they are wrong: NAME.pt.

usage: refused.py
"""

import torch

# Numbers are computed from the input's shape, or torch.jit.script would compute them.


class TupleIndex(torch.nn.Module):
    def forward(self, x):
        return x * (1, 2)[x.size(0)]


class FloorDivide(torch.nn.Module):
    def forward(self, x):
        return x * ((-9223372036854775807 - x.size(0) + 1) // -1)


class Remainder(torch.nn.Module):
    def forward(self, x):
        return x * (5 % (x.size(0) - 2))


class Divmod(torch.nn.Module):
    def forward(self, x):
        return x * divmod(-9223372036854775807 - x.size(0) + 1, -1)[1]


class BooleanSoftmax(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x > 0, 1)


class BooleanMinimum(torch.nn.Module):
    def forward(self, x):
        return torch.minimum(x > 0, x > 1)


class ComplexNumber(torch.nn.Module):
    def forward(self, x):
        return x == 1j


class ComplexConstant(torch.nn.Module):
    def forward(self, x):
        return x == torch.complex(torch.ones(4), torch.ones(4))


class Helper(torch.nn.Module):
    def forward(self, x):
        y = x * 1
        torch._cummax_helper(x, y, torch.zeros(2, 4, dtype=torch.int64), 1)
        return y


class ConstantIndex(torch.nn.Module):
    def forward(self, x):
        return x[:, torch.tensor([1, 4])]


class ByteMask(torch.nn.Module):
    def forward(self, x):
        return x[torch.ones(2, dtype=torch.uint8)]


class Ranks(torch.nn.Module):
    def forward(self, x):
        q = x.view(1, 2, 4)
        return torch.nn.functional.scaled_dot_product_attention(q, x, x)


class DivideConstants(torch.nn.Module):
    def forward(self, x):
        smallest = torch.tensor([-9223372036854775807]) - 1
        return x + torch.div(smallest, torch.tensor([-1]), rounding_mode="trunc")


class Assertion(torch.nn.Module):
    def forward(self, x):
        assert x.size(0) == 5, "\033[31mred"
        return x


class Sparse(torch.nn.Module):
    def forward(self, x):
        return x * torch.ones(x.size(0), 4).to_sparse()


class NoHeads(torch.nn.Module):
    def forward(self, x):
        q = x.view(1, 2, 1, 4)
        k = q[:, 0:0]
        return torch.nn.functional.scaled_dot_product_attention(q, k, k, dropout_p=0.5, enable_gqa=True)


class Expanded(torch.nn.Module):
    """32 GiB of one number."""

    def __init__(self):
        super().__init__()
        self.register_buffer("wide", torch.zeros(1).expand(2**33))

    def forward(self, x):
        return x + self.wide[:4]


for model in (TupleIndex, FloorDivide, Remainder, Divmod, BooleanSoftmax, BooleanMinimum, ComplexNumber,
              ComplexConstant, Helper, ConstantIndex, ByteMask, Ranks, Expanded, Sparse, NoHeads, DivideConstants,
              Assertion):
    torch.jit.script(model()).save(f"{model.__name__}.pt")
