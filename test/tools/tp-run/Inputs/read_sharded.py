"""Reads a checkpoint as Hugging Face's tools do, and compares it with a file.

usage: read_sharded.py CHECKPOINT FILE
"""

import sys

import torch
from huggingface_hub import load_torch_model
from safetensors.torch import load_file

checkpoint, path = sys.argv[1:]
expected = load_file(path)
model = torch.nn.Module()
for name, value in expected.items():
    model.register_parameter(name, torch.nn.Parameter(torch.full_like(value, -7)))
result = load_torch_model(model, checkpoint, strict=True)
assert not result.missing_keys and not result.unexpected_keys, result
for name, value in model.state_dict().items():
    assert torch.equal(value, expected[name]), name
