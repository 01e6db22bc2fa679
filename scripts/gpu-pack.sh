#!/usr/bin/env bash
# Packs what scripts/gpu-check.sh needs on a machine with a GPU but without MLIR: the runtime's sources, the headers and
# libraries that it is built with, the small examples compiled for CUDA devices and for the fake one, with their weights,
# inputs, and results on the CPU. Needs a finished build with the CUDA target, and the Python environment of setup.sh.
#
#   scripts/gpu-pack.sh [OUTPUT.tar.gz]      # default: build/gpu-pack.tar.gz, less than 64 MiB
#
# TP_BIN: the folder of the tools (build/bin); TP_ARCHS: the devices' architectures (sm_80,sm_90,sm_100).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
output=${1:-build/gpu-pack.tar.gz}
bin=${TP_BIN:-build/bin}
archs=${TP_ARCHS:-sm_80,sm_90,sm_100}
max_bytes=$((64 << 20))
work=build/gpu-pack
pack=$work/tp-mlir-gpu
examples=$work/examples
rm -rf "$pack"
mkdir -p "$pack/cases" "$pack/third_party/include" "$pack/third_party/lib"

# Sources, and what they include and link that a bare machine may lack.
cp -r runtime "$pack/"
mkdir -p "$pack/tools" "$pack/scripts"
cp -r tools/tp-run "$pack/tools/"
cp scripts/gpu-check.sh "$pack/scripts/"
cp -rL /usr/include/nlohmann /usr/include/CLI "$pack/third_party/include/"
cp -L /usr/include/zlib.h /usr/include/zconf.h "$pack/third_party/include/" 2>/dev/null ||
  cp -L "$(find /usr/include -name zlib.h | head -1)" "$(find /usr/include -name zconf.h | head -1)" "$pack/third_party/include/"
for header in cblas.h openblas_config.h; do
  cp -L "$(find /usr/include -name $header | head -1)" "$pack/third_party/include/"
done
ldd "$bin/../lib/libtprt.so" | awk '/openblas|gfortran|quadmath|libz\./ { print $1, $3 }' |
  while read -r name path; do cp -L "$path" "$pack/third_party/lib/$name"; done

# add_case NAME FOLDER INPUT…: a folder as the examples leave it.
add_case() {
  local name=$1 folder=$2 model
  shift 2
  model=$(basename "$(dirname "$folder")")
  mkdir -p "$pack/cases/$name"
  "$bin/tp-compile" "$folder/ranks.mlir" "--target=cuda:$archs" -o "$pack/cases/$name/device.tpx"
  "$bin/tp-compile" "$folder/ranks.mlir" --target=cuda:emulated -o "$pack/cases/$name/fake.tpx"
  cp "$folder/y.npy" "$pack/cases/$name/"
  [ -f "$pack/cases/$model.safetensors" ] || cp "$folder/../model.safetensors" "$pack/cases/$model.safetensors"
  echo "--weights cases/$model.safetensors" >"$pack/cases/$name/arguments"
  for input in "$@"; do
    cp "$folder/../$input.npy" "$pack/cases/$name/"
    echo "--input $input=cases/$name/$input.npy" >>"$pack/cases/$name/arguments"
  done
}

# Models whose weights take a few megabytes.
python=${TP_PYTHON:-.venv/bin/python}
"$python" examples/llama/run.py --bin "$bin" --out "$examples/llama" --ranks 1 2 4
"$python" examples/gpt2/run.py --bin "$bin" --out "$examples/gpt2" --ranks 1 2 4
for ranks in 1 2 4; do
  add_case "llama-tp-$ranks" "$examples/llama/tp-$ranks" ids
  add_case "llama-sp-$ranks" "$examples/llama/sp-$ranks" ids
  add_case "gpt2-$ranks" "$examples/gpt2/plan-$ranks" ids
done

tar -C "$work" -czf "$output" "$(basename "$pack")"
bytes=$(stat -c %s "$output")
echo "$output: $((bytes >> 10)) KiB, $(find "$pack/cases" -name device.tpx | wc -l) cases for $archs"
if [ "$bytes" -gt "$max_bytes" ]; then
  echo "error: $output has $bytes bytes, more than $max_bytes" >&2
  exit 1
fi
