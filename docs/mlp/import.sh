# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The MLP and its plans in the current folder, imported.
cp "$(dirname "$0")"/*.yaml "$(dirname "$0")/model.py" .
python3 model.py
tp-import model.pt2 -o model.mlir --weights model.safetensors
