#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds a wheel of the Python package in dist/, and tests it in a new environment
# that has nothing but NumPy, and then with PyTorch.
#
#   scripts/wheel.sh [--build FOLDER] [TORCH…]
#
# The importers are built for the PyTorch of .venv, and for each TORCH, the
# 'torch' directory of another version. FOLDER (build-wheel) is the build; an
# existing build of the project is configured for a wheel, which links only
# libtprt again.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build-wheel
if [ "${1:-}" = --build ]; then
  build=$2
  shift 2
fi
case "${1:-}" in -*) echo "usage: scripts/wheel.sh [--build FOLDER] [TORCH…]" >&2; exit 2 ;; esac
torch=$(IFS=';'; echo "$*")

say() { printf '== %s\n' "$*"; }

.venv/bin/pip install -q --no-deps -r requirements-wheel.txt
say "building the wheel in $build"
rm -rf dist
made=$(mktemp -d)
bare=$(mktemp -d)
trap 'rm -rf "$made" "$bare"' EXIT
PATH=$PWD/.venv/bin:$PATH .venv/bin/pip wheel . -q --no-deps --no-build-isolation -w "$made" \
  -C build-dir="$build" -C cmake.define.TP_MORE_TORCH_ROOTS="$torch"
wheel=$(echo "$made"/*.whl)
platform=$(.venv/bin/python python/wheel/check.py "$wheel")
.venv/bin/python -m wheel tags --remove --platform-tag "$platform" "$wheel" >/dev/null
mkdir -p dist
mv "$made"/*.whl dist
wheel=$(echo dist/*.whl)
say "$wheel has $(stat -c %s "$wheel") bytes"

say "testing it without PyTorch"
.venv/bin/python -m venv "$bare"
"$bare/bin/pip" install -q "$(grep '^numpy==' requirements.txt)" "$wheel"
for tool in tp-opt tp-compile tp-run tp-ckpt; do
  (cd "$bare" && bin/python -m tp_mlir $tool --version)
done
for test in programs sessions; do
  (cd "$bare" && bin/python "$OLDPWD/python/tests/test_$test.py")
done
say "testing it with PyTorch"
(cd "$bare" && PYTHONPATH=$(echo "$OLDPWD"/.venv/lib/python3.*/site-packages) bin/python "$OLDPWD/python/tests/test_import.py")
(cd "$bare" && PYTHONPATH=$(echo "$OLDPWD"/.venv/lib/python3.*/site-packages) bin/python -m tp_mlir tp-import --version)
say "the wheel is complete: $wheel"
