#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs the tests under sanitizers and prints a summary, one line for each part.
#
#   scripts/sanitize.sh [asan-ubsan] [tsan]      (default: both)
#
#   asan-ubsan   everything with AddressSanitizer and UndefinedBehaviorSanitizer: all of ctest,
#                in build-asan
#   tsan         what has threads with ThreadSanitizer: the runtime's tests and tp-run, in
#                build-tsan. tp-run executes the examples, training, and rewritten and started
#                collectives; the compiler's tools are those of the release build.
#
# The exit code is 0 when every part passes. Logs are in build-asan and build-tsan.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
[ ${#parts[@]} != 0 ] || parts=(asan-ubsan tsan)
for part in "${parts[@]}"; do
  case $part in
  asan-ubsan | tsan) ;;
  *)
    echo "error: unknown part '$part'; there are asan-ubsan and tsan" >&2
    exit 2
    ;;
  esac
done

summary=()
status=0

# run NAME COMMAND…: adds a line with the command's result to the summary.
run() {
  local name=$1 begin=$SECONDS result=passed log
  shift
  log=$logs/${name// /-}.log
  printf '== %s: %s\n' "$name" "$*"
  if ! "$@" 2>&1 | tee "$log"; then
    result=FAILED
    status=1
  fi
  summary+=("$(printf '%-28s %-7s %5d s  %s' "$name" "$result" $((SECONDS - begin)) \
    "$(grep -E 'tests passed|WARNING: ThreadSanitizer' "$log" | sort | uniq -c | sort -rn | sed 's/^ *[0-9]* //' | head -n 1)")")
}

check_memory() {
  logs=build-asan/logs
  mkdir -p "$logs"
  run asan-ubsan scripts/test.sh --preset asan-ubsan
}

# The tools that execute, with ThreadSanitizer, beside those that compile, without.
build_tsan() {
  cmake -S runtime -B build-tsan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_EXE_LINKER_FLAGS_INIT=-fuse-ld=lld -DCMAKE_SHARED_LINKER_FLAGS_INIT=-fuse-ld=lld \
    -DTP_SANITIZE=thread
  cmake --build build-tsan
  local tool
  for tool in tp-import tp-opt tp-compile; do
    ln -sfn "$PWD/build/bin/$tool" "build-tsan/bin/$tool"
  done
}

check_threads() {
  logs=build-tsan/logs
  mkdir -p "$logs"
  scripts/setup.sh
  cmake --preset release
  cmake --build --preset release
  build_tsan
  export TSAN_OPTIONS="halt_on_error=1:exitcode=66:suppressions=$PWD/scripts/tsan-suppressions.txt"
  local python=.venv/bin/python bin=build-tsan/bin out=build-tsan/out
  run "tsan runtime" ctest --test-dir build-tsan --output-on-failure
  run "tsan examples" "$python" examples/check.py --bin "$bin" --out "$out/check"
  run "tsan training" "$python" examples/train_digits/run.py --bin "$bin" --out "$out/train_digits"
  run "tsan collectives" "$python" test/numerics/collectives.py --tools "$bin"
}

for part in "${parts[@]}"; do
  case $part in
  asan-ubsan) check_memory ;;
  tsan) check_threads ;;
  esac
done

printf '\n== summary\n'
printf '%s\n' "${summary[@]}"
exit "$status"
