# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# torchtitan's Llama 3: sequence and loss parallelism.
import os

import torch
import torch.nn.functional as F
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import loss_parallel
from torchtitan import apply_tp

tp_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),), mesh_dim_names=("tp",))

model = Transformer(as_dict=True)
apply_tp(model, tp_mesh, loss_parallel=True)
with loss_parallel():
    loss = F.cross_entropy(model(make_tokens()).flatten(0, 1).float(), make_tokens().flatten(0, 1))
    loss.backward()
result = [loss, model.layers["0"].feed_forward.w2.weight.grad]
