#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Checks and times the runtime on a CUDA device, in the folder that scripts/gpu-pack.sh packed, in
# stages that can run alone, each in less than nine minutes, since a machine with a device may be at
# hand for minutes only (TP_REBUILD=1 takes longer on two cores):
#
#   build     takes the pack's own runtime and tp-run; where they don't run, or with TP_REBUILD=1,
#             builds them
#   cases     runs every packed program against its result on the CPU: with CUDA graphs and without,
#             with cuDNN's attention and our own, ranks as threads that share the device, and as
#             processes with NCCL
#   sanitize  the same for some of them under compute-sanitizer, where there is one
#   time      times the cases
#   blocks    times blocks of Llama 3 8B, as a rank of 1, 2, 4 and 8 has them, and their products
#             alone
#   torch     the same blocks in turn with torch.compile, where there is PyTorch with CUDA, and what
#             a floor needs
#   profile   where the blocks' time goes: tp-run --profile, and each kernel by Nsight Compute,
#             where there is one
#
# Needs NVIDIA's libraries, and g++ (C++20) where the prebuilt tp-run doesn't run; no MLIR or CMake.
# Python for 'profile', and PyTorch with CUDA for 'torch'.
#
#   tar xzf gpu-pack.tar.gz && cd tp-mlir-gpu
#   scripts/gpu-check.sh [--stage NAME,…] [--continue] [--fake] [--cases REGEX] [--out FILE]
#
# --stage: those only (all, in the order above). --continue: keep the rows that a stage has, and add
# those that are missing. --fake: on the fake device, which executes on the host: what a machine
# without a GPU can check. Its times mean nothing. --cases: those cases and blocks whose names
# match.
# Rows are written to results/STAGE.md as they come; in the end results.md (--out) has all stages'.
# The stages blocks and torch share the table of blocks.md: its medians are those of
# results/torch.samples, or else of results/blocks.samples.
# Exits with 1 when anything differs or fails; a goal that is missed is no failure.
# CXX (g++), TP_OPTIMIZE (-O3): the compiler. TP_PYTHON (python3): the one with PyTorch.
# TP_FAKE: a folder with the fake device, instead of the one that --fake builds.
# TP_SANITIZER, TP_NCU: other programs than compute-sanitizer and ncu. TP_RUN_SECONDS (60, with
# --fake 180): after how long a run counts as hung. TP_ROUNDS (3, with --fake 1): of blocks and
# torch; 0 only writes their table again. TP_RANKS: the numbers of ranks of the stage torch, in this order; it leaves what
# was measured for others.
set -uo pipefail
cd "$(dirname "$0")/.."
all=build,cases,sanitize,time,blocks,torch,profile
stages=$all fake=0 cases=. out=results.md continues=0
while [ $# -gt 0 ]; do
  case $1 in
    --fake) fake=1 ;;
    --continue) continues=1 ;;
    --stage) stages=${2:?"--stage needs names"}; shift ;;
    --cases) cases=${2:?"--cases needs a regular expression"}; shift ;;
    --out) out=${2:?"--out needs a file"}; shift ;;
    *) echo "gpu-check.sh: unknown option '$1'" >&2; exit 2 ;;
  esac
  shift
done
for stage in ${stages//,/ }; do
  case ,$all, in
    *",$stage,"*) ;;
    *) echo "gpu-check.sh: unknown stage '$stage'; expected some of $all" >&2; exit 2 ;;
  esac
done
[ -d cases ] || { echo "gpu-check.sh: no folder 'cases' here: run it in what scripts/gpu-pack.sh packed" >&2; exit 2; }

python=${TP_PYTHON:-python3}
objects=check-build
results=results
mkdir -p $objects $results
program=device.tpx
devices=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
libraries=${LD_LIBRARY_PATH:-}
warmup=5 repeat=50 rounds=3 limit=60
if [ $fake = 1 ]; then
  # One run is enqueued, one captured, and one replayed.
  program=fake.tpx devices=8 libraries=$PWD/$objects/fake warmup=2 repeat=1 rounds=1 limit=180
