"""Saves models both as traces and as programs of torch.export: same.py <directory>"""

import pathlib
import sys
import warnings

import torch
from torch import nn
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")
torch.manual_seed(0)


class Llama(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False, return_dict=False)[0]


class Bert(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask, return_dict=False)[0]


llama = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, max_position_embeddings=16)
bert = BertConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                  max_position_embeddings=16)
ids = torch.randint(0, 64, (2, 8))
mask = torch.ones(2, 8, dtype=torch.int64)
for name, model, inputs in ("llama", Llama(LlamaForCausalLM(llama)), (ids,)), ("bert", Bert(BertModel(bert)), (ids, mask)):
    model.eval()
    # A trace doesn't know which buffers are persistent.
    for module in model.modules():
        module._non_persistent_buffers_set.clear()
    torch.export.save(torch.export.export(model, inputs), directory / f"{name}.pt2")
    torch.jit.trace(model, inputs, check_trace=False).save(directory / f"{name}.pt")
