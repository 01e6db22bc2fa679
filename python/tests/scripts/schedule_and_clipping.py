# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A scheduler and clipping, both PyTorch's.
import os

import torch
import torch.nn.functional as F
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, PrepareModuleInputOutput,
                                               PrepareModuleOutput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)

tp_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),), mesh_dim_names=("tp",))
model = parallelize_module(ToyModel(), tp_mesh, {"in_proj": ColwiseParallel(), "out_proj": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
result = []
for _ in range(3):
    optimizer.zero_grad()
    loss = (model(torch.rand(4, 10)) - 1).square().mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=False)
    optimizer.step()
    scheduler.step()
    result.append(loss)