fi
rounds=${TP_ROUNDS:-$rounds} limit=${TP_RUN_SECONDS:-$limit}
# An empty entry would be the current folder.
search=$PWD/$objects:$PWD/third_party/lib${libraries:+:$libraries}

#===----------------------------------------------------------------------===#
# Stages, rows and runs
#===----------------------------------------------------------------------===#

stage=
started() { case ,$stages, in *",$1,"*) stage=$1; section=$results/$1.md; echo "== $1"; return 0 ;; esac; return 1; }
# begin TITLE LINE…: the stage's section, anew.
begin() { printf '%s\n' "## $1" "" "${@:2}" >"$section"; }
# begin_rows TITLE LINE…: the same for a section of rows, which stay where the stage continues.
begin_rows() { [ $continues = 1 ] && [ -s "$section" ] || begin "$@"; }
# is_done KEY: whether the stage continues and has the row that begins with this.
is_done() { [ $continues = 1 ] && grep -qF "| $1 |" "$section" && ! grep -F "| $1 |" "$section" | grep -q '\*\*failed\*\*'; }
# row KEY CELL…: a row of the stage's table, in place of one that failed before.
row() {
  local text="| $1 |" cell
  for cell in "${@:2}"; do text="$text ${cell//|//} |"; done
  if grep -qF "| $1 |" "$section"; then grep -vF "| $1 |" "$section" >"$section.new"; mv "$section.new" "$section"; fi
  echo "$text" >>"$section"
  echo "$text"
}
line() { echo "$*" >>"$section"; }
run() { LD_LIBRARY_PATH=$search timeout "$limit" $launcher $objects/tp-run "$@" 2>&1; }
launcher=
# run_case NAME OPTION…: prints what tp-run says; its exit code, 124 if it hangs.
run_case() {
  local name=$1
  shift
  # shellcheck disable=SC2046
  run "cases/$name/$program" $(cat "cases/$name/arguments") "$@"
}
report=$objects/report.json
first_line() { grep -v '^note:' | head -1; }
# reason STATUS TEXT: why a run has failed that ended so.
reason() { if [ "$1" = 124 ]; then echo "no end after $limit s (TP_RUN_SECONDS)"; else echo "$2" | first_line; fi; }
# median FILE MEMBER: of a report of tp-run, in seconds.
median() { awk -v member="\"$2\":" '$1 == member { found = 1 } found && $1 == "\"median\":" { sub(",", "", $2); print $2; exit }' "$1"; }
# in_units SECONDS: for people; nothing for nothing.
in_units() { [ -n "${1:-}" ] && awk -v s="$1" 'BEGIN { if (s < 1e-3) printf "%.2f µs", s * 1e6; else printf "%.3f ms", s * 1e3 }'; }

# Where there is one device, only NCCL 2.30 and newer let ranks share it, when they are told.
shared=
if [ "$devices" -lt 2 ]; then
  export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS=4
  shared="--device 0"
fi

#===----------------------------------------------------------------------===#
# build
#===----------------------------------------------------------------------===#

