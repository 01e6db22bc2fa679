# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# PrepareModuleInput, PrepareModuleOutput and both in one, around MLPs.
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
x, result = torch.rand(4, 10), []
mlp = {"net1": ColwiseParallel(), "net2": RowwiseParallel()}
for style in (PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_output=True),
              PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0)),
              PrepareModuleInputOutput(input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_input=True,
                                       output_layouts=Replicate(), desired_output_layouts=Shard(0))):
    model = parallelize_module(MLPModule(), tp_mesh, mlp)
    model = parallelize_module(model, tp_mesh, style)
    with torch.no_grad():
        result.append(model(x))
