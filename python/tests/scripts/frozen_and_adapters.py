# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Low-rank adapters beside frozen weights.
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
class Adapted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.a, self.b = torch.nn.Linear(10, 16), torch.nn.Linear(10, 4, bias=False), torch.nn.Linear(4, 16, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


model = torch.nn.Sequential(Adapted(), torch.nn.Linear(16, 10))
parallelize_module(model, tp_mesh, {"0.base": ColwiseParallel(), "0.b": ColwiseParallel(), "1": RowwiseParallel()})
loss = model(torch.rand(4, 10)).square().sum()
loss.backward()
grad = model[0].b.weight.grad
result = [loss, model[0].a.weight.grad, grad.full_tensor() if hasattr(grad, "full_tensor") else grad]
