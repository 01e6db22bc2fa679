"""Models and files that can't be imported: bad.py <dir>"""

import sys
from pathlib import Path

import torch
from torch import nn
from typing import List, Tuple


class Unsupported(nn.Module):
    """Three unsupported ops in two modules, one after the other."""

    class Inner(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvalsh(x @ x.transpose(-1, -2))[:, None]

    def __init__(self):
        super().__init__()
        self.inner = self.Inner()

    def forward(self, x):
        y = torch.nextafter(x, x + 1)
        return self.inner(y) + torch.special.ndtri(x)[:, :3]


class Branch(nn.Module):
    def forward(self, x):
        if bool(x.sum() > 0):
            return x
        return -x


class Nonzero(nn.Module):
    def forward(self, x):
        return x.nonzero().sum()


class Raises(nn.Module):
    def forward(self, x):
        if x.size(1) != 3:
            raise ValueError("expected three columns")
        return x


class Mismatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 2)

    def forward(self, x):
        return self.proj(x)


class Random(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x + self.count


class Decay(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            self.weight.mul_(0.5)
        return x + 1


class Foreign(nn.Module):
    """PyTorch's gradient of y is the identity, although the value changes."""

    def forward(self, x):
        y = x * 2
        y.detach()[:, 0].fill_(1.0)
        return y * 2


class Windows(nn.Module):
    def forward(self, x):
        y = x * 2
        windows = y.unfold(1, 3, 1)
        y[:, 0].fill_(1.0)
        return windows * 2


class Append(nn.Module):
    def forward(self, x, tensors: List[torch.Tensor]):
        tensors.append(x * 2)
        return x + 1


class Escaped(nn.Module):
    """A tensor leaves a module in a list that was passed to it."""

    def __init__(self):
        super().__init__()
        self.inner = Append()

    def forward(self, x):
        tensors: List[torch.Tensor] = []
        y = self.inner(x, tensors)
        return y + tensors[0]


class BadOutput(nn.Module):
    def forward(self, x) -> Tuple[torch.Tensor, int]:
        return x, x.size(0)


class Long(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(1, 1)

    def forward(self, x):
        return self.rnn(x)[0]


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(4, dtype=torch.complex64))

    def forward(self, x):
        return (x + self.table).real


class Bytes(nn.Module):
    """Bytes can be moved and converted; their sum is PyTorch's, modulo 256."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4, dtype=torch.uint8))

    def forward(self, x):
        moved = self.table.reshape(2, 2).t()
        return x + (moved + moved).reshape(4)


class AlphaDropout(nn.Module):
    def forward(self, x):
        return nn.functional.alpha_dropout(x, 0.5, True)


class TwoInputs(nn.Module):
    def forward(self, input_ids, attention_mask, scale: float = 1.0):
        return input_ids * attention_mask * scale


class FastPath(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x, pad):
        return self.encoder(x, src_key_padding_mask=pad)


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    models = [Unsupported, Branch, Nonzero, Raises, Mismatch, Random, Counter, Decay, Foreign, Windows, Escaped, BadOutput,
              Bytes, Complex, Long, AlphaDropout, TwoInputs]
    for cls in models:
        torch.jit.script(cls().eval()).save(str(directory / f"{cls.__name__}.pt"))
    with torch.no_grad():  # with gradients there is no fast path
        inputs = torch.randn(2, 4, 8), torch.tensor([[False, False, False, True]] * 2)
        torch.jit.trace(FastPath().eval(), inputs).save(str(directory / "FastPath.pt"))
    whole = (directory / "Mismatch.pt").read_bytes()
    (directory / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    (directory / "random.pt").write_bytes(bytes(range(256)) * 8)
    (directory / "empty.pt").write_bytes(b"")
    (directory / "pointer.pt").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 988097824\n")
    model = Mismatch()
    torch.jit.script(model).save(str(directory / "changed.pt"))
    changed = bytearray((directory / "changed.pt").read_bytes())
    changed[changed.index(model.proj.weight.detach().numpy().tobytes())] ^= 1
    (directory / "changed.pt").write_bytes(changed)
    torch.save(Mismatch().state_dict(), directory / "state_dict.pt")
    torch.save(Mismatch().state_dict(), directory / "legacy.pt", _use_new_zipfile_serialization=False)


main()
