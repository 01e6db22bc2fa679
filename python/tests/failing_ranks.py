# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A script of several processes, of which some do wrong.

usage: failing_ranks.py FOLDER kill|stop

Each process writes what it is told to FOLDER/RANK, one line for each case. At last, the last one is killed or stopped.
"""

import contextlib
import datetime
import os
import pathlib
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

import tp_mlir as tp
from tp_mlir.mesh import read_mesh
from tp_mlir.processes import rank_zero_first

TIMEOUT = 4  # for a rank that is stopped, in seconds


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, ids):
        return self.down(torch.relu(self.up(self.embed(ids))))


def parallelize(mesh, **options):
    return tp.parallelize_module(Model(), mesh, {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}, **options)


@contextlib.contextmanager
def told(output, case):
    text = "nothing"
    try:
        yield
    except tp.Error as error:
        text = f"{type(error).__name__}: {error}"
    print(f"{case}: {text}", file=output, flush=True)


def fail(output, rank, size):
    last = rank == size - 1
    mesh = tp.init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    ids = torch.arange(2 * size).view(size, 2) % 10
    model = parallelize(mesh)  # each process has made other parameters
    with told(output, "call"):
        model(ids)
    with told(output, "mesh"):
        read_mesh({"tp": size + 1})
    with told(output, "inputs"):
        model(ids + last)
    with told(output, "parameters"):
        parallelize(mesh, src_data_rank=None)(ids)
    torch.manual_seed(0)
    split = tp.fully_shard(Model(), mesh=mesh)
    with told(output, "index"):  # in the part of the batch that the last rank has
        wrong = ids.clone()
        wrong[-1] = 11
        split(wrong)
    with told(output, "again"):
        split(ids)


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), size, rank == 0)  # waits for all
    timeout = TIMEOUT if sys.argv[2] == "stop" else 60
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=timeout))
    torch.manual_seed(rank)
    with torch.no_grad(), open(pathlib.Path(sys.argv[1], str(rank)), "w") as output:
        if sys.argv[2] == "kill":
            fail(output, rank, size)
        else:
            with told(output, "work"), rank_zero_first("work"):
                time.sleep(TIMEOUT + 1 if rank == 0 else 0)
        model = parallelize(tp.init_device_mesh("cpu", (size,)))
        ids = torch.zeros(2, 2, dtype=torch.int64)
        model(ids)
        if rank == size - 1:
            end = signal.SIGKILL if sys.argv[2] == "kill" else signal.SIGSTOP
            threading.Timer(0.2, os.kill, (os.getpid(), end)).start()
        with told(output, sys.argv[2]):
            while True:
                model(ids)


if __name__ == "__main__":
    main()
