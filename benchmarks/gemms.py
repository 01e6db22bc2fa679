#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time the matrix products of a forward pass of training_peers.py's model alone: the same shapes, f32, by the OpenBLAS that
libtprt uses, with two threads. What no program that calls OpenBLAS can be faster than. Prints the seconds of each pass."""

import argparse
import ctypes
import ctypes.util
import sys
import time

import numpy as np

import short

LAYERS, DIM, HEADS, HIDDEN = 4, 512, 8, 1536
BATCH, LENGTH = 2, 256
THREADS = 2
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


def load():
    path = ctypes.util.find_library("openblas")
    if not path:
        sys.exit("error: OpenBLAS isn't installed (Debian: libopenblas-dev)")
    library = ctypes.CDLL(path)
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    library.cblas_sgemm.argtypes = [integer] * 6 + [ctypes.c_float, pointer, integer, pointer, integer, ctypes.c_float,
                                                    pointer, integer]
    library.openblas_set_num_threads(THREADS)
    return library


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passes", type=int, nargs="?", default=15, help="default: %(default)s")
    short.add_option(parser, passes=1)
    arguments = parser.parse_args()
    library = load()
    rng = np.random.default_rng(0)

    def matrix(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    tokens, head = BATCH * LENGTH, DIM // HEADS
    linear = [(DIM, DIM)] * 4 + [(HIDDEN, DIM)] * 2 + [(DIM, HIDDEN)]  # out, in features
    layers = [[(matrix(tokens, k), matrix(n, k), matrix(tokens, n)) for n, k in linear] for _ in range(LAYERS)]
    scores, values = matrix(LENGTH, LENGTH), matrix(LENGTH, head)
    queries, keys, mixed = matrix(LENGTH, head), matrix(LENGTH, head), matrix(LENGTH, head)

    def multiply(a, b, c, transposed):
        (m, n), k = c.shape, a.shape[1]
        library.cblas_sgemm(ROW_MAJOR, PLAIN, TRANSPOSED if transposed else PLAIN, m, n, k, 1.0, a.ctypes.data, k,
                            b.ctypes.data, k if transposed else n, 0.0, c.ctypes.data, n)

    for _ in range(arguments.passes):
        start = time.perf_counter()
        for products in layers:
            for a, b, c in products:
                multiply(a, b, c, True)
            for _ in range(BATCH * HEADS):
                multiply(queries, keys, scores, True)
                multiply(scores, values, mixed, False)
        print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
