# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Two calls over different dimensions of a mesh.
import os

import torch
import torch.nn.functional as F
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, PrepareModuleInputOutput,
                                               PrepareModuleOutput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)
from torch.distributed.fsdp import fully_shard

world_mesh = init_device_mesh("cpu", (int(os.environ["DP_SIZE"]), int(os.environ["TP_SIZE"])), mesh_dim_names=("dp", "tp"))
tp_mesh, dp_mesh = world_mesh["tp"], world_mesh["dp"]
model = MLPModule()
parallelize_module(model, tp_mesh, {"net1": ColwiseParallel(), "net2": RowwiseParallel()})
fully_shard(model, mesh=dp_mesh, reshard_after_forward=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
result = []
for _ in range(3):
    optimizer.zero_grad(set_to_none=True)
    loss = model(torch.rand(8, 10)).square().mean()
    loss.backward()
    optimizer.step()
    result.append(loss)
