#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Checks the runtime on a CUDA device: builds it, runs every packed program against its result on the CPU, with and without
# CUDA graphs, several ranks sharing the device, and as processes with NCCL; then under compute-sanitizer, where there is one;
# then for time, blocks of Llama 3 8B beside torch.compile and a floor. Run it in the folder that scripts/gpu-pack.sh
# packed. Needs g++ (C++20) and NVIDIA's libraries, no MLIR, CMake or Python; PyTorch with CUDA for what it is compared with.
#
#   tar xzf gpu-pack.tar.gz && cd tp-mlir-gpu && scripts/gpu-check.sh [--fake] [--cases REGEX] [--out FILE]
#
# --fake: on the fake device, which executes on the host: what a machine without a GPU can check. Its times mean nothing.
# --cases: those cases and blocks whose names match. Writes tables to results.md (--out), and exits with 1 when anything differs or fails; a goal that is missed is no failure.
# CXX, TP_OPTIMIZE (-O3): the compiler. TP_PYTHON (python3): the one with PyTorch. TP_SANITIZER: another compute-sanitizer.
set -uo pipefail
cd "$(dirname "$0")/.."
fake=0 cases=. out=results.md
while [ $# -gt 0 ]; do
  case $1 in
    --fake) fake=1 ;;
    --cases) cases=${2:?"--cases needs a regular expression"}; shift ;;
    --out) out=${2:?"--out needs a file"}; shift ;;
    *) echo "gpu-check.sh: unknown option '$1'" >&2; exit 2 ;;
  esac
  shift
done
[ -d cases ] || { echo "gpu-check.sh: no folder 'cases' here: run it in what scripts/gpu-pack.sh packed" >&2; exit 2; }

