# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Only the blocks are split; the model around them is eager.
import os

import torch
from tiny import Transformer, make_tokens
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

tp_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),))
model = Transformer()
for block in model.layers:
    parallelize_module(block, tp_mesh, {"feed_forward.w[13]": ColwiseParallel(), "feed_forward.w2": RowwiseParallel()})
loss = torch.nn.functional.cross_entropy(model(make_tokens()).flatten(0, 1), make_tokens().flatten())
loss.backward()
result = [loss, model.tok_embeddings.weight.grad]
