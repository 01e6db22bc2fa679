# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# As in pytorch/examples: the batch is split between modules, and each rank returns its rows.
import os

import torch
from tiny import ToyModel
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

device_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),))
sp_model = parallelize_module(
    module=ToyModel(),
    device_mesh=device_mesh,
    parallelize_plan={
        "in_proj": ColwiseParallel(input_layouts=Shard(0)),
        "out_proj": RowwiseParallel(output_layouts=Shard(0)),
    },
)
optimizer = torch.optim.AdamW(sp_model.parameters(), lr=0.25, foreach=True)
result = []
for _ in range(2):
    output = sp_model(torch.rand(20, 10))
    output.sum().backward()
    optimizer.step()
    result.append(output)
