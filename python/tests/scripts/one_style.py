# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One style for the module itself, and the empty name.
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
first = parallelize_module(torch.nn.Linear(10, 16), tp_mesh, ColwiseParallel(output_layouts=Replicate()))
second = parallelize_module(torch.nn.Linear(16, 10), tp_mesh, {"": RowwiseParallel(input_layouts=Replicate())})
result = second(first(torch.rand(4, 10)))
