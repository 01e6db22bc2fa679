# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Batches of several sizes, and a state_dict that goes to an eager model.
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
model = parallelize_module(ToyModel().eval(), tp_mesh, {"in_proj": ColwiseParallel(), "out_proj": RowwiseParallel()})
with torch.no_grad():
    result = [model(torch.rand(size, 10)) for size in (1, 4, 7, 4)]
eager = ToyModel()
eager.load_state_dict({name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
                       for name, tensor in model.state_dict().items()})
result.append(eager(torch.rand(2, 10)))
