# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that work which is repeated leaves nothing behind."""

import gc
import os


def count_resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def check_growth(test, work, limit, repeat=3):
    """Does `work` twice, then `repeat` times: these add less than `limit` bytes to this process, and no open file."""

    def measure():
        work()
        gc.collect()
        return count_resident_bytes()

    measure()
    before = measure()
    descriptors = len(os.listdir("/proc/self/fd"))
    after = [measure() for _ in range(repeat)][-1]
    test.assertLess(after - before, limit)
    test.assertEqual(len(os.listdir("/proc/self/fd")), descriptors)
