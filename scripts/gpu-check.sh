#!/usr/bin/env bash
# Checks the runtime on a CUDA device: builds it, runs every packed example against its result on the CPU, with and without
# CUDA graphs, several ranks sharing the device; then under compute-sanitizer, where there is one; then for time. Run it in
# the folder that scripts/gpu-pack.sh packed. Needs g++ (C++20) and NVIDIA's libraries, no MLIR, CMake or Python.
#
#   tar xzf gpu-pack.tar.gz && cd tp-mlir-gpu && scripts/gpu-check.sh [--fake] [--cases REGEX] [--out FILE]
#
# --fake: on the fake device, which executes on the host: what a machine without a GPU can check. Its times mean nothing.
# Writes a table to results.md (--out), and exits with 1 when anything differs or fails.
set -uo pipefail
cd "$(dirname "$0")/.."
fake=0 cases=. out=results.md
while [ $# -gt 0 ]; do
  case $1 in
    --fake) fake=1 ;;
    --cases) cases=$2; shift ;;
    --out) out=$2; shift ;;
    *) echo "gpu-check.sh: unknown option '$1'" >&2; exit 2 ;;
  esac
  shift
done
[ -d cases ] || { echo "gpu-check.sh: no folder 'cases' here: run it in what scripts/gpu-pack.sh packed" >&2; exit 2; }

cxx=${CXX:-g++}
objects=check-build
mkdir -p $objects
third=$PWD/third_party
lib=$PWD/runtime/lib
flags="-std=c++20 -O3 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Iruntime/include -Iruntime/lib -isystem $third/include"

# compile FLAGS SOURCE…: in parallel, each to $objects/PATH.o.
compile() {
  local options=$1
  shift
  printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c \
    'object='$objects'/$(echo {} | tr / _).o; [ "$object" -nt {} ] || '"$cxx $options"' -c {} -o "$object"'
}
objects_of() { for source in "$@"; do echo "$objects/$(echo "$source" | tr / _).o"; done; }

echo "building"
set -e
version=$(sed -n 's/^project(tprt VERSION \([0-9.]*\).*/\1/p' runtime/CMakeLists.txt)
sources=$(find runtime/lib -name '*.cpp')
tool=$(find tools/tp-run -name '*.cpp')
compile "$flags -DTPRT_VERSION='\"$version\"' -DTPRT_REDUCE_PTX='\"$lib/Cuda/Reduce.ptx\"' -DTPRT_ATTENTIONGRADIENT_PTX='\"$lib/Cuda/AttentionGradient.ptx\"' -DTPRT_ATTENTION_PTX='\"$lib/Cuda/Attention.ptx\"'" $sources
$cxx -shared -o $objects/libtprt.so $(objects_of $sources) "$third"/lib/*.so* -ldl -lpthread -Wl,-rpath,"$third/lib"
compile "$flags" $tool
$cxx -o $objects/tp-run $(objects_of $tool) $objects/libtprt.so -lpthread -Wl,-rpath,"$PWD/$objects:$third/lib"
program=device.tpx
if [ $fake = 1 ]; then
  program=fake.tpx
  sources=$(find runtime/fake -name '*.cpp')
  compile "$flags -Iruntime/fake" $sources
  mkdir -p $objects/fake
  $cxx -shared -o $objects/fake/libtprt-fake-cuda.so $(objects_of $sources) -ldl -lpthread
  for name in libcuda.so.1 libcublasLt.so.13 libcudnn.so.9 libnccl.so.2; do ln -sf libtprt-fake-cuda.so $objects/fake/$name; done
  export LD_LIBRARY_PATH=$PWD/$objects/fake
fi
set +e

failures=0
row() { echo "| $* |" >>"$out"; }
# run_case NAME OPTION…: prints what tp-run says; its exit code.
run_case() {
  local name=$1
  shift
  # shellcheck disable=SC2046
  $launcher $objects/tp-run "cases/$name/$program" $(cat "cases/$name/arguments") "$@" 2>&1
}
launcher=

{
  echo "# gpu-check"
  echo
  echo "- runtime $version, $($cxx --version | head -1)"
  if [ $fake = 1 ]; then
    echo "- the fake device: no GPU was used"
  else
    echo "- $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -1)"
    echo "- nvcc: $( (nvcc --version 2>/dev/null || echo none) | tail -1)"
  fi
  echo
  echo "| case | graphs | result | largest difference |"
  echo "|---|---|---|---|"
} >"$out"

names=$(for folder in cases/*/; do basename "$folder"; done | grep -E "$cases")
[ -n "$names" ] || { echo "gpu-check.sh: no case matches '$cases'" >&2; exit 2; }
for name in $names; do
  for graphs in on off; do
    option=; [ $graphs = off ] && option=--no-graphs
    # The first run is enqueued, the second one captured, the third one replayed.
    text=$(run_case "$name" --repeat 3 --expect "cases/$name/y.npy" --rtol 1e-4 --atol 1e-4 $option)
    status=$?
    difference=$(echo "$text" | sed -n 's/.*largest difference \([^ ]*\).*/\1/p')
    if [ $status = 0 ] && [ -n "$difference" ]; then
      row "$name | $graphs | ok | $difference"
    else
      failures=$((failures + 1))
      row "$name | $graphs | **failed** ($status) | $(echo "$text" | head -1 | tr '|' '/')"
    fi
    echo "$name, graphs $graphs: exit code $status${difference:+, largest difference $difference}"
  done
done

if [ $fake = 0 ]; then
  echo >>"$out"
  if command -v compute-sanitizer >/dev/null; then
    for sanitizer in memcheck racecheck; do
      name=$(echo "$names" | grep -- '-2$' | head -1)
      [ -n "$name" ] || name=$(echo "$names" | head -1)
      launcher="compute-sanitizer --tool $sanitizer --error-exitcode 99"
      text=$(run_case "$name" --no-graphs --output /dev/null)
      status=$?
      launcher=
      [ $status = 0 ] || failures=$((failures + 1))
      echo "- compute-sanitizer $sanitizer, $name: $([ $status = 0 ] && echo ok || echo "**failed**"), $(echo "$text" | grep 'ERROR SUMMARY' | tail -1)" >>"$out"
    done
  else
    echo "- there is no compute-sanitizer" >>"$out"
  fi
fi

{
  echo
  echo "| case | graphs | median of runs | min |"
  echo "|---|---|---|---|"
} >>"$out"
repeat=50; [ $fake = 1 ] && repeat=10
for name in $names; do
  for graphs in on off; do
    option=; [ $graphs = off ] && option=--no-graphs
    text=$(run_case "$name" --warmup 5 --repeat $repeat $option)
    status=$?
    times=$(echo "$text" | sed -n 's/.*: median \([^,]*\), min \([^,]*\),.*/\1 | \2/p')
    [ $status = 0 ] || failures=$((failures + 1))
    row "$name | $graphs | ${times:-**failed** ($status) | }"
  done
done
cat "$out"
echo "$(($(echo "$names" | wc -w) * 2 - failures)) passed, $failures failed"
[ $failures = 0 ]
