# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# As in pytorch/examples, distributed/tensor_parallelism.
import os

import torch
from tiny import ToyModel
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

device_mesh = init_device_mesh(device_type="cpu", mesh_shape=(int(os.environ["TP_SIZE"]),))
tp_model = ToyModel().to("cpu")
tp_model = parallelize_module(
    module=tp_model,
    device_mesh=device_mesh,
    parallelize_plan={
        "in_proj": ColwiseParallel(),
        "out_proj": RowwiseParallel(),
    },
)
optimizer = torch.optim.AdamW(tp_model.parameters(), lr=0.25, foreach=True)
result = []
for i in range(3):
    torch.manual_seed(i)
    inp = torch.rand(20, 10, device="cpu")
    output = tp_model(inp)
    output.sum().backward()
    optimizer.step()
    result.append(output)
