#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs what scripts/gpu-check.sh needs on a machine with a GPU but without MLIR: the runtime's
# sources, the headers and libraries that it is built with, and programs compiled for CUDA devices
# and for the fake one. These are small examples with their weights, inputs and results on the CPU,
# first steps of those that train among them; MiniLM, MLPs of all types of floats and a training
# step, whose weights `tp-run --random` draws on either machine, so that none are packed; and a
# block of Llama 3 8B to time, whose weights are drawn, too. Needs a finished build with the CUDA
# target and nvcc, and the Python environment of setup.sh.
#
#   scripts/gpu-pack.sh [--small] [OUTPUT.tar.gz]  # default: build/gpu-pack.tar.gz, below 64 MiB
#
# --small: for the fake device alone, without the examples, MiniLM and the blocks of full size: MLPs
# and their training steps, attention of 16-bit floats, and blocks of a test's size with the training
# step of one. Takes 15 seconds on two idle cores.
# TP_BIN: the folder of the tools (build/bin); TP_ARCHS: the devices' architectures
# (sm_80,sm_90,sm_100); TP_PYTHON.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
small=0
[ "${1:-}" = --small ] && { small=1; shift; }
output=$(realpath -m "${1:-$root/build/gpu-pack.tar.gz}")
cd "$root"
bin=${TP_BIN:-build/bin}
archs=${TP_ARCHS:-sm_80,sm_90,sm_100}
python=${TP_PYTHON:-.venv/bin/python}
max_bytes=$((64 << 20))
[ "${output%.tar.gz}" != "$output" ] || { echo "gpu-pack.sh: '$output' doesn't end in .tar.gz" >&2; exit 2; }
kernels=$bin/../runtime/kernels
if ! ls "$kernels"/*.fatbin >/dev/null 2>&1 || [ -n "$(find "$kernels" -name '*Kernels.*' -empty)" ]; then
  echo "gpu-pack.sh: the build of '$bin' lacks the runtime's own kernels: it found no nvcc; configure it with -DTPRT_NVCC=PATH and rebuild" >&2
  exit 1
fi
work=${output%.tar.gz}
pack=$work/tp-mlir-gpu
made=$work/made
rm -rf "$pack"
mkdir -p "$pack/cases" "$pack/blocks" "$pack/third_party/include" "$pack/third_party/lib" "$made"

# Sources, and what they include and link that a bare machine may lack.
cp -r runtime "$pack/"
cp "$kernels"/*.ptx "$kernels"/*.fatbin "$pack/runtime/lib/cuda/"
cp "$bin/../runtime/training.html.inc" "$pack/runtime/lib/train/"
mkdir -p "$pack/tools" "$pack/scripts" "$pack/benchmarks"
cp -r tools/tp-run tools/*.h "$pack/tools/"
cp scripts/gpu-check.sh "$pack/scripts/"
cp benchmarks/llama_block.py benchmarks/ncu_table.py "$pack/benchmarks/"
mkdir -p "$pack/prebuilt"
cp "$bin/tp-run" "$pack/prebuilt/"
cp -L "$bin/../lib/libtprt.so.0" "$pack/prebuilt/"
strip -g "$pack"/prebuilt/*
cp -rL /usr/include/nlohmann /usr/include/CLI /usr/include/unicode "$pack/third_party/include/"
cp -L /usr/include/zlib.h /usr/include/zconf.h "$pack/third_party/include/" 2>/dev/null ||
  cp -L "$(find /usr/include -name zlib.h | head -1)" "$(find /usr/include -name zconf.h | head -1)" "$pack/third_party/include/"
mkdir -p "$pack/third_party/include/nettle"
cp -L /usr/include/nettle/*.h "$pack/third_party/include/nettle/"
for header in cblas.h openblas_config.h; do
  cp -L "$(find /usr/include -name $header | head -1)" "$pack/third_party/include/"
done
ldd "$bin/tp-run" | awk '/openblas|gfortran|quadmath|libz\.|nettle/ { print $1, $3 }' |
  while read -r name path; do cp -L "$path" "$pack/third_party/lib/$name"; done

# compile IR FOLDER: for devices, and for the fake one.
compile() {
  mkdir -p "$2"
  [ $small = 1 ] || "$bin/tp-compile" "$1" "--target=cuda:$archs" -o "$2/device.tpx"
  "$bin/tp-compile" "$1" --target=cuda:emulated -o "$2/fake.tpx"
}

# add_case NAME FOLDER INPUT…: a folder as the examples leave it.
add_case() {
  local name=$1 folder=$2 model
  shift 2
  model=$(basename "$(dirname "$folder")")
  compile "$folder/ranks.mlir" "$pack/cases/$name"
  cp "$folder/y.npy" "$pack/cases/$name/"
  [ -f "$pack/cases/$model.safetensors" ] || cp "$folder/../model.safetensors" "$pack/cases/$model.safetensors"
  echo "--weights cases/$model.safetensors" >"$pack/cases/$name/arguments"
  for input in "$@"; do
    cp "$folder/../$input.npy" "$pack/cases/$name/"
    echo "--input $input=cases/$name/$input.npy" >>"$pack/cases/$name/arguments"
  done
  echo "--expect cases/$name/y.npy --rtol 1e-4 --atol 1e-4" >"$pack/cases/$name/expected"
}

# add_random NAME IR OUTPUT TOLERANCE [OPTION…]: one whose weights are drawn; its output's value
# after three runs on the CPU.
add_random() {
  local name=$1 ir=$2 result=$3 tolerance=$4
  shift 4
  compile "$ir" "$pack/cases/$name"
  echo "--random 0 $*" >"$pack/cases/$name/arguments"
  echo "--expect $result=cases/$name/expected.npy --rtol $tolerance --atol $tolerance" >"$pack/cases/$name/expected"
  "$bin/tp-compile" "$ir" -o "$made/$name.tpx"
  # shellcheck disable=SC2046
  (cd "$pack" && "$tools/tp-run" "$made/$name.tpx" $(cat "cases/$name/arguments") --repeat 3 \
    --output "$result=cases/$name/expected.npy")
}
tools=$(realpath "$bin")

# An MLP over two ranks, of each type of floats, and a step of its training.
mlp() {
  cat <<END
func.func @main(%x: tensor<32x48x$1> {tp.name = "x"}) -> (tensor<32x40x$1> {tp.name = "y"}) {
  %h = nn.module "up" class "Up" (%x as "input" at 0) {
  ^bb0(%a: tensor<32x48x$1>):
    %w = nn.parameter "up.weight" : tensor<96x48x$1>
    %b = nn.parameter "up.bias" : tensor<96x$1>
    %p = nn.linear %a, %w : (tensor<32x48x$1>, tensor<96x48x$1>) -> tensor<32x96x$1>
    %l = nn.add %p, %b : (tensor<32x96x$1>, tensor<96x$1>) -> tensor<32x96x$1>
    %r = nn.relu %l : tensor<32x96x$1>
    nn.yield %r : tensor<32x96x$1>
  } : (tensor<32x48x$1>) -> tensor<32x96x$1>
  %0 = nn.module "down" class "Linear" (%h as "input" at 0) {
  ^bb0(%a: tensor<32x96x$1>):
    %w = nn.parameter "down.weight" : tensor<40x96x$1>
    %l = nn.linear %a, %w : (tensor<32x96x$1>, tensor<40x96x$1>) -> tensor<32x40x$1>
    nn.yield %l : tensor<32x40x$1>
  } : (tensor<32x96x$1>) -> tensor<32x40x$1>
  return %0 : tensor<32x40x$1>
}
END
}
printf 'mesh: {tp: 2}\nplan: {up: ColwiseParallel, down: RowwiseParallel}\n' >"$made/tp.yaml"
printf 'mesh: {dp: 2}\ndata_parallel: {dp: fsdp}\n' >"$made/fsdp.yaml"
printf 'loss: {name: mse}\noptimizer: {name: AdamW, lr: 0.01}\nclip_grad_norm: 1.0\n' >"$made/train.yaml"
for type in f32:1e-5 f64:1e-12 f16:1e-2 bf16:6e-2; do
  dtype=${type%:*}
  mlp "$dtype" >"$made/mlp-$dtype.mlir"
  "$bin/tp-opt" "$made/mlp-$dtype.mlir" --tp-parallelize="plan=$made/tp.yaml" -o "$made/mlp-$dtype-2.mlir"
  add_random "mlp-$dtype-2" "$made/mlp-$dtype-2.mlir" y "${type#*:}"
done
for plan in tp fsdp; do
  "$bin/tp-opt" "$made/mlp-f32.mlir" --tp-parallelize="plan=$made/$plan.yaml train=$made/train.yaml" -o "$made/train-$plan-2.mlir"
  add_random "train-$plan-2" "$made/train-$plan-2.mlir" loss 1e-5
done

# Attention of 16-bit floats, which cuDNN computes on a device: heads that share keys, with each
# kind of mask.
# attention TYPE CAUSAL MASK: 'causal' or nothing, and the mask's type or nothing.
attention() {
  local input= operand= type=
  [ -z "$3" ] || { input=", %m: tensor<2x1x96x96x$3> {tp.name = \"mask\"}"; operand="mask %m"; type=", tensor<2x1x96x96x$3>"; }
  cat <<END
func.func @main(%q: tensor<2x8x96x64x$1> {tp.name = "q"}, %k: tensor<2x2x96x64x$1> {tp.name = "k"},
                %v: tensor<2x2x96x64x$1> {tp.name = "v"}$input) -> (tensor<2x8x96x64x$1> {tp.name = "y"}) {
  %y = nn.attention $2 %q, %k, %v $operand scale 0.125
    : (tensor<2x8x96x64x$1>, tensor<2x2x96x64x$1>, tensor<2x2x96x64x$1>$type) -> tensor<2x8x96x64x$1>
  return %y : tensor<2x8x96x64x$1>
}
END
}
mkdir -p "$pack/cases/inputs"
"$python" -c '
import sys
import numpy as np
mask = np.random.default_rng(0).random((2, 1, 96, 96)) < 0.7
mask[0, 0, 5] = False  # a row that sees nothing
np.save(sys.argv[1], mask)
' "$pack/cases/inputs/attention-mask.npy"
for type in f16:4e-3 bf16:3e-2; do
  dtype=${type%:*}
  for form in plain:: causal:causal: added::$dtype boolean::i1; do
    IFS=: read -r kind causal mask <<<"$form"
    name=attention-$kind-$dtype
    attention "$dtype" "$causal" "$mask" >"$made/$name.mlir"
    add_random "$name" "$made/$name.mlir" y "${type#*:}" $([ "$mask" = i1 ] && echo "--input mask=cases/inputs/attention-mask.npy")
  done
done

if [ $small = 0 ]; then
  # Models whose weights take a few megabytes, and MiniLM, whose own take ninety.
  "$python" examples/llama/run.py --bin "$bin" --out "$made/llama" --ranks 1 2 4
  "$python" examples/gpt2/run.py --bin "$bin" --out "$made/gpt2" --ranks 1 2 4
  "$python" examples/minilm/run.py --bin "$bin" --out "$made/minilm" --ranks 1 2 4
  mkdir -p "$pack/cases/inputs"
  cp "$made/minilm/ids.npy" "$made/minilm/mask.npy" "$pack/cases/inputs/"
  # What can't be drawn: positions.
  "$python" -c '
import sys
from safetensors.numpy import load_file, save_file
save_file({name: x for name, x in load_file(sys.argv[1]).items() if x.dtype.kind == "i"}, sys.argv[2])
' "$made/minilm/model.safetensors" "$pack/cases/inputs/minilm.safetensors"
  for ranks in 1 2 4; do
    add_case "llama-tp-$ranks" "$made/llama/tp-$ranks" ids
    add_case "llama-sp-$ranks" "$made/llama/sp-$ranks" ids
    add_case "gpt2-$ranks" "$made/gpt2/plan-$ranks" ids
    result=$("$bin/tp-run" --describe "$made/minilm/plan-$ranks/model.tpx" | awk '/^outputs/ { getline; print $1 }')
    add_random "minilm-$ranks" "$made/minilm/plan-$ranks/ranks.mlir" "$result" 1e-4 \
      --weights cases/inputs/minilm.safetensors --input ids=cases/inputs/ids.npy --input mask=cases/inputs/mask.npy
  done

  # Three steps of the examples that train, each on its first batch.
  "$python" examples/train_digits/run.py --bin "$bin" --out "$made/train_digits"
  "$python" examples/train_charlm/run.py --bin "$bin" --out "$made/train_charlm" --steps 2 --characters 1
  "$python" -c '
import sys
import numpy as np
made, inputs = sys.argv[1:]
np.save(f"{inputs}/digits-x.npy", np.load(f"{made}/train_digits/images.npy")[:64])
np.save(f"{inputs}/digits-target.npy", np.load(f"{made}/train_digits/classes.npy")[:64])
tokens = np.fromfile(f"{made}/train_charlm/tokens.bin", np.uint16).astype(np.int64)
np.save(f"{inputs}/charlm-ids.npy", tokens[: 8 * 128].reshape(8, 128))
np.save(f"{inputs}/charlm-target.npy", tokens[1 : 8 * 128 + 1].reshape(8, 128))
' "$made" "$pack/cases/inputs"
  for name in digits charlm; do
    cp "$made/train_$name/train/model.safetensors" "$pack/cases/inputs/$name.safetensors"
    first=$([ $name = digits ] && echo x || echo ids)
    add_random "train-$name-4" "$made/train_$name/train/ranks.mlir" loss 1e-4 --weights "cases/inputs/$name.safetensors" \
      --input "$first=cases/inputs/$name-$first.npy" --input "target=cases/inputs/$name-target.npy"
  done
fi

numbers="1 2 4 8"
[ $small = 1 ] && numbers="2 8"
# Blocks of Llama 3 8B as a rank of 1, 2, 4 and 8 has them; for the fake device, of a test's size.
# shellcheck disable=SC2086
"$python" benchmarks/llama_block.py make "$made/small" --short --ranks $numbers
[ $small = 1 ] || "$python" benchmarks/llama_block.py make "$made/block"
# import_block SIZE NAME
import_block() {
  local options=()
  while read -r input; do options+=(--input "$input"); done <"$made/$1/$2.inputs"
  "$bin/tp-import" "$made/$1/$2.pt" "${options[@]}" -o "$made/$1/$2.mlir"
}
# add_block SIZE NAME TARGET FILE
add_block() {
  import_block "$1" "$2"
  mkdir -p "$pack/blocks/$2"
  "$bin/tp-compile" "$made/$1/$2.mlir" "--target=cuda:$3" -o "$pack/blocks/$2/$4"
}
# Those of a test's size are cases, too: attention of 16 bits among all else, and its gradient.
for case in prefill:output decode:output0; do
  name=${case%:*}
  import_block small "$name-2"
  add_random "$name-bf16" "$made/small/$name-2.mlir" "${case#*:}" 3e-2
done
sed 's/ frozen//' "$made/small/prefill-2.mlir" >"$made/train-prefill.mlir"
"$bin/tp-opt" "$made/train-prefill.mlir" --tp-grad="train=$made/train.yaml" -o "$made/train-prefill-bf16.mlir"
add_random train-prefill-bf16 "$made/train-prefill-bf16.mlir" loss 3e-2

for ranks in $numbers; do
  for name in prefill decode prefill-products decode-products; do
    add_block small "$name-$ranks" emulated fake.tpx
    [ $small = 1 ] || add_block block "$name-$ranks" "$archs" device.tpx
  done
done

tar -C "$work" -czf "$output" "$(basename "$pack")"
bytes=$(stat -c %s "$output")
echo "$output: $((bytes >> 10)) KiB, $(find "$pack/cases" -name fake.tpx | wc -l) cases, $(find "$pack/blocks" -name fake.tpx | wc -l) blocks for" \
  "$([ $small = 1 ] && echo "the fake device" || echo "$archs")"
if [ "$bytes" -gt "$max_bytes" ]; then
  echo "error: $output has $bytes bytes, more than $max_bytes" >&2
  exit 1
fi
