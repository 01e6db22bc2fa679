# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# torchtitan's Llama 3: FSDP for each block, over tensor parallelism.
import os

import torch
import torch.nn.functional as F
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchtitan import apply_tp

world_mesh = init_device_mesh("cpu", (int(os.environ["DP_SIZE"]), int(os.environ["TP_SIZE"])), mesh_dim_names=("dp", "tp"))
tp_mesh, dp_mesh = world_mesh["tp"], world_mesh["dp"]

model = Transformer(as_dict=True, layers=2)
apply_tp(model, tp_mesh)
for transformer_block in model.layers.values():
    fully_shard(transformer_block, mesh=dp_mesh, reshard_after_forward=True)
fully_shard(model, mesh=dp_mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
result = []
for _ in range(2):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(make_tokens()).flatten(0, 1), make_tokens().flatten())
    loss.backward()
    optimizer.step()
    result.append(loss)
