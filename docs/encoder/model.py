# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small encoder with random weights and MiniLM's module names: writes model.pt2, model.pt,
model.signature.json, ids.npy, mask.npy and y_ref.npy."""

import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tools/tp-import")]
import tp_trace
from minilm.model import SentenceEncoder

warnings.simplefilter("ignore")  # a trace holds for these shapes only
logging.disable()
torch.manual_seed(0)
bert = BertModel(BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                            intermediate_size=64, max_position_embeddings=64), add_pooling_layer=False)
model = SentenceEncoder(bert).eval()
ids, mask = torch.randint(0, 100, (2, 64)), torch.ones(2, 64, dtype=torch.int64)
np.save("ids.npy", ids.numpy())
np.save("mask.npy", mask.numpy())
with torch.no_grad():
    np.save("y_ref.npy", model(ids, mask).numpy())
    tp_trace.save(model, (ids, mask), "model.pt")
    torch.export.save(torch.export.export(model, (ids, mask)), "model.pt2")
