#!/usr/bin/env bash
# scripts/gpu-check.sh on the fake device, in what scripts/gpu-pack.sh packs, unpacked elsewhere: what a machine without a GPU
# can check of both.
#
#   gpu_check.sh TOOLS FOLDER        # TP_PYTHON, CXX: as for those scripts
set -euo pipefail
scripts=$(cd "$(dirname "$0")/../scripts" && pwd)
tools=$(realpath "$1")
folder=$(realpath -m "$2")
rm -rf "$folder"
mkdir -p "$folder/elsewhere"
TP_BIN=$tools "$scripts/gpu-pack.sh" --small "$folder/pack.tar.gz"
tar -C "$folder/elsewhere" -xzf "$folder/pack.tar.gz"
cd "$folder/elsewhere/tp-mlir-gpu"

# Stands for compute-sanitizer.
cat >"$folder/sanitizer" <<'END'
#!/bin/sh
[ "$1 $3 $4" = "--tool --error-exitcode 99" ] || { echo "unknown options"; exit 1; }
kind=$2
shift 4
"$@" || exit
echo "========= $kind SUMMARY: 0 errors"
END
chmod +x "$folder/sanitizer"
export TP_OPTIMIZE=-O1 TP_SANITIZER=$folder/sanitizer

scripts/gpu-check.sh --fake
grep -q '| train-fsdp-2 | 2 processes, graphs | ok |' results.md
grep -q 'racecheck, mlp-f32-2: ok, racecheck SUMMARY: 0 errors' results.md
grep -qE '\| prefill \| 8 \| [0-9.]+ (ms|µs) \| [0-9.]+ (ms|µs) \| [0-9.]+ \| (holds|misses) \|' results.md

# Other results, and a sanitizer that finds something, end it with 1.
sed -i 's/--random 0/--random 1/' cases/mlp-f64-2/arguments
printf '#!/bin/sh\necho "ERROR SUMMARY: 1 error"; exit 99\n' >"$folder/sanitizer"
if scripts/gpu-check.sh --fake --cases '^mlp-f(32|64)-2$' --out broken.md; then
  echo "error: what is broken passes" >&2
  exit 1
fi
grep -q '| mlp-f32-2 | threads, graphs | ok |' broken.md
grep -q '| mlp-f64-2 | threads, graphs | \*\*failed\*\* (3) |' broken.md
grep -q 'memcheck, mlp-f32-2: \*\*failed\*\* (99), ERROR SUMMARY: 1 error' broken.md
