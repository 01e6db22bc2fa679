"""A small Llama of transformers, traced with its signatures: huggingface.py <folder of tp_trace.py> <dir>"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, sys.argv[1])
import tp_trace


class Model(nn.Module):
    """The logits alone, without the objects that a trace can't return."""

    def __init__(self, model):
        super().__init__()
        self.llama = model

    def forward(self, ids):
        return self.llama(input_ids=ids, use_cache=False).logits


directory = Path(sys.argv[2])
directory.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=16)
model = Model(LlamaForCausalLM(config)).eval()
ids = torch.randint(0, 64, (2, 8))
tp_trace.save(model, (ids,), directory / "model.pt")
torch.jit.trace(model, (ids,), check_trace=False).save(str(directory / "plain.pt"))
np.save(directory / "ids.npy", ids.numpy())
np.save(directory / "logits.npy", model(ids).detach().numpy())
