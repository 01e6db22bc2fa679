#!/usr/bin/env bash
# scripts/gpu-check.sh on the fake device, in what scripts/gpu-pack.sh packs, unpacked elsewhere:
# what a machine without a GPU can check of both.
#
#   gpu_check.sh TOOLS FOLDER        # TP_PYTHON, CXX: as for those scripts; TP_REBUILD=1: compiles
#                                    # the runtime from the pack's sources, which takes minutes
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
kind=$2
case "$*" in
  "--tool memcheck --error-exitcode 99 --report-api-errors no "*) shift 6 ;;
  "--tool $kind --error-exitcode 99 --kernel-name regex=^(kernel_|check_|tprt_) "*) shift 6 ;;
  *) echo "unknown options"; exit 1 ;;
esac
"$@" || exit
echo "========= $kind SUMMARY: 0 errors"
END
chmod +x "$folder/sanitizer"
export TP_OPTIMIZE=-O1 TP_SANITIZER=$folder/sanitizer
[ -n "${TP_REBUILD:-}" ] || export TP_FAKE=$tools/../fake-cuda

# The pack's own runtime is used below. Where it doesn't run its sources are compiled: they are all there.
find runtime/lib tools/tp-run -name '*.cpp' -print0 |
  xargs -0 -P "$(nproc)" -n 16 ${CXX:-g++} -std=c++20 -Iruntime/include -Iruntime/lib -isystem third_party/include -M >/dev/null

# Stage by stage, as where a machine with a device is at hand for minutes only.
for stage in build cases sanitize time blocks torch profile; do
  scripts/gpu-check.sh --fake --stage $stage >/dev/null || { echo "error: the stage $stage fails" >&2; cat results.md; exit 1; }
done
cat results.md
grep -q '| train-fsdp-2 | 2 processes, graphs | ok |' results.md
grep -q '| attention-added-bf16 | threads, graphs, own attention | ok |' results.md
grep -q '| racecheck | mlp-f32-2 | ok | racecheck SUMMARY: 0 errors |' results.md
grep -qE '\| mlp-f32-2 \| on \| [0-9.]+ (ms|µs) \| [0-9.]+ (ms|µs) \|' results.md
grep -qE '\| prefill \| 8 \| [0-9.]+ (ms|µs) \| [0-9.]+ (ms|µs) \([0-9.]+ (ms|µs)\) \| [0-9.]+, (holds|misses) 0.95 \|' results.md
# How PyTorch computes attention.
grep -qE '^- prefill-8: .*[0-9]+ x aten::_scaled_dot_product_[a-z_]+ [0-9]+' results.md
grep -q 'gemm *w2: linear' results.md
cat -s results.md | cmp - results.md
grep -qE "^- runtime [0-9.]+, $([ -n "${TP_REBUILD:-}" ] && echo "built by " || echo "the pack's own tp-run")" results.md
grep -qE '^- tp-run took /.*/libcuda.so.1$' results.md

