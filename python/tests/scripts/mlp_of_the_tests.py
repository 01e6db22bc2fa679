# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# PyTorch's tests of parallelize_module: an MLP, its input and output split along the batch.
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
model = parallelize_module(MLPModule(), tp_mesh, {
    "net1": ColwiseParallel(input_layouts=Shard(0)),
    "net2": RowwiseParallel(output_layouts=Shard(0)),
})
x = torch.rand(8, 10, requires_grad=True)
output = model(x)
output.sum().backward()
result = [output, x.grad]
