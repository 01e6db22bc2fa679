#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Checks sources with clang-tidy (.clang-tidy): unused code, names, needless copies.
#
#   scripts/tidy.sh                  everything in lib, tools and runtime
#   scripts/tidy.sh --sample         one file of every fourth library and tool, as the test `tidy` does
#   scripts/tidy.sh --changed BASE   what differs from a commit
#   scripts/tidy.sh FILE…
#
#   BUILD        a configured and built tree (default: build), whose commands are used
#   CLANG_TIDY   the program (default: clang-tidy-22)
#
# The exit code is 0 when nothing is found, 1 when something is, and 77 when the program isn't
# installed.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build} program=${CLANG_TIDY:-clang-tidy-22}
command -v "$program" >/dev/null || { echo "$program isn't installed"; exit 77; }

# Sources that are compiled here: the code for CUDA devices has a compiler of its own.
list() { git ls-files 'lib/*.cpp' 'tools/*.cpp' 'runtime/lib/*.cpp' 'runtime/plugins/*.cpp'; }

case ${1:-} in
'') mapfile -t files < <(list) ;;
--sample) mapfile -t files < <(list | awk -F/ '!seen[$1 == "runtime" ? $3 : $2]++ && n++ % 4 == 0') ;;
--changed) mapfile -t files < <(list | grep -Fxf <(git diff --name-only --diff-filter=d "${2:?'--changed needs a commit'}")) ;;
-*) echo "error: unknown option '$1'; there are --sample and --changed" >&2; exit 2 ;;
*) files=("$@") ;;
esac
[ ${#files[@]} != 0 ] || { echo "no files"; exit 0; }

status=0
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" "$program" -p "$build" --quiet --use-color=false 2>/dev/null || status=1
echo "${#files[@]} files checked"
exit "$status"
