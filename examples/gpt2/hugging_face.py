# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2 as Hugging Face transformers writes it: fused c_attn, Conv1D."""

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2Model

from gpt2.model import Config


class HiddenStates(nn.Module):
    """Maps token ids (B×T, int64) to the last hidden states (B×T×dim, f32)."""

    def __init__(self, config: Config):
        super().__init__()
        self.gpt2 = GPT2Model(GPT2Config(
            vocab_size=config.vocab_size, n_positions=config.max_seq_len, n_embd=config.dim,
            n_layer=config.n_layers, n_head=config.n_heads, use_cache=False,
            bos_token_id=None, eos_token_id=None))

    def forward(self, ids: Tensor) -> Tensor:
        return self.gpt2(input_ids=ids, use_cache=False).last_hidden_state


def build(config: Config = Config(), seed: int = 0) -> HiddenStates:
    """The decoder with random weights, the same for the same seed."""
    torch.manual_seed(seed)
    return HiddenStates(config).eval()