# list_libraries NAME OPTION…: the files of NVIDIA's libraries that a run of the case loads, wherever
# they are.
list_libraries() {
  local text
  [ -f "cases/$1/$program" ] || return 0
  if text=$(run_case "$@" --repeat 1 --json $report); then
    sed -n '/^  "libraries": \[/,/\]/s/^ *"\(\/.*\)",\{0,1\}$/tp-run took \1/p' $report
  else
    echo "no list of what tp-run took for $*: $(reason $? "$text")"
  fi >>$objects/libraries
}
build() {
  local cxx=${CXX:-g++} third=$PWD/third_party lib=$PWD/runtime/lib version sources tool flags origin name
  flags="-std=c++20 ${TP_OPTIMIZE:--O3} -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -Iruntime/include -Iruntime/lib -isystem $third/include"
  # compile FLAGS SOURCE…: in parallel, each to $objects/PATH.o.
  compile() {
    local options=$1
    shift
    printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c \
      'object='$objects'/$(echo {} | tr / _).o; [ "$object" -nt {} ] || '"$cxx $options"' -c {} -o "$object"'
  }
  objects_of() { for source in "$@"; do echo "$objects/$(echo "$source" | tr / _).o"; done; }
  set -e
  version=$(sed -n 's/^project(tprt VERSION \([0-9.]*\).*/\1/p' runtime/CMakeLists.txt)
  if [ -z "${TP_REBUILD:-}" ] && LD_LIBRARY_PATH=prebuilt:$third/lib prebuilt/tp-run --version >/dev/null 2>&1; then
    cp -P prebuilt/* $objects/
    origin="the pack's own tp-run"
  else
    origin="built by $($cxx --version 2>/dev/null | head -1)"
    sources=$(find runtime/lib -name '*.cpp')
    tool=$(find tools/tp-run -name '*.cpp')
    compile "$flags -DTPRT_VERSION='\"$version\"' -DTPRT_KERNEL_FOLDER='\"$lib/cuda\"'" $sources
    $cxx -shared -o $objects/libtprt.so $(objects_of $sources) "$third"/lib/*.so* -ldl -lpthread -Wl,-rpath,"$third/lib"
    compile "$flags" $tool
    $cxx -o $objects/tp-run $(objects_of $tool) $objects/libtprt.so "$third"/lib/*.so* -lpthread -Wl,-rpath,"$PWD/$objects:$third/lib"
  fi
  # What an earlier build has left: a link to TP_FAKE, or a folder.
  if [ $fake = 1 ]; then rm -rf $objects/fake; fi
  if [ $fake = 1 ] && [ -n "${TP_FAKE:-}" ]; then
    ln -s "$TP_FAKE" $objects/fake
  elif [ $fake = 1 ]; then
    sources=$(find runtime/fake -name '*.cpp')
    compile "$flags -Iruntime/fake" $sources
    mkdir -p $objects/fake
    $cxx -shared -o $objects/fake/libtprt-fake-cuda.so $(objects_of $sources) -ldl -lpthread
    for name in $(sed -n 's/^foreach(name \(.*\))$/\1/p' runtime/fake/CMakeLists.txt); do
      ln -sf libtprt-fake-cuda.so "$objects/fake/$name"
    done
  fi
  set +e
  begin Machine
  line "- runtime $version, $origin"
  : >$objects/libraries
  list_libraries prefill-bf16
  # shellcheck disable=SC2086
  list_libraries mlp-f32-2 -n 2 $shared
  sort -u $objects/libraries | sed 's/^/- /' >>"$section"
  if [ $fake = 1 ]; then
    line "- the fake device: no GPU was used, and times mean nothing"
    return
  fi
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader 2>&1 | sed 's/^/- /' >>"$section"
  line "- nvcc: $( (nvcc --version 2>/dev/null || echo none) | tail -1)"
  ldconfig -p 2>/dev/null | awk '/libcublasLt.so.1|libcudnn.so|libnccl.so/ { print "- installed: " $1 ": " $NF }' >>"$section"
}
if started build; then build; fi
[ -x $objects/tp-run ] || { echo "gpu-check.sh: nothing is built here yet: run the stage 'build' first" >&2; exit 2; }

names=$(for file in cases/*/"$program"; do basename "$(dirname "$file")"; done | grep -E "$cases")
blocks=$(for file in blocks/*/"$program"; do [ -f "$file" ] && basename "$(dirname "$file")"; done | grep -E "$cases")
[ -n "$names$blocks" ] || { echo "gpu-check.sh: no case and no block with a $program matches '$cases'" >&2; exit 2; }

#===----------------------------------------------------------------------===#
# cases
#===----------------------------------------------------------------------===#

# check_case NAME TITLE OPTION…: three runs, the last one against the CPU's result, as a row.
check_case() {
  local name=$1 title=$2 text status difference used
  shift 2
  is_done "$name | $title" && return
  # shellcheck disable=SC2046
  text=$(run_case "$name" --repeat 3 $(cat "cases/$name/expected") "$@")
  status=$?
  difference=$(echo "$text" | sed -n 's/.*largest difference \([^ ]*\).*/\1/p')
  used=$(echo "$text" | sed -n "s/^attention by \(.*\), [0-9]* calls.*/\1/p" | sort -u | tr '\n' ' ')
  if [ $status = 0 ] && [ -n "$difference" ]; then
    row "$name | $title" ok "$difference" "$used"
  elif echo "$text" | grep -q 'cannot load NCCL\|Duplicate GPU'; then
    row "$name | $title" skipped "" "$(echo "$text" | grep -m1 'cannot load NCCL\|Duplicate GPU')"
  else
    row "$name | $title" "**failed** ($status)" "" "$(reason $status "$text")"
  fi
}
if started cases; then
  begin_rows Results "Three runs of \`tp-run cases/CASE/$program …\`; with graphs the first is enqueued, a later one captured and replayed. Threads share one device." "" \
    "| case | ranks and graphs | result | largest difference | attention, or why not |" "|---|---|---|---|---|"
  for name in $names; do
    check_case "$name" "threads, no graphs" --no-graphs
    check_case "$name" "threads, graphs"
    case $name in *16*) check_case "$name" "threads, graphs, own attention" --attention own ;; esac
  done
  # What depends on when threads run.
  for name in $(echo "$names" | grep -- '-4$'); do
    for i in $(seq 5); do check_case "$name" "threads, graphs, again $i"; done
  done
  for name in $(echo "$names" | grep -- '-2$'); do
    # shellcheck disable=SC2086
    check_case "$name" "2 processes, graphs" -n 2 $shared
  done
