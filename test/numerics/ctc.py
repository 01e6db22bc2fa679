#!/usr/bin/env python3
"""The loss of connectionist temporal classification beside PyTorch: values on 1 and 2 ranks, and gradients.

torch.export can't export it, so the program is a trace.
"""

import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
import torch.nn.functional as F

from exported import run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/tp-import"))
import tp_trace

FRAMES, BATCH, CLASSES = 12, 4, 6
TARGETS = torch.tensor([[1, 2, 2, 3], [4, 4, -1, -1], [5, 1, 2, -7], [3, -1, -1, -1]])
LENGTHS, TARGET_LENGTHS = torch.tensor([12, 9, 7, 12]), torch.tensor([4, 2, 3, 1])
FLAT = torch.cat([row[:length] for row, length in zip(TARGETS, TARGET_LENGTHS)])
SHORT = torch.tensor([12, 2, 7, 0])  # 4, 4 needs a blank in between, and no frame has no label

# By name: the loss of logits x, targets t, flat targets f, lengths l of inputs and k of targets, and short lengths s.
CASES = {
    "mean": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), t, l, k),
    "sum": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), t, l, k, reduction="sum"),
    "none": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), t, l, k, reduction="none"),
    "flat": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), f, l, k),
    "blank": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), (t - 1) % 5, l, k, blank=5),
    "lists": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), t, (12, 9, 7, 12), (4, 2, 3, 1)),
    "one": lambda x, t, f, l, k, s: F.ctc_loss(x[:, 0].log_softmax(1), t[0], l[0], k[0]),
    "empty": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), t, l, k * 0, reduction="none"),
    "certain": lambda x, t, f, l, k, s: F.ctc_loss((x * 200).log_softmax(2), t, l, k, reduction="none"),
    "probabilities": lambda x, t, f, l, k, s: F.ctc_loss(x, t, l, k, reduction="none"),  # that don't add up to 1
    "zero_infinity": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), t, s, k, reduction="none", zero_infinity=True),
    "infinity": lambda x, t, f, l, k, s: F.ctc_loss(x.log_softmax(2), t, s, k, reduction="none"),
}
SMOOTH = [name for name in CASES if name != "infinity"]  # PyTorch's gradient is NaN there


class Losses(torch.nn.Module):
    def forward(self, x, t, f, l, k, s):
        return {name: case(x, t, f, l, k, s) for name, case in CASES.items()}


class Total(torch.nn.Module):
    """All losses, with weights."""

    def forward(self, x, t, f, l, k, s):
        losses = [CASES[name](x, t, f, l, k, s).reshape(-1) for name in SMOOTH]
        return sum((i + 1) * (loss * torch.arange(1, len(loss) + 1)).sum() for i, loss in enumerate(losses))


def compute(folder, module, inputs, outputs, *passes):
    """The outputs of the program after the passes."""
    folder.mkdir()
    tp_trace.save(module, tuple(inputs.values()), folder / "model.pt", strict=False)
    types = {torch.float32: "f32", torch.int64: "i64"}
    specs = [flag for name, value in inputs.items() for flag in ("--input", f"{name}={'x'.join(map(str, value.shape))}x{types[value.dtype]}")]
    run("tp-import", folder / "model.pt", "--signature", folder / "model.signature.json", *specs, "-o", folder / "model.mlir",
        "--weights", folder / "model.safetensors")
    run("tp-opt", folder / "model.mlir", *passes, "-o", folder / "final.mlir")
    run("tp-compile", folder / "final.mlir", "-o", folder / "model.tpx")
    flags = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value.detach().numpy())
        flags += ["--input", f"{name}={folder / name}.npy"]
    flags += [flag for name in outputs for flag in ("--output", f"{name}={folder / name}.npy")]
    run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors", *flags)
    return {name: torch.from_numpy(np.load(folder / f"{name}.npy")) for name in outputs}


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    x = torch.randn(FRAMES, BATCH, CLASSES, requires_grad=True)
    inputs = {"x": x, "t": TARGETS, "f": FLAT, "l": LENGTHS, "k": TARGET_LENGTHS, "s": SHORT}
    expected = Losses()(*inputs.values())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        plan = folder / "plan.yaml"
        layouts = "[Shard(1), Shard(0), Replicate, Shard(0), Shard(0), Shard(0)]"
        plan.write_text(f"mesh: {{tp: 2}}\nplan: {{style: PrepareModuleInput, input_layouts: {layouts}, desired_input_layouts: {layouts}}}\n")
        for ranks, passes in (1, []), (2, [f"--tp-parallelize=plan={plan}"]):
            values = compute(folder / f"values{ranks}", Losses(), inputs, list(CASES), *passes)
            for name in CASES:
                torch.testing.assert_close(values[name], expected[name].detach(), rtol=1e-5, atol=1e-5, msg=lambda text: f"{name} on {ranks} ranks: {text}")
        Total()(*inputs.values()).backward()
        gradient = compute(folder / "gradient", Total(), inputs, ["grad.x"], "--tp-grad=inputs=true")["grad.x"]
        torch.testing.assert_close(gradient, x.grad, rtol=1e-4, atol=1e-4 * x.grad.abs().max().item())
    print(f"{len(CASES)} losses equal PyTorch's on 1 and 2 ranks, {len(SMOOTH)} with gradients")


if __name__ == "__main__":
    sys.exit(main())
