#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fuzzes what reads files and messages of others, with libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer, and prints a summary, one line for each fuzzer.
#
#   scripts/fuzz.sh [--minutes N] [NAME…]      (default: 10 minutes, all fuzzers)
#
# The fuzzers share the time evenly, two at a time, each for at least a second. Each starts from the seeds in
# test/Fuzz/NAME and from what earlier campaigns found, in build-asan/fuzz/NAME/corpus. An input
# that crashes, hangs or leaks is kept in build-asan/fuzz/NAME, with the log.
#
# The exit code is 0 when no fuzzer found such an input.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
  exit "$1"
}

minutes=10
names=()
while [ $# != 0 ]; do
  case $1 in
  --minutes)
    minutes=${2:?"--minutes needs a number"}
    shift
    ;;
  -h | --help) usage 0 ;;
  -*) usage 2 >&2 ;;
  *) names+=("$1") ;;
  esac
  shift
done
if ! [[ $minutes =~ ^[1-9][0-9]*$ ]]; then
  echo "error: '$minutes' minutes; give a positive whole number" >&2
  exit 2
fi
known=$(cd test/Fuzz && echo *)
for name in "${names[@]}"; do
  if ! [ -d "test/Fuzz/$name" ]; then
    echo "error: no fuzzer '$name'; there are $known" >&2
    exit 2
  fi
done
[ ${#names[@]} != 0 ] || read -ra names <<<"$known"

scripts/setup.sh
cmake --preset asan-ubsan
cmake --build --preset asan-ubsan --target "${names[@]/#/tp-fuzz-}"

bin=$PWD/build-asan/bin
seeds=$PWD/test/Fuzz
out=$PWD/build-asan/fuzz
seconds=$((minutes * 60 / ((${#names[@]} + 1) / 2)))
((seconds > 0)) || seconds=1
export ASAN_OPTIONS=allow_user_poisoning=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

fuzz() {
  local name=$1 folder=$out/$1
  mkdir -p "$folder/corpus"
  "$bin/tp-fuzz-$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -max_len=8192 \
    -print_final_stats=1 -artifact_prefix="$folder/" "$folder/corpus" "$seeds/$name" \
    >"$folder/log" 2>&1 || echo failed >"$folder/failed"
}

printf '== %s s for each of %s\n' "$seconds" "${names[*]}"
for name in "${names[@]}"; do
  rm -f "$out/$name/failed"
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
  fuzz "$name" &
done
wait

status=0
total=0
printf '\n== summary\n%-14s %12s %9s  %s\n' fuzzer runs coverage result
for name in "${names[@]}"; do
  log=$out/$name/log
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  coverage=$(grep -oE ' cov: [0-9]+' "$log" | tail -n 1 | grep -oE '[0-9]+' || true)
  result=passed
  if [ -e "$out/$name/failed" ]; then
    result="FAILED: $(grep -m 1 -oE '(ERROR|SUMMARY): .*' "$log" || true) (build-asan/fuzz/$name)"
    status=1
  fi
  printf '%-14s %12s %9s  %s\n' "$name" "${runs:-?}" "${coverage:-?}" "$result"
  total=$((total + ${runs:-0}))
done
printf '%-14s %12s\n' all "$total"
exit "$status"
