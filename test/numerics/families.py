#!/usr/bin/env python3
"""Trainings of whole families of models beside PyTorch: 20 steps of SGD with momentum, on one rank and on a mesh.

  families.py [NAME…]

The models are transformers', made small, exported in training mode with torch.export, and split by their own tp_plan where
they have one. The losses of all steps, and the parameters after the last one, are compared.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import torch
import safetensors.torch
from torch import nn

import exported
import zoo

STEPS, RATE, MOMENTUM = 20, 0.02, 0.9
TOLERANCE = 2e-3  # relative to the largest element, after all steps


class Logits(nn.Module):
    """The model's logits for inputs that are given in order."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), use_cache=False).logits


class ImageLogits(Logits):
    def forward(self, pixels):
        return self.model(pixel_values=pixels).logits


CONVOLUTIONS = {"model.resnet.encoder.stages.*.layers.*.layer.0.convolution.weight": ["Shard(0)"]}
# By family: the inputs, and the plan of a model without one.
FAMILIES = {"t5": ("input_ids", "decoder_input_ids"), "mixtral": ("input_ids",), "deepseek_v3": ("input_ids",), "vit": (), "resnet": ()}


def get_plan(name, model):
    if name == "resnet":
        return {"plan": CONVOLUTIONS}
    if plan := getattr(model, "tp_plan", None):
        return {"match": "hf", "plan": {f"model.{key}": style for key, style in plan.items()}}
    linears = [key for key, module in model.named_modules() if isinstance(module, nn.Linear)]
    up = [key for key in linears if key.rpartition(".")[2] in ("q", "k", "v", "wi", "q_proj", "k_proj", "v_proj", "fc1")]
    down = [key for key in linears if key.rpartition(".")[2] in ("o", "wo", "o_proj", "fc2")]
    return {"plan": {f"model.{key}": "ColwiseParallel" for key in up} | {f"model.{key}": "RowwiseParallel" for key in down}}


def check(name, folder):
    names = FAMILIES[name]
    model, _ = zoo.make_model(name)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
    torch.manual_seed(1)
    if names:
        inputs = [torch.randint(3, zoo.VOCABULARY, (4, zoo.TOKENS)) for _ in names]
        target = torch.randint(3, zoo.VOCABULARY, (4, zoo.TOKENS))
        wrapped = Logits(model, names)
    else:
        inputs, target = [torch.randn(4, 3, zoo.PIXELS, zoo.PIXELS)], torch.randint(zoo.LABELS, (4,))
        wrapped = ImageLogits(model, names)
    plan = get_plan(name, model)
    wrapped.train()
    with torch.enable_grad():
        program = torch.export.export(wrapped, tuple(inputs), strict=False)
    case = exported.Case(folder / name, program)
    losses = exported.train_with_torch(
        wrapped, inputs, target, torch.optim.SGD(wrapped.parameters(), lr=RATE, momentum=MOMENTUM), STEPS,
        loss=lambda logits, target: nn.functional.cross_entropy(logits.flatten(0, -2), target.flatten()))
    trained = wrapped.state_dict()
    (case.folder / "train.yaml").write_text(f"loss: cross_entropy\noptimizer: {{name: SGD, lr: {RATE}, momentum: {MOMENTUM}}}\n")
    for mesh in ({"tp": 1}, {"dp": 2, "tp": 2}):
        text = {"mesh": mesh, **plan} | ({"data_parallel": {"dp": "fsdp"}} if "dp" in mesh else {})
        (case.folder / "plan.json").write_text(json.dumps(text))
        exported.run("tp-opt", case.folder / "model.mlir", "-o", case.folder / "ranks.mlir",
                     f"--tp-parallelize=plan={case.folder / 'plan.json'} train={case.folder / 'train.yaml'}")
        exported.run("tp-compile", case.folder / "ranks.mlir", "-o", case.folder / "model.tpx")
        ours = exported.train_compiled(case.folder, dict(zip(case.inputs, inputs)), target, STEPS,
                                       "--output-weights", case.folder / "trained.safetensors")
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(losses), rtol=TOLERANCE, atol=TOLERANCE)
        for key, value in safetensors.torch.load_file(case.folder / "trained.safetensors").items():
            if not trained[key].is_floating_point():
                torch.testing.assert_close(value, trained[key])
                continue
            difference, largest = (value - trained[key]).abs().max(), trained[key].abs().max()
            if not difference <= TOLERANCE * largest:
                raise AssertionError(f"'{key}' differs by {difference / largest:.1e} on {mesh}")
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FAMILIES)} (default: all)")
    names = parser.parse_args().names or list(FAMILIES)
    failures = 0
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            try:
                losses = check(name, pathlib.Path(temporary))
                print(f"{name}: {STEPS} steps agree, the loss goes from {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)
            except (AssertionError, RuntimeError, zoo.Failed) as error:
                failures += 1
                print(f"FAIL {name}: {error}", flush=True)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
