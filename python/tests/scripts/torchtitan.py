# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How torchtitan splits its Llama 3, for the scripts torchtitan_*.py.
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)


def apply_tp(model, tp_mesh, loss_parallel=False, enable_sp=True, attention_plan={}):
    sp = Shard(1) if enable_sp else Replicate()
    norm = SequenceParallel() if enable_sp else None
    plan = {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=sp),
        "output": ColwiseParallel(input_layouts=sp, output_layouts=Shard(-1) if loss_parallel else Replicate(),
                                  use_local_output=not loss_parallel),
    }
    if norm:
        plan["norm"] = norm
    parallelize_module(model, tp_mesh, plan)
    for transformer_block in model.layers.values():
        layer_plan = {
            "attention": PrepareModuleInput(input_layouts=(sp, None), desired_input_layouts=(Replicate(), None)),
            "attention.wq": ColwiseParallel(),
            "attention.wk": ColwiseParallel(),
            "attention.wv": ColwiseParallel(),
            "attention.wo": RowwiseParallel(output_layouts=sp),
            "feed_forward": PrepareModuleInput(input_layouts=(sp,), desired_input_layouts=(Replicate(),)),
            "feed_forward.w1": ColwiseParallel(),
            "feed_forward.w2": RowwiseParallel(output_layouts=sp),
            "feed_forward.w3": ColwiseParallel(),
            **attention_plan,
        }
        if norm:
            layer_plan |= {"attention_norm": norm, "ffn_norm": norm}
        parallelize_module(module=transformer_block, device_mesh=tp_mesh, parallelize_plan=layer_plan)
