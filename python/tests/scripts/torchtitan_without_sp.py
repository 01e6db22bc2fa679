# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# torchtitan's Llama 3 without sequence parallelism, and grouped-query attention.
import os

import torch
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torchtitan import apply_tp

tp_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),), mesh_dim_names=("tp",))

model = Transformer(as_dict=True, kv_heads=2)
apply_tp(model, tp_mesh, enable_sp=False)
with torch.no_grad():
    result = model(make_tokens())
