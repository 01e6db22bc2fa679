# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# torchtitan's Qwen 3: norms of queries and keys are split along the heads.
import os

import torch
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import SequenceParallel
from torchtitan import apply_tp

tp_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),), mesh_dim_names=("tp",))

model = Transformer(as_dict=True, qk_norm=True)
apply_tp(model, tp_mesh, attention_plan={
    "attention.q_norm": SequenceParallel(sequence_dim=2, use_local_output=True),
    "attention.k_norm": SequenceParallel(sequence_dim=2, use_local_output=True),
})
with torch.no_grad():
    result = model(make_tokens())
