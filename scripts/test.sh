#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds everything and runs all tests: lit, GoogleTest, and the end-to-end examples.
#
#   scripts/test.sh [--preset release|dev|asan-ubsan] [CTEST OPTION…]
#
# The exit code is 0 when every test passes; the last line is ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
if [ "${1:-}" = --preset ]; then
  preset=${2:?"--preset needs a name"}
  shift 2
fi

scripts/setup.sh

printf '== building with the preset %s\n' "$preset"
cmake --preset "$preset"
cmake --build --preset "$preset-tests"

printf '== testing\n'
status=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT
ctest --preset "$preset" "$@" | tee "$output" || status=$?
grep -E 'tests passed' "$output" | tail -n 1
exit "$status"
