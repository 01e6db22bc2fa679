"""Which of its cases a script takes: all of them by hand, and a part of them as a test."""

import os


def take(cases):
    """Every n-th of `cases`, where TP_TEST_STRIDE is n; lit sets it (--param stride=1 for all)."""
    return list(cases)[:: int(os.environ.get("TP_TEST_STRIDE", 1))]
