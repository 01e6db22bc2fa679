"""Functions of PyTorch at their edges, from end to end, against PyTorch: at ties, zeros, infinities, NaN and the ends of types, of
no elements, and at negative indices. Options are those of functions.py.
"""

import pathlib
import sys
import tempfile

import numpy as np
import torch

import functions


def make_inputs():
    """Those of functions.py, and: c booleans, e no rows, f the ends of f32, h i8, k i32, g an image."""
    return functions.make_inputs() | {
        "c": torch.rand(functions.SHAPE) > 0.4, "e": torch.zeros(0, 4),
        "h": torch.tensor([-128, -100, -1, 0, 1, 100, 127], dtype=torch.int8),
        "k": torch.tensor([-(2**31), -7, -1, 0, 1, 1000000007, 2**31 - 1], dtype=torch.int32),
        "g": torch.randn(1, 2, 5, 6),
    }


# As in functions.py.
FUNCTIONS = """
torch.any(e > 0, 0)
torch.any(e > 0)
torch.all(e > 0, 0)
torch.all(e > 0)
torch.any(x[:, :0], 1)
torch.any(b, dim=())
torch.all(b, dim=())
torch.isin(v, e)
torch.isin(n, 2)
torch.isin(n, 2, invert=True)
torch.max(b)
torch.max(b, 1)[0]
torch.max(b, 1)[1]
torch.min(b, 2, keepdim=True)[0]
torch.min(b, 1)[1]
torch.max(zeroed(x), 1)[0]
torch.min(zeroed(x), 1, keepdim=True)[0]
torch.max(x.detach().round() + zeroed(x), 2)[0]
torch.max(x.round(), 2)[1]
torch.max(s, 0)[0] # values
torch.min(s, 0)[0] # values
torch.max(s, 0)[1]
torch.min(s, 0)[1]
torch.max(zeroed(x))
torch.amax(zeroed(x), 1)
torch.maximum(zeroed(x), zeroed(y))
torch.clamp(zeroed(x), zeroed(y), p)
torch.clamp(x, y - 0.5, y + 0.5)
torch.clamp_min(zeroed(x), zeroed(y))
torch.clip(zeroed(x), max=zeroed(y))
torch.clamp(x, s[:4]) # values
torch.clamp(s, min=s[3]) # values
torch.clamp(s, float('nan')) # values
torch.clamp(s, s.flip(0), s[:1]) # values
torch.clamp(i, j)
k & 0x80000000
k & -2147483648
k & 0x7fffffff
k | 0x80000000
k ^ 0x80000001
h & 200
h | 128
h ^ 255
h & 127
F.pad(x, (1, -1), mode='circular')
F.pad(x, (-1, 2), mode='circular')
F.pad(x, (-2, -1), mode='circular')
F.pad(x, (2, -1), mode='reflect')
F.pad(x, (-1, 2), mode='replicate')
torch.flip(e, (0,))
torch.diagonal(e)
x.index_fill(2, torch.tensor([3, -1]), 1.5)
x.index_fill(1, n[0] - 3, 2.0)
torch.take(x, n - 3)
torch.take(x, n * 0 - 24)
x[(n[0, :2] > 0).long() - 2, :, (n[0, :2] - 1).int()]
x[(n[0, :2] * 0 - 1).int()]
x.index_add(0, n[0, :0], x[:0])
x.index_copy(1, n[0, :0], x[:, :0])
x.index_put((n[0, :0],), x[:0], accumulate=True)
torch.masked_scatter(v, b, x)
torch.copysign(x, torch.tensor([0.0, -0.0, 0.0, -0.0]))
torch.copysign(x, torch.tensor([-0.0, -0.0, -0.0, -0.0]))
torch.copysign(x, torch.tensor([[0.0], [-0.0], [0.0]]))
torch.copysign(x, torch.tensor([-0.0, 1.0, 2.0, 3.0]))
torch.exp2(j.float() * 3).long()
torch.exp2(j.double() * -3) == 2.0 ** (j.double() * -3)
torch.exp2(s) # values
F.max_pool2d(g - inf, 3, 2, 1, return_indices=True)[1]
F.max_pool2d(g - inf, 2, 1, 1, dilation=3, return_indices=True)[1]
F.max_pool1d(x - inf, 2, 1, 1, return_indices=True)[1]
F.max_pool2d(zeroed(g), 3, 2, 1)
F.max_pool2d(g, 3, 2, 1, return_indices=True)[1]
F.grid_sample(g, torch.stack([s, s.flip(0)], 1)[None, None], align_corners=False) # values
F.grid_sample(g, torch.stack([s, s.flip(0)], 1)[None, None], padding_mode='border', align_corners=True) # values
F.grid_sample(g, torch.stack([s, s.flip(0)], 1)[None, None], mode='nearest', align_corners=False) # values
F.grid_sample(g, x.detach().round()[:1, :, None, :2] + zeroed(x)[:1, :, None, :2], padding_mode='border', align_corners=True)
torch.add(b, c, alpha=False)
torch.add(b, c, alpha=True)
torch.sinh(s * 50) # values
torch.cosh(s * 50) # values
torch.sinh(zeroed(p)[0, 0, :1] + 89.2) * 1e-38
torch.sinh(zeroed(p)[0, 0, :1] - 89.2) * 1e-38
torch.cosh(zeroed(p)[0, 0, :1] - 89.2) * 1e-38
torch.sinh(zeroed(p))
torch.sinh(x * 1e-4) * 1e4
torch.sinh(x * 10)
torch.cosh(zeroed(p))
torch.cosh(x * 10)
torch.sinh(x.double() * 10)
torch.asin(zeroed(x) + 1)
torch.asin(zeroed(x) - 1)
torch.asin(zeroed(x))
torch.asin(s) # values
torch.acos(zeroed(x) + 1)
torch.acos(zeroed(x) - 1)
torch.acos(zeroed(x))
torch.acos(s) # values
torch.acos(1 - p * 1e-6) * 1e3
F.soft_margin_loss(zeroed(x), b.float() * 2 - 1, reduction='none')
F.soft_margin_loss(x * 10, b.float() * 2 - 1, reduction='none')
F.binary_cross_entropy(zeroed(x) + b, b.float(), reduction='none')
F.binary_cross_entropy(zeroed(x) + b, c.float(), reduction='none') * 1e-9
F.binary_cross_entropy(torch.sigmoid(zeroed(x) - 30), torch.ones_like(x), reduction='none')
F.binary_cross_entropy(torch.sigmoid(zeroed(x) - 20), q, reduction='none')
F.smooth_l1_loss(zeroed(x) + inf, y, reduction='none')
F.huber_loss(zeroed(x) - inf, y, reduction='none')
F.huber_loss(zeroed(x) + 1, zeroed(y), reduction='none')
F.embedding_bag(n.reshape(6), w, torch.tensor([0, 2, 5, 6]), include_last_offset=True)
F.embedding_bag(n.reshape(6), w, torch.tensor([0, 2, 2, 5]))
F.embedding_bag(n.reshape(6), w.double(), torch.tensor([0, 3, 5])) * 1e5 - w.double()[:3] * 1e5
"""