# Without further rounds the table is written again, and the samples stay. A stage that goes on where
# it was interrupted adds what is missing, one that starts anew leaves other ranks' samples.
cp results/blocks.md blocks.md
cat results/*.samples >samples
names_of() { cut -d' ' -f1 "results/$1.samples" | sort; }
blocks=$(names_of blocks) torch=$(names_of torch)
for arguments in "--stage blocks" "--stage torch" "--stage torch --continue"; do
  # shellcheck disable=SC2086
  TP_ROUNDS=0 scripts/gpu-check.sh --fake $arguments >/dev/null
  cat results/*.samples | cmp - samples
  cmp results/blocks.md blocks.md
done
sed -i '/-prefill-2 /d' results/blocks.samples
cp results/blocks.samples kept
scripts/gpu-check.sh --fake --stage blocks --continue >/dev/null
[ "$(names_of blocks)" = "$blocks" ]
head -n "$(wc -l <kept)" results/blocks.samples | cmp - kept
sed -i '/^compiled-prefill-2 /d; /^device-prefill-2 /d; /^attention-decode-2 /d' results/torch.samples
cp results/torch.samples kept
scripts/gpu-check.sh --fake --stage torch --continue >/dev/null
[ "$(names_of torch)" = "$torch" ]
head -n "$(wc -l <kept)" results/torch.samples | cmp - kept
grep -- '-2 ' results/torch.samples >kept
TP_RANKS=8 scripts/gpu-check.sh --fake --stage torch >/dev/null
[ "$(names_of torch)" = "$torch" ]
grep -- '-2 ' results/torch.samples | cmp - kept

# What has no rows is written anew where a stage goes on.
scripts/gpu-check.sh --fake --stage build,profile --continue >/dev/null
[ "$(grep -c '^- runtime ' results/build.md)" = 1 ]
[ "$(grep -c 'tp-run blocks/prefill-2/fake.tpx --profile' results/profile.md)" = 1 ]

# What is known to hold, and to miss: PyTorch's times, a thousand times as long and as short.
judge() {
  sed -i -E "s/^(compiled-prefill-2) .*/\1 $1/" results/torch.samples
  scripts/gpu-check.sh --fake --stage blocks --continue >/dev/null
  grep -qE "^\| prefill \| 2 \|.* $2 0.95 \|" results.md
}
judge 1000 holds
judge 0.000001 misses

# A stage goes on where it was interrupted: what is there stays, what is missing or failed is done.
sed -i -e 's/| mlp-f32-2 | threads, graphs | ok | [^|]*|/| mlp-f32-2 | threads, graphs | ok | as it was |/' \
  -e 's/| mlp-f64-2 | threads, graphs | ok |/| mlp-f64-2 | threads, graphs | **failed** (1) |/' -e '/| mlp-f16-2 | threads, graphs |/d' results/cases.md
scripts/gpu-check.sh --fake --stage cases --continue --cases '^mlp-f' >/dev/null
grep -q '| mlp-f32-2 | threads, graphs | ok | as it was |' results.md
grep -q '| mlp-f64-2 | threads, graphs | ok |' results.md
grep -q '| mlp-f16-2 | threads, graphs | ok |' results.md

# Other results, a run that hangs, and a sanitizer that finds something, end it with 1.
sed -i 's/--random 0/--random 1/' cases/mlp-f64-2/arguments
printf '#!/bin/sh\necho "ERROR SUMMARY: 1 error"; exit 99\n' >"$folder/sanitizer"
if scripts/gpu-check.sh --fake --stage cases,sanitize --cases '^mlp-f(32|64)-2$' --out broken.md; then
  echo "error: what is broken passes" >&2
  exit 1
fi
grep -q '| mlp-f32-2 | threads, graphs | ok |' broken.md
grep -q '| mlp-f64-2 | threads, graphs | \*\*failed\*\* (3) |' broken.md
grep -q '| memcheck | mlp-f32-2 | \*\*failed\*\* (99) | ERROR SUMMARY: 1 error, see results/memcheck-mlp-f32-2.log |' broken.md
grep -q 'ERROR SUMMARY' results/memcheck-mlp-f32-2.log
printf '#!/bin/sh\necho "==ERROR== no permission"; exit 9\n' >"$folder/ncu"
chmod +x "$folder/ncu"
if TP_NCU=$folder/ncu scripts/gpu-check.sh --fake --stage profile --out unprofiled.md >/dev/null; then
  echo "error: what isn't profiled passes" >&2
  exit 1
fi
grep -q 'tp-run blocks/prefill-2/fake.tpx --no-graphs`: \*\*failed\*\* (9): ==ERROR== no permission' unprofiled.md
mv check-build/tp-run check-build/tp-run.real
printf '#!/bin/sh\nsleep 30\n' >check-build/tp-run
chmod +x check-build/tp-run
if TP_RUN_SECONDS=1 scripts/gpu-check.sh --fake --stage cases --cases '^mlp-f32-2$' --out hung.md; then
  echo "error: what hangs passes" >&2
  exit 1