fi

#===----------------------------------------------------------------------===#
# sanitize
#===----------------------------------------------------------------------===#

# Memory, races in shared memory, and barriers that not all threads of a block reach.
sanitize() {
  local sanitizer=${TP_SANITIZER:-compute-sanitizer} kind name text status summary
  begin_rows compute-sanitizer "| check | case | result | |" "|---|---|---|---|"
  if [ $fake = 1 ] && [ -z "${TP_SANITIZER:-}" ]; then
    row all "" "skipped: fake device" ""
    return
  elif ! command -v "$sanitizer" >/dev/null; then
    row all "" "skipped: compute-sanitizer isn't installed" ""
    return
  fi
  for kind in memcheck racecheck synccheck; do
    for name in $(echo "$names" | grep -E '^(mlp-f32-2|train-fsdp-2|llama-tp-2|minilm-1|prefill-bf16)$'); do
      is_done "$kind | $name" && continue
      launcher="$sanitizer --tool $kind --error-exitcode 99"
      if [ $kind = memcheck ]; then
        launcher="$launcher --report-api-errors no"
      else
        # Other libraries' kernels use means that racecheck doesn't know.
        launcher="$launcher --kernel-name regex=^(kernel_|check_|tprt_)"
      fi
      # Without graphs, so that the kernel in question is named where it is launched.
      # shellcheck disable=SC2046
      text=$(run_case "$name" --no-graphs $(sed 's/--expect/--timeout 600 --expect/' "cases/$name/expected") --repeat 3)
      status=$?
      launcher=
      summary=$(echo "$text" | grep 'SUMMARY' | tail -1 | sed 's/^=* *//')
      # Without a summary the tool itself has failed.
      if [ $status = 0 ] && [ -n "$summary" ]; then
        row "$kind | $name" ok "$summary"
      elif echo "$text" | grep -q 'Internal Sanitizer Error'; then
        row "$kind | $name" skipped "$(echo "$text" | grep -m1 'Internal Sanitizer Error' | sed 's/^=* *//')"
      else
        echo "$text" >"$results/$kind-$name.log"
        row "$kind | $name" "**failed** ($status)" "${summary:-$(reason $status "$text")}, see $results/$kind-$name.log"
      fi
    done
  done
}
if started sanitize; then sanitize; fi