REFUSED = """
F.embedding_bag(n.reshape(6), w, torch.tensor([0, 2, 5]), mode='max') # of maxima of bags of different sizes
"""

# Calls that a run refuses for another value of an input, and what the error says.
FAILING = """
x[(n[0] * 0).int(), n[0]] # n # n * 0 + 2**32 # index 4294967296 is out of range [0, 3)
torch.take(x, n) # n # n * 0 - 100 # index -100 is out of range [0, 24)
"""


def check_failing(folder):
    """The number of calls that don't fail as they should."""
    wrong = 0
    for i, line in enumerate(FAILING.strip().splitlines()):
        call, name, other, text = line.split(" # ")
        inputs = functions.make_inputs()
        case = functions.Case(call, inputs)
        program = functions.Program(folder / str(i), [case], functions.make_module([case], [], functions.make_call(0, case)))
        np.save(folder / str(i) / f"c0_{name}.npy", eval(other, {name: inputs[name]}).numpy())
        wrong += not functions.fails_with(text, call, lambda: program.compute(["output"]))
    print(f"{len(FAILING.strip().splitlines()) - wrong} runs fail")
    return wrong


if __name__ == "__main__":
    code = functions.check(FUNCTIONS, REFUSED, make_inputs, __doc__.split("\n")[0])
    with tempfile.TemporaryDirectory() as scratch:
        code |= check_failing(pathlib.Path(scratch)) > 0
    sys.exit(code)
