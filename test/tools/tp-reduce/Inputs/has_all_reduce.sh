#!/bin/sh
# Interesting is what still needs an all_reduce. mlir-reduce's convention: 1 is interesting, 0 isn't.
! tp-opt "$1" --tp-parallelize 2>/dev/null | grep -q tp.all_reduce
