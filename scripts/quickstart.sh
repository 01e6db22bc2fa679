#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# From a fresh Debian 12 machine to a sharded model: installs what is needed, builds
# the tools into build/bin, and runs the MiniLM sentence encoder over 2 and 4 ranks.
#
#   scripts/quickstart.sh
set -euo pipefail
cd "$(dirname "$0")/.."
SECONDS=0

step() { printf '\n== %s (%d:%02d min)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

scripts/setup.sh
step "configuring and building into build/"
cmake --preset release
cmake --build --preset release
step "running examples/minilm"
.venv/bin/python examples/minilm/run.py
step "done"
cat <<'TEXT'
The tools are in build/bin, all files of the example in build/examples/minilm:
  model.pt, model.mlir, model.safetensors   the model, imported
  plan-2/, plan-4/                          for each number of ranks: the plan, the
                                            per-rank program, its report and artifact
Next: examples/llama/run.py (with sequence parallelism), examples/gpt2/run.py,
      scripts/test.sh (all tests), docs/.
TEXT
