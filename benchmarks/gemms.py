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


class Products:
    """Products of random f32 matrices: (m, n, k) of each that has its second operand transposed, as a linear layer has its
    weight, and how many heads of how many queries, keys and features attention has after them, in full."""

    def __init__(self, linear, attention):
        self.library = load()
        rng = np.random.default_rng(0)

        def matrix(*shape):
            return rng.standard_normal(shape, dtype=np.float32)

        self.linear = [(matrix(m, k), matrix(n, k), matrix(m, n)) for m, n, k in linear]
        self.heads, queries, keys, size = attention
        self.queries, self.keys, self.scores, self.mixed = (matrix(queries, size), matrix(keys, size), matrix(queries, keys),
                                                            matrix(queries, size))

    def multiply(self, a, b, c, transposed):
        (m, n), k = c.shape, a.shape[1]
        self.library.cblas_sgemm(ROW_MAJOR, PLAIN, TRANSPOSED if transposed else PLAIN, m, n, k, 1.0, a.ctypes.data, k,
                                 b.ctypes.data, k if transposed else n, 0.0, c.ctypes.data, n)

    def time(self):
        """Seconds of all of them."""
        start = time.perf_counter()
        for a, b, c in self.linear:
            self.multiply(a, b, c, True)
        for _ in range(self.heads):
            self.multiply(self.queries, self.keys, self.scores, True)
            self.multiply(self.scores, self.keys, self.mixed, False)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passes", type=int, nargs="?", default=15, help="default: %(default)s")
    short.add_option(parser, passes=1)
    arguments = parser.parse_args()
    tokens = BATCH * LENGTH
    layer = [(tokens, DIM, DIM)] * 4 + [(tokens, HIDDEN, DIM)] * 2 + [(tokens, DIM, HIDDEN)]
    products = Products(LAYERS * layer, (LAYERS * BATCH * HEADS, LENGTH, LENGTH, DIM // HEADS))
    for _ in range(arguments.passes):
        print(products.time())


if __name__ == "__main__":
    main()