fi
grep -q '| mlp-f32-2 | threads, graphs | \*\*failed\*\* (124) |  | no end after 1 s (TP_RUN_SECONDS) |' hung.md
if TP_RUN_SECONDS=1 scripts/gpu-check.sh --fake --stage time,blocks --cases '^(mlp-f32|prefill)-2$' --out hung.md >/dev/null; then
  echo "error: what hangs is timed" >&2
  exit 1
fi
grep -q '| mlp-f32-2 | on | \*\*failed\*\* | no end after 1 s (TP_RUN_SECONDS) |' hung.md
grep -q '^- prefill-2: \*\*failed\*\*: no end after 1 s (TP_RUN_SECONDS)$' hung.md
# The stage torch measures all else.
if TP_RUN_SECONDS=1 TP_RANKS=2 scripts/gpu-check.sh --fake --stage torch --out hung.md >/dev/null; then
  echo "error: what hangs is compared" >&2
  exit 1
fi
grep -q '^- decode-products-2: \*\*failed\*\*: no end after 1 s (TP_RUN_SECONDS)$' hung.md
grep -q '^memory-decode-2 ' results/torch.samples
if TP_RUN_SECONDS=1 scripts/gpu-check.sh --fake --stage profile --out hung.md >/dev/null; then
  echo "error: what hangs is profiled" >&2
  exit 1
fi
grep -q 'tp-run blocks/prefill-2/fake.tpx --profile`: \*\*failed\*\* (124): no end after 1 s (TP_RUN_SECONDS)' hung.md

# On a device, tp-run finds the libraries in its own folders and LD_LIBRARY_PATH, not in the current
# one, which an empty entry would add.
printf '#!/bin/sh\necho "$LD_LIBRARY_PATH"; exit 1\n' >check-build/tp-run
cp cases/mlp-f32-2/fake.tpx cases/mlp-f32-2/device.tpx
for path in "" /one:/two; do
  if LD_LIBRARY_PATH=$path scripts/gpu-check.sh --stage cases --cases '^mlp-f32-2$' --out paths.md >/dev/null; then exit 1; fi
  grep -qF "| mlp-f32-2 | threads, graphs | **failed** (1) |  | $PWD/check-build:$PWD/third_party/lib${path:+:$path} |" paths.md
done

# One build after the other, with TP_FAKE and without, leaves that folder as it is.
printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done; touch "$2"\n' >"$folder/cxx"
chmod +x "$folder/cxx"
mkdir -p "$folder/other"
echo library >"$folder/other/libtprt-fake-cuda.so"
rm -r results
TP_REBUILD='' TP_FAKE=$folder/other scripts/gpu-check.sh --fake --stage build >/dev/null
[ "$(readlink check-build/fake)" = "$folder/other" ]
TP_REBUILD='' TP_FAKE='' CXX=$folder/cxx scripts/gpu-check.sh --fake --stage build >/dev/null
[ ! -L check-build/fake ] && [ -L check-build/fake/libcuda.so.1 ]
[ "$(ls "$folder/other")" = libtprt-fake-cuda.so ]
[ "$(cat "$folder/other/libtprt-fake-cuda.so")" = library ]
TP_REBUILD='' TP_FAKE=$folder/other scripts/gpu-check.sh --fake --stage build >/dev/null
[ "$(readlink check-build/fake)" = "$folder/other" ]
if scripts/gpu-check.sh --fake --stage nothing 2>stderr; then exit 1; fi
grep -q "unknown stage 'nothing'; expected some of build,cases" stderr

# A build without nvcc isn't packed.
mkdir -p "$folder/bare/bin" "$folder/bare/runtime/kernels"
touch "$folder"/bare/runtime/kernels/ReduceKernels.{ptx,fatbin}
if TP_BIN=$folder/bare/bin "$scripts/gpu-pack.sh" --small "$folder/bare.tar.gz" 2>stderr; then exit 1; fi
grep -q "lacks the runtime's own kernels: it found no nvcc" stderr
[ ! -e "$folder/bare.tar.gz" ]
