#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Lets each system call of the tools' writing paths fail, in every way, and checks what is left
# (docs/Security.md).
#
#   scripts/faults.sh [OPTION…]      the options of test/Faults/faults.py; '--only tp-compile'
#                                    runs the commands with that in their names
#
# It takes about half an hour on two free cores. The test 'faults' of ctest tries some of the same
# faults. The exit code is 0 when nothing is lost. The last line counts the faults.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release
cmake --build --preset release --target all tp-inject
exec .venv/bin/python test/Faults/faults.py --bin build/bin --inject build/bin/tp-inject \
  --out build/faults "$@"
