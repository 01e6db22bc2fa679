# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scripts for PyTorch, of which only the imports change: they compute on several ranks what PyTorch computes.

Each script in scripts/ runs twice: as it is, in PyTorch, with a process group of one process; and with its imports from
torch.distributed replaced, on two ranks for each mesh dimension. Both leave their results in `result`.
"""

import contextlib
import os
import pathlib
import re
import sys
import types
import unittest
import unittest.mock
import warnings

import torch
import torch.distributed as dist
from torch.utils import _pytree as pytree

from tp_mlir.executable import Executable

FOLDER = pathlib.Path(__file__).parent / "scripts"
# What scripts import: models, and code that has imports to replace itself.
MODELS, SHARED = "tiny", "torchtitan"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.stem not in (MODELS, SHARED))
IMPORT = re.compile(r"^from torch\.distributed[.\w]* import", re.M)


def load(path, translate):
    """The script as a module, its text translated."""
    module = types.ModuleType(path.stem)
    exec(compile(translate(path.read_text()), path, "exec"), vars(module))
    return module


def run(path, ranks, translate):
    os.environ |= {"DP_SIZE": str(ranks), "TP_SIZE": str(ranks)}
    sys.modules[SHARED] = load(FOLDER / f"{SHARED}.py", translate)
    torch.manual_seed(0)
    leaves = pytree.tree_leaves(load(path, translate).result)
    return [(leaf.full_tensor() if hasattr(leaf, "full_tensor") else leaf).detach() for leaf in leaves]


@contextlib.contextmanager
def recorded():
    """Gives a list of the programs that run in it, each with its ranks' counts of collectives."""
    runs, run_program = [], Executable.run_without_update

    def record(executable, *args, **options):
        outputs = run_program(executable, *args, **options)
        runs.append((executable, executable.bundle.weights.session.last_run.counts))
        return outputs

    with unittest.mock.patch.object(Executable, "run_without_update", record):
        yield runs


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(FOLDER))
        warnings.simplefilter("ignore")

    def check(self, path):
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
        try:
            expected = run(path, 1, str)
        finally:
            with contextlib.suppress(ValueError):
                dist.destroy_process_group()
        with recorded() as runs:
            found = run(path, 2, lambda text: IMPORT.sub("from tp_mlir import", text))
        self.assertTrue(runs, "no program ran")
        for executable, counts in runs:
            self.assertEqual(len(counts), len(executable.sharded.plan.layout.ranks))
            self.assertGreater(len(counts), 1)
            if executable.report.collectives:
                for rank in counts:
                    self.assertGreater(sum(count.calls for count in rank), 0)
        self.assertEqual(len(found), len(expected))
        for ours, theirs in zip(found, expected):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def add_test(path):
    setattr(Scripts, f"test_{path.stem}", lambda self: self.check(path))


for path in SCRIPTS:
    add_test(path)

if __name__ == "__main__":
    unittest.main()
