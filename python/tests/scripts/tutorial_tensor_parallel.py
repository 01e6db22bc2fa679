# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The first plan of the tutorial of tensor parallelism: each block by itself, in a loop, without sequence parallelism.
import os

import torch
from tiny import Transformer, make_tokens
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

tp_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),))
layer_tp_plan = {
    "attention.wq": ColwiseParallel(),
    "attention.wk": ColwiseParallel(),
    "attention.wv": ColwiseParallel(),
    "attention.wo": RowwiseParallel(),
    "feed_forward.w1": ColwiseParallel(),
    "feed_forward.w2": RowwiseParallel(),
    "feed_forward.w3": ColwiseParallel(),
}
model = Transformer()
for block in model.layers:
    parallelize_module(block, tp_mesh, layer_tp_plan)
parallelize_module(model, tp_mesh, {
    "tok_embeddings": RowwiseParallel(input_layouts=Replicate()),
    "output": ColwiseParallel(output_layouts=Replicate()),
})
with torch.no_grad():
    result = model(make_tokens())
