# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A row-wise product whose output is declared before its sum is.
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
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.GELU(), torch.nn.Linear(16, 10), torch.nn.LayerNorm(10))
parallelize_module(model, tp_mesh, {
    "0": ColwiseParallel(),
    "2": RowwiseParallel(output_layouts=Shard(0)),
    "3": SequenceParallel(sequence_dim=0, use_local_output=True),
})
with torch.no_grad():
    result = model(torch.rand(4, 10))
