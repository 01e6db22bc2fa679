# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every layout of a Linear's input and output.
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
x, result = torch.rand(4, 6, 8), []
for style in (ColwiseParallel, RowwiseParallel):
    for layout in (Shard(0), Shard(1), Replicate()):
        linear = parallelize_module(torch.nn.Linear(8, 12), tp_mesh, style(input_layouts=layout, output_layouts=layout))
        with torch.no_grad():
            result.append(linear(x))
