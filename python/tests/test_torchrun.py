# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that are processes: what they compute, against ranks that are threads, and what they say if one of them fails."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
import warnings

import ranks
import torch

FOLDER = pathlib.Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
# One thread for each process; the processes don't say what plans could do better.
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def start(script, *arguments, size):
    """Starts processes as torchrun does, which doesn't end the others if one of them ends. The processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = ENVIRONMENT | {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [subprocess.Popen([sys.executable, FOLDER / script, *arguments], env=common | {"RANK": str(rank)}, stderr=subprocess.DEVNULL)
            for rank in range(size)]


class Results(unittest.TestCase):
    def check(self, size):
        with tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            expected = ranks.run(size)
            subprocess.run([*TORCHRUN, str(size), FOLDER / "ranks.py", str(size), folder], env=ENVIRONMENT, check=True)
            for rank in range(size):
                found = torch.load(pathlib.Path(folder, f"{rank}.pt"))
                for case, tensors in expected.items():
                    tolerance = 1e-4 if case in ("differentiate", "train", "train_fsdp") else 1e-5
                    with self.subTest(case, rank=rank):
                        torch.testing.assert_close(found[case], tensors, rtol=tolerance, atol=tolerance)

    def test_two_ranks(self):
        self.check(2)

    def test_four_ranks(self):
        self.check(4)


class Failures(unittest.TestCase):
    def collect(self, end, size):
        """What each rank was told, by case. The last one isn't told why it ends."""
        with tempfile.TemporaryDirectory() as folder:
            processes = start("failing_ranks.py", folder, end, size=size)
            try:
                self.assertEqual([process.wait(150) for process in processes[:-1]], [0] * (size - 1))
            finally:
                for process in processes:
                    process.kill()
                    process.wait()
            lines = [pathlib.Path(folder, str(rank)).read_text().splitlines() for rank in range(size)]
        return [dict(line.split(": ", 1) for line in each) for each in lines]

    def test_a_rank_is_killed(self):
        for told in self.collect("kill", 3)[:2]:
            self.assertEqual(told["call"], "nothing")  # parallelize_module has made the parameters equal
            self.assertEqual(told["mesh"], "MeshError: a mesh has one rank for each process, or all of its ranks in one process: this "
                                           "one has 4 ranks, and 3 processes run this script")
            self.assertRegex(told["inputs"], r"^ExecutionError: rank \d failed.*: the ranks don't agree on the input 'ids': it is "
                                             "'3x2xi64 with the digest .*' on rank 0, '3x2xi64 with the digest .*' on rank 2$")
            self.assertRegex(told["parameters"], r"^ExecutionError: rank \d failed.*: the ranks don't agree on the parameter 'down.bias': ")
            self.assertRegex(told["index"], "^ExecutionError: rank 2 failed.*: embed: embedding of input 'ids': index 11 is out of range")
            self.assertEqual(told["again"], "nothing")
            self.assertRegex(told["kill"], r"^ExecutionError: rank \d failed (in|after) collective 0 \(all_reduce of 'down'\): the ranks "
                                           "can't exchange data: .*; no answer from rank 2 within 2 s")

    def test_a_rank_is_stopped(self):
        told, other = self.collect("stop", 2)
        self.assertEqual(other["work"], "nothing")  # it waits for more than the timeout, because rank 0 works so long
        self.assertRegex(told["stop"], r"^ExecutionError: rank 0 failed (in|after) collective 0 \(all_reduce of 'down'\): the ranks can't "
                                       "exchange data: .*imed out.*; no answer from rank 1 within 2 s; the timeout of the process group is 4 s")


class Exit(unittest.TestCase):
    def test_gloos_threads_end_before_python(self):
        """Else they abort the process if they free a tensor while Python ends."""
        with tempfile.TemporaryDirectory() as folder:
            processes = start("exiting_ranks.py", folder, size=2)
            self.assertEqual([process.wait(150) for process in processes], [0, 0])
            for rank in range(2):
                before, after, end = json.loads(pathlib.Path(folder, str(rank)).read_text())
                self.assertGreater(after, before)
                self.assertEqual(end, before)


if __name__ == "__main__":
    unittest.main()