#===----------------------------------------------------------------------===#
# time
#===----------------------------------------------------------------------===#

if started time; then
  begin_rows "Times of the cases" "Host time is the time of a run minus waiting for the device; with several ranks it includes waiting for the other ranks' threads." "" \
    "| case | graphs | median of runs | host time of a run |" "|---|---|---|---|"
  for name in $names; do
    for graphs in on off; do
      is_done "$name | $graphs" && continue
      option=; [ $graphs = off ] && option=--no-graphs
      # shellcheck disable=SC2086
      if text=$(run_case "$name" --warmup $warmup --repeat $repeat --json $report $option); then
        row "$name | $graphs" "$(in_units "$(median $report seconds)")" "$(in_units "$(median $report host_seconds)")"
      else
        row "$name | $graphs" "**failed**" "$(reason $? "$text")"
      fi
    done
  done
fi

#===----------------------------------------------------------------------===#
# blocks, torch
#===----------------------------------------------------------------------===#

# The numbers of ranks that the pack has blocks for, and those that this run is about.
packed=$(ls blocks | sed -n 's/^[a-z]*-\([0-9]*\)$/\1/p' | sort -nu | tr '\n' ' ')
ranks=${TP_RANKS:-}
[ -n "$ranks" ] || ranks=$(echo "$blocks" | sed -n 's/^[a-z]*-\([0-9]*\)$/\1/p' | sort -nu | tr '\n' ' ')
# begin_samples CASES [LINES]: the stage's lines 'WHAT-CASE-RANKS VALUE', '# NOTE' and 'failed-CASE
# REASON', without what it measures anew: all of the cases that match and the lines that begin so, or
# only what failed where it continues.
begin_samples() {
  samples=$results/$stage.samples section=$results/blocks.md
  touch $samples
  [ "$rounds" != 0 ] || return 0
  if [ $continues = 1 ]; then drop "failed-|# no PyTorch"; else drop "([a-z]+-|# )($1)[ :]|failed-torch|# no PyTorch${2:-}"; fi
}
drop() { grep -vE "^($1)" $samples >$samples.new; mv $samples.new $samples; }
# count WHAT: how many samples the stage has of it.
count() { grep -c "^$1 " $samples; }
# read_medians: of the samples of both stages.
declare -A medians
read_medians() {
  local file name value
  medians=()
  for file in $results/blocks.samples $results/torch.samples; do
    [ -f $file ] || continue
    while read -r name value; do medians[$name]=$value; done < <(grep -vE '^(#|failed-)' $file | sort -k1,1 -k2,2g |
      awk '$1 != name { if (n) print name, (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2; name = $1; n = 0 } { x[++n] = $2 }
           END { if (n) print name, (x[int((n + 1) / 2)] + x[int(n / 2) + 1]) / 2 }')
  done
}
# sample WHAT: its median.
sample() { echo "${medians[$1]:-}"; }
# all_samples: of both stages.
all_samples() { cat $results/blocks.samples $results/torch.samples 2>/dev/null; }
# ratio A B, two decimals; nothing where one is missing.
ratio() { [ -n "$1" ] && [ -n "$2" ] && awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
# judge VALUE GOAL; nothing where there is no value.
judge() { [ -n "$1" ] && awk -v a="$1" -v b="$2" 'BEGIN { print a <= b ? "holds" : "misses" }'; }
# judged A B GOAL: their ratio and whether it is at most the goal.
judged() { local value; value=$(ratio "$1" "$2"); [ -n "$value" ] && echo "$value, $(judge "$value" "$3") $3"; }
# sum X…; nothing where one is missing.
sum() { local x total=0; for x in "$@"; do [ -n "$x" ] || return; total=$(awk -v a="$total" -v b="$x" 'BEGIN { printf "%.9f", a + b }'); done; echo "$total"; }
# tabulate: writes the section of blocks from the samples.
tabulate() {
  local case count ours host products theirs floor goal
  read_medians
  printf '%s\n' "## A block of Llama 3 8B, bf16" "" \
    "What one rank of tensor parallelism computes, without communication: 4096 tokens (prefill), or one token with a cache of 8192 (decode), whose" \
    "own key and value are results. Weights and inputs are random. \`tp-run blocks/NAME/$program --random 0 --warmup $warmup --repeat $repeat\`," \
    "graphs on; PyTorch: \`benchmarks/llama_block.py measure\`, torch.compile with max-autotune (CUDA graphs), inputs at static addresses. Both times are from a" \
    "call until the device is done; the device's own time of PyTorch's is in brackets. Medians of the medians of the rounds in which they take turns." \
    "The floor of 4096 tokens is the block's products alone, by cuBLASLt through the runtime, plus attention alone, by cuDNN through PyTorch, plus one pass over" \
    "memory for the rest, at the rate of a copy; that of a token is the time of a copy of as many bytes as its weights and cache have. Each ratio is followed by" \
    "its goal: 0.95 of PyTorch's time and 1.10 of the floor for 4096 tokens, 0.70 and 1.25 for one token, and 10 µs of the host's time a step." "" >"$section"
  all_samples | sed -n 's/^# /- /p' >>"$section"
  [ -z "$(sample bandwidth)" ] || line "- a copy: $(awk -v b="$(sample bandwidth)" 'BEGIN { printf "%.0f", b / 1e9 }') GB/s, read and written"
  [ $fake = 1 ] && line "- the fake device and sizes of a test, PyTorch not compiling on the CPU: this shows that the scripts work, and nothing else"
  all_samples | sed -n 's/^failed-\([^ ]*\) /- \1: **failed**: /p' | sort -u >>"$section"
  line
  line "| case | ranks | tp-mlir | torch.compile | ratio | products | floor | ratio | host time |"
  line "|---|---|---|---|---|---|---|---|---|"
  for case in prefill decode; do
    for count in $packed; do
      ours=$(sample "ours-$case-$count")
      host=$(sample "host-$case-$count")
      products=$(sample "ours-$case-products-$count")
      theirs=$(sample "compiled-$case-$count")
      if [ $case = prefill ]; then
        floor=$(sum "$products" "$(sample "attention-$case-$count")" "$(sample "rest-$case-$count")") goal="0.95 1.10"
      else
        floor=$(sample "memory-$case-$count") goal="0.70 1.25"
      fi
      if [ -z "$ours" ]; then
        row "$case | $count" "" "" "" "" "" "" ""
        continue
      fi
      row "$case | $count" "$(in_units "$ours")" "$(in_units "$theirs")${theirs:+ ($(in_units "$(sample "device-$case-$count")"))}" \
        "$(judged "$ours" "$theirs" ${goal% *})" "$(in_units "$products")" "$(in_units "$floor")" "$(judged "$ours" "$floor" ${goal#* })" \
        "$(in_units "$host")${host:+, $(judge "$host" 1e-5)}"
    done
  done
}
time_blocks() {
  local round name text
  begin_samples "$(echo $blocks | tr ' ' '|')"
  for round in $(seq "$rounds"); do
    for name in $blocks; do
      [ "$(count "ours-$name")" -lt "$round" ] && [ "$(count "failed-$name")" = 0 ] || continue
      if text=$(run "blocks/$name/$program" --random 0 --warmup $warmup --repeat $repeat --json $report); then
        echo "ours-$name $(median $report seconds)"
        echo "host-$name $(median $report host_seconds)"
      else
        echo "failed-$name $(reason $? "$text")"
      fi | tee -a $samples
      tabulate >/dev/null
    done
  done
  tabulate
}
if [ -n "$ranks" ] && started blocks; then time_blocks; fi

compare_with_torch() {
  local device options line
  if [ $fake = 1 ]; then
    device=cpu options="--short"
    "$python" -c 'import torch' 2>/dev/null || device=none
  else
    device=cuda options=
    "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || device=none
  fi
  if [ $device = none ]; then
    echo "# no PyTorch with CUDA here: nothing to compare with, and no floor" | tee -a $samples
    return
  fi
  # The fake libraries would be PyTorch's, too.
  # shellcheck disable=SC2086
  LD_LIBRARY_PATH=$([ $fake = 1 ] || echo "$libraries") PYTHONUNBUFFERED=1 "$python" benchmarks/llama_block.py measure $options --device $device --ranks $ranks \
    --rounds "$rounds" --samples $samples --run-seconds "$limit" --warmup $warmup --repeat $repeat \
    --tp-run $objects/tp-run --blocks blocks --program $program --library-path "$search" 2>$objects/torch.log |
    while IFS= read -r line; do
      echo "$line" | tee -a $samples
      case $line in ours-*|memory-*|failed-*) tabulate >/dev/null ;; esac
    done || echo "failed-torch $(tail -1 $objects/torch.log)" | tee -a $samples
}
if [ -n "$ranks" ] && started torch; then
  begin_samples "(prefill|decode)(-products)?-($(echo $ranks | tr ' ' '|'))" \
    "$([ "$ranks" != "$packed" ] || echo '|bandwidth|# PyTorch')"
  if [ "$rounds" != 0 ]; then compare_with_torch; fi
  tabulate
fi

#===----------------------------------------------------------------------===#
# profile
#===----------------------------------------------------------------------===#

# shown COMMAND STATUS TEXT: what a command of the stage has printed, or that it has failed.
shown() {
  [ -z "$(tail -n 1 "$section")" ] || line
  if [ "$2" != 0 ]; then
    line "\`$1\`: **failed** ($2): $(echo "$3" | grep -i -m1 error || reason "$2" "$3")"
    return 1
  fi
  printf '%s\n' "\`$1\`:" "" >>"$section"
}
profile() {
  local ncu=${TP_NCU:-ncu} name text status runs=2
  begin "Where the time goes"
  for name in $(echo "$blocks" | grep -E '^(prefill|decode)-[0-9]+$' | awk -F- '!seen[$1]++'); do
    text=$(run "blocks/$name/$program" --random 0 --warmup 3 --repeat 10 --profile)
    status=$?
    if shown "tp-run blocks/$name/$program --profile" $status "$text"; then
      printf '%s\n' '```' "$(echo "$text" | grep -v '^note:')" '```' >>"$section"
    fi
    if { [ $fake = 1 ] && [ -z "${TP_NCU:-}" ]; } || ! command -v "$ncu" >/dev/null; then
      continue
    fi
    launcher="$ncu --clock-control none --csv --log-file $objects/ncu.csv --metrics $("$python" benchmarks/ncu_table.py --metrics)"
    rm -f $objects/ncu.csv
    text=$(run "blocks/$name/$program" --random 0 --no-graphs --repeat $runs)
    status=$?
    launcher=
    if [ $status = 0 ]; then
      text=$("$python" benchmarks/ncu_table.py $objects/ncu.csv $runs 2>&1)
      status=$?
    fi
    if shown "ncu … tp-run blocks/$name/$program --no-graphs" $status "$text"; then
      line "$text"
    fi
  done
}
if [ -n "$blocks" ] && started profile; then profile; fi

#===----------------------------------------------------------------------===#
# All stages
#===----------------------------------------------------------------------===#

{
  echo "# gpu-check"
  for stage in ${all//,/ }; do
    [ -f "$results/$stage.md" ] && { echo; cat "$results/$stage.md"; }
  done
} >"$out"
failed=$(grep -c '\*\*failed\*\*' "$out")
passed=$(grep -cE '\| ok \|' "$out")
{ echo; echo "$passed passed, $failed failed"; } >>"$out"
cat "$out"
[ "$failed" = 0 ]
