# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the threads of gloo: before the package's first call, after it, and when Python ends; a script for several processes: FOLDER."""

import atexit
import json
import pathlib
import sys
import time

counts = []


@atexit.register  # before the package's own function, so called after it
def count():
    names = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
    counts.append(names.count("pt_gloo_runloop"))
    pathlib.Path(sys.argv[1], str(dist.get_rank())).write_text(json.dumps(counts))


import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import tp_mlir as tp  # noqa: E402

dist.init_process_group("gloo")
time.sleep(1)  # until the threads have names
count()
module = tp.parallelize_module(torch.nn.Sequential(torch.nn.Linear(4, 4)), {"tp": 2}, {"0": tp.ColwiseParallel()})
with torch.no_grad():
    module(torch.ones(2, 4))
count()
