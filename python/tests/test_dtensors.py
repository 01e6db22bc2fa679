# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules whose parameters are DTensors, in several processes (dtensor_ranks.py) and in one."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import torch
import torch.distributed as dist
from networks import MESH, MLP, make, parallelize

import tp_mlir as tp

FOLDER = pathlib.Path(__file__).parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


CASES = ("calls", "ways_to_make", "redistributions", "gradients", "training_in", "training_fsdp", "training_out", "out_of_calls")


class Processes(unittest.TestCase):
    def run_cases(self, size, *cases):
        """What the last of the cases returns, by rank."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size), FOLDER / "dtensor_ranks.py", folder,
                            *cases], env=ENVIRONMENT, check=True)
            return [pathlib.Path(folder, str(rank)).read_text() for rank in range(size)]

    def test_one_rank(self):
        self.run_cases(1, *CASES)

    def test_two_ranks(self):
        self.run_cases(2, *CASES)

    def test_four_ranks(self):
        self.run_cases(4, *CASES)

    def test_memory(self):
        whole = 96 << 20  # of one parameter, of which a rank has a quarter; there are two
        for text in self.run_cases(4, "memory"):
            called, trained = map(int, text.split())
            self.assertLess(called, whole)
            # A training program has blocks of its own, and those of the gradients.
            self.assertLess(trained, 3 * 2 * whole // 4 + whole)

    def test_errors(self):
        self.run_cases(2, "errors")


class OneProcess(unittest.TestCase):
    def test_ranks_that_are_threads(self):
        model = parallelize(make(MLP))
        with torch.no_grad():
            model(torch.ones(4, 8))
        with self.assertRaisesRegex(tp.UnsupportedError, r"test_dtensors.py:\d+:\d+: the 2 ranks of the program are threads of this process, and a "
                                                         "DTensor has one process for each rank: start the script with torchrun"):
            tp.distribute(model)
        alone = tp.parallelize_module(make(MLP), {"tp": 1}, {"up": tp.ColwiseParallel()}, example_inputs=torch.ones(4, 8))
        with self.assertRaisesRegex(tp.UnsupportedError, "DTensors need a process group: start the script with torchrun, or call "
                                                         "torch.distributed.init_process_group first"):
            tp.distribute(alone)

    def test_blocks_of_other_processes(self):
        """The backend 'fake' has DTensors of several ranks in one process, which has one block of each."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Shard, distribute_tensor
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
        try:
            mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
            weight = torch.nn.Parameter(distribute_tensor(torch.ones(16, 8), mesh, [Shard(0)]))
            for plan in None, {"down": tp.RowwiseParallel()}:
                model = make(MLP)
                model.up.weight = weight
                with self.assertRaisesRegex(tp.WeightError, "'up.weight' is a DTensor over 2 ranks, of which this process has one block, and ranks "
                                                            "that are threads of one process need all; start one process for each rank"):
                    tp.parallelize_module(model, MESH, plan)
            model = parallelize(make(MLP))
            with torch.no_grad():
                model(torch.ones(4, 8))
                model.up.weight = weight
                with self.assertRaisesRegex(tp.WeightError, "'up.weight' is a DTensor over 2 ranks, of which"):
                    model(torch.ones(4, 8))
        finally:
            dist.destroy_process_group()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