cxx=${CXX:-g++}
python=${TP_PYTHON:-python3}
objects=check-build
mkdir -p $objects
third=$PWD/third_party
lib=$PWD/runtime/lib
flags="-std=c++20 ${TP_OPTIMIZE:--O3} -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Iruntime/include -Iruntime/lib -isystem $third/include"

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
compile "$flags -DTPRT_VERSION='\"$version\"' -DTPRT_EPILOGUE_PTX='\"$lib/cuda/EpilogueKernels.ptx\"' -DTPRT_REDUCE_PTX='\"$lib/cuda/ReduceKernels.ptx\"' -DTPRT_ATTENTIONGRADIENT_PTX='\"$lib/cuda/AttentionGradientKernels.ptx\"' -DTPRT_ATTENTION_PTX='\"$lib/cuda/AttentionKernels.ptx\"'" $sources
$cxx -shared -o $objects/libtprt.so $(objects_of $sources) "$third"/lib/*.so* -ldl -lpthread -Wl,-rpath,"$third/lib"
compile "$flags" $tool
$cxx -o $objects/tp-run $(objects_of $tool) $objects/libtprt.so "$third"/lib/*.so* -lpthread -Wl,-rpath,"$PWD/$objects:$third/lib"
program=device.tpx
devices=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
if [ $fake = 1 ]; then
  program=fake.tpx
  devices=8
  sources=$(find runtime/fake -name '*.cpp')
  compile "$flags -Iruntime/fake" $sources
  mkdir -p $objects/fake
  $cxx -shared -o $objects/fake/libtprt-fake-cuda.so $(objects_of $sources) -ldl -lpthread
  for name in $(sed -n 's/^foreach(name \(.*\))$/\1/p' runtime/fake/CMakeLists.txt); do
    ln -sf libtprt-fake-cuda.so "$objects/fake/$name"
  done
  export LD_LIBRARY_PATH=$PWD/$objects/fake
fi
set +e

failures=0 passed=0
row() { echo "| $* |" >>"$out"; }
line() { echo "$*" >>"$out"; }
fail() { failures=$((failures + 1)); }
# run_case NAME OPTION…: prints what tp-run says; its exit code.
run_case() {
  local name=$1
  shift
  # shellcheck disable=SC2046,SC2086
  $launcher $objects/tp-run "cases/$name/$program" $(cat "cases/$name/arguments") "$@" 2>&1
}
launcher=
# check_case NAME TITLE OPTION…: three runs, the last one against the CPU's result, as a row.
check_case() {
  local name=$1 title=$2 text status difference
  shift 2
  # shellcheck disable=SC2046
  text=$(run_case "$name" --repeat 3 $(cat "cases/$name/expected") "$@")
  status=$?
  difference=$(echo "$text" | sed -n 's/.*largest difference \([^ ]*\).*/\1/p')
  if [ $status = 0 ] && [ -n "$difference" ]; then
    passed=$((passed + 1))
    row "$name | $title | ok | $difference"
  elif echo "$text" | grep -q 'cannot load NCCL\|Duplicate GPU'; then
    row "$name | $title | skipped | $(echo "$text" | grep -m1 'cannot load NCCL\|Duplicate GPU' | tr '|' '/')"
  else
    fail
    row "$name | $title | **failed** ($status) | $(echo "$text" | head -1 | tr '|' '/')"
  fi
  echo "$name, $title: exit code $status${difference:+, largest difference $difference}"
}
# median FILE MEMBER: of a report of tp-run, in seconds.
median() { awk -v member="\"$2\":" '$1 == member { found = 1 } found && $1 == "\"median\":" { sub(",", "", $2); print $2; exit }' "$1"; }
# middle: the median of the numbers on stdin, one a line.
middle() { sort -g | awk '{ x[NR] = $1 } END { if (NR) print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }
# in_units SECONDS: for people.
in_units() { awk -v s="${1:-0}" 'BEGIN { if (s < 1e-3) printf "%.2f µs", s * 1e6; else printf "%.3f ms", s * 1e3 }'; }

{
  echo "# gpu-check"
  echo
  echo "- runtime $version, $($cxx --version | head -1)"
  if [ $fake = 1 ]; then
    echo "- the fake device: no GPU was used, and times mean nothing"
  else
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader 2>&1 | sed 's/^/- /'
    echo "- nvcc: $( (nvcc --version 2>/dev/null || echo none) | tail -1)"
    ldconfig -p 2>/dev/null | awk '/libcublasLt.so.1|libcudnn.so|libnccl.so/ { print "- " $1 ": " $NF }'
  fi
  echo
  echo "## Results"
  echo
  echo "Three runs of \`tp-run cases/CASE/$program …\`; with graphs the first is enqueued, a later one captured and replayed. Threads share one device."
  echo
  echo "| case | ranks and graphs | result | largest difference |"
  echo "|---|---|---|---|"
} >"$out"

names=$(for file in cases/*/"$program"; do basename "$(dirname "$file")"; done | grep -E "$cases")
[ -n "$names" ] || { echo "gpu-check.sh: no case with a $program matches '$cases'" >&2; exit 2; }
for name in $names; do
  check_case "$name" "threads, graphs"
  check_case "$name" "threads, no graphs" --no-graphs
done
# Where there is one device, only NCCL 2.30 and newer let ranks share it, when they are told.
shared=
if [ "$devices" -lt 2 ]; then
  export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS=4
  shared="--device 0"
fi
for name in $(echo "$names" | grep -- '-2$'); do
  # shellcheck disable=SC2086
  check_case "$name" "2 processes, graphs" -n 2 $shared
done

# Memory, races in shared memory, and barriers that not all threads of a block reach.
sanitizer=${TP_SANITIZER:-compute-sanitizer}
line
line "## compute-sanitizer"
line
if [ $fake = 1 ] && [ -z "${TP_SANITIZER:-}" ]; then
  line "- not with the fake device"
elif ! command -v "$sanitizer" >/dev/null; then
  line "- there is none here"
else
  for kind in memcheck racecheck synccheck; do
    for name in $(echo "$names" | grep -E '^(mlp-f32-2|train-fsdp-2|llama-tp-2|minilm-1)$'); do
      # Without graphs, so that the kernel in question is named where it is launched.
      launcher="$sanitizer --tool $kind --error-exitcode 99"
      # shellcheck disable=SC2046
      text=$(run_case "$name" --no-graphs $(cat "cases/$name/expected" | sed 's/--expect/--timeout 600 --expect/') --repeat 3)
      status=$?
      launcher=
      summary=$(echo "$text" | grep 'SUMMARY' | tail -1 | sed 's/^=* *//')
      # Without a summary the tool itself has failed.
      if [ $status = 0 ] && [ -n "$summary" ]; then
        passed=$((passed + 1))
        line "- $kind, $name: ok, $summary"
      else
        fail
        line "- $kind, $name: **failed** ($status), ${summary:-$(echo "$text" | head -1)}"
      fi
      echo "$kind, $name: exit code $status"
    done
  done
fi

{
  echo
  echo "## Cases for time"
  echo
  echo "The host's time is what is left without waiting for the device; with several ranks it has waiting for their threads in it."
  echo
  echo "| case | graphs | median of runs | min | host time of a run |"
  echo "|---|---|---|---|---|"
} >>"$out"
report=$objects/report.json
warmup=5 repeat=50
[ $fake = 1 ] && warmup=3 repeat=3
for name in $names; do
  for graphs in on off; do
    option=; [ $graphs = off ] && option=--no-graphs
    # shellcheck disable=SC2086
    text=$(run_case "$name" --warmup $warmup --repeat $repeat --json $report $option)
    status=$?
    if [ $status = 0 ]; then
      row "$name | $graphs | $(in_units "$(median $report seconds)") | $(in_units "$(awk '$1 == "\"min\":" { sub(",", "", $2); print $2; exit }' $report)") | $(in_units "$(median $report host_seconds)")"
    else
      fail
      row "$name | $graphs | **failed** ($status) $(echo "$text" | head -1 | tr '|' '/') | | |"
    fi
  done
done

# Blocks: all take turns, round by round, and what counts is the median of the rounds' medians.
rounds=5; [ $fake = 1 ] && rounds=1
samples=$objects/samples
: >$samples
blocks=$(for file in blocks/*/"$program"; do [ -f "$file" ] && basename "$(dirname "$file")"; done | grep -E "$cases")
ranks=$(echo "$blocks" | sed -n 's/^[a-z]*-\([0-9]*\)$/\1/p' | sort -nu | tr '\n' ' ')
torch=none
if [ $fake = 1 ]; then
  torch_options="--short --device cpu --ranks $ranks"
  "$python" -c 'import torch' 2>/dev/null && torch=cpu
else
  torch_options="--ranks $ranks"
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null && torch=cuda
fi
[ -n "$ranks" ] || rounds=0
for round in $(seq $rounds); do
  for name in $blocks; do
    if text=$($objects/tp-run "blocks/$name/$program" --random 0 --warmup $warmup --repeat $repeat --json $report 2>&1); then
      echo "ours-$name $(median $report seconds)" >>$samples
      echo "host-$name $(median $report host_seconds)" >>$samples
    else
      fail
      echo "failed-$name $(echo "$text" | head -1)" | tee -a $samples
    fi
  done
  # shellcheck disable=SC2086
  [ $torch = none ] || LD_LIBRARY_PATH=${TP_TORCH_LIBRARIES:-} "$python" benchmarks/llama_block.py measure $torch_options >>$samples 2>$objects/torch.log ||
    { fail; echo "failed-torch $(tail -1 $objects/torch.log)" | tee -a $samples; }
  echo "blocks, round $round of $rounds"
done
sample() { awk -v name="$1" '$1 == name { print $2 }' $samples | middle; }
# ratio A B, two decimals; nothing where one is missing.
ratio() { [ -n "$1" ] && [ -n "$2" ] && awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
# judge VALUE GOAL; nothing where there is none.
judge() { [ -n "$1" ] && [ "$2" != - ] && awk -v a="$1" -v b="$2" 'BEGIN { print a <= b ? "holds" : "misses" }'; }

[ -n "$ranks" ] && {
  echo
  echo "## A block of Llama 3 8B, bf16"
  echo
  echo "What one rank of tensor parallelism computes, without communication: 4096 tokens (prefill), or one token with a cache of 8192 (decode), whose"
  echo "own key and value are results. Weights and inputs are random. \`tp-run blocks/NAME/$program --random 0 --warmup $warmup --repeat $repeat\`,"
  echo "graphs on; PyTorch: \`benchmarks/llama_block.py measure\`, torch.compile with max-autotune. Medians of $rounds rounds, in which all take turns."
  echo "The floor is the block's products alone, by cuBLASLt through the runtime, plus attention alone, by cuDNN through PyTorch, plus one pass"
  echo "over memory for the rest, at the rate of a copy. Goals: 0.95 of PyTorch's time and 1.10 of the"
  echo "floor for 4096 tokens, 0.80 of PyTorch's for one, and 10 µs of the host's time a step."
  echo
  grep -m1 '^#' $samples | sed 's/^# /- /'
  [ $torch = none ] && echo "- no PyTorch with CUDA here: nothing to compare with, and no floor but the products'"
  [ $fake = 1 ] && echo "- the fake device and sizes of a test, PyTorch not compiling on the CPU: this shows that the scripts work, and nothing else"
  echo
  echo "| case | ranks | tp-mlir | torch.compile | ratio | | products | floor | ratio | | host time | |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
} >>"$out"
# goals CASE: of PyTorch's time, and of the floor.
goals() { [ "$1" = prefill ] && echo "0.95 1.10" || echo "0.80 -"; }
for case in prefill decode; do
  read -r torch_goal floor_goal <<<"$(goals $case)"
  for count in $ranks; do
    ours=$(sample "ours-$case-$count")
    host=$(sample "host-$case-$count")
    products=$(sample "ours-$case-products-$count")
    theirs=$(sample "compiled-$case-$count")
    floor=
    [ -n "$theirs" ] && floor=$(awk -v a="$products" -v b="$(sample "attention-$case-$count")" -v c="$(sample "rest-$case-$count")" 'BEGIN { printf "%.9f", a + b + c }')
    [ -n "$ours" ] || { row "$case | $count | **failed** | | | | | | | | |"; continue; }
    to_theirs=$(ratio "$ours" "$theirs")
    to_floor=$(ratio "$ours" "$floor")
    row "$case | $count | $(in_units "$ours") | ${theirs:+$(in_units "$theirs")} | $to_theirs | $(judge "$to_theirs" "$torch_goal") |" \
      "$(in_units "$products") | ${floor:+$(in_units "$floor")} | $to_floor | $(judge "$to_floor" "$floor_goal") |" \
      "$(in_units "$host") | $(judge "$host" 1e-5)"
  done
done
line
line "$passed passed, $failures failed"
cat "$out"
[ $failures = 0 ]
