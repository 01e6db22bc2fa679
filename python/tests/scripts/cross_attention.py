# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Layouts of keyword arguments.
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
model = parallelize_module(EncoderDecoder(), tp_mesh, {
    "encoder.0": ColwiseParallel(),
    "encoder.2": RowwiseParallel(output_layouts=Shard(1)),
    "cross": PrepareModuleInput(input_kwarg_layouts={"context": Shard(1)}, desired_input_kwarg_layouts={"context": Replicate()},
                                use_local_output=True),
    "cross.q": ColwiseParallel(),
    "cross.k": ColwiseParallel(),
    "cross.v": ColwiseParallel(),
    "cross.o": RowwiseParallel(),
})
x, context = torch.randn(2, 6, DIM), torch.randn(2, 8, DIM)
result = model(x, context=context)
