# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Let PyPI's PyTorch be imported on a machine without CUDA.

For Linux, PyPI has PyTorch as a CUDA build only: `import torch` loads eleven
CUDA libraries (1.8 GB to download) that no computation on a CPU ever calls.
This script writes small libraries of the same names, whose functions do
nothing but return an error status, into the folder of the virtual environment
where PyTorch looks first. The two that a CPU does use (libcudart, libcupti)
are small and come from PyPI.

Only for a virtual environment of one's own: PyTorch can't use a GPU from there.
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

# Library → prefix of the functions that PyTorch imports from it.
STUBS = {
    "libcublas.so.13": "cublas",
    "libcublasLt.so.13": "cublasLt",
    "libcudnn.so.9": "cudnn",
    "libcufft.so.12": "cufft",
    "libcufile.so.0": "cuFile",
    "libcurand.so.10": "curand",
    "libcusparse.so.12": "cusparse",
    "libcusparseLt.so.0": "cusparseLt",
    "libnccl.so.2": "nccl",
    "libnvrtc.so.13": "nvrtc",
    "libnvshmem_host.so.3": "nvshmem",
}


def undefined_symbols(libraries):
    """Names that the libraries import, as `function` or `function@VERSION`."""
    output = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", *libraries],
        check=True, capture_output=True, text=True).stdout
    return sorted(set(re.findall(r" U (\S+)$", output, re.MULTILINE)))


def owner(symbol):
    """The library in STUBS that has `symbol` (the longest prefix), or None."""
    fitting = [lib for lib, prefix in STUBS.items() if symbol.startswith(prefix)]
    return max(fitting, key=lambda lib: len(STUBS[lib]), default=None)


def write_stub(folder, library, symbols):
    """Write `folder/library`, which defines `symbols` with their versions."""
    names = [symbol.split("@")[0] for symbol in symbols]
    versions = {s.split("@")[1] for s in symbols if "@" in s} or {library}
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "stub.c"), Path(scratch, "stub.map")
        source.write_text("".join(f"int {n}(void) {{ return 1; }}\n" for n in names))
        script.write_text("".join(f"{v} {{ global: *; }};\n" for v in versions))
        subprocess.run(
            ["clang-22", "-shared", "-fPIC", "-nostdlib", source, "-o", folder / library,
             f"-Wl,-soname,{library}", f"-Wl,--version-script={script}"], check=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site_packages", type=Path,
                        help="the folder that holds torch/ and nvidia/cu13/lib")
    folder = parser.parse_args().site_packages
    symbols = undefined_symbols(sorted(folder.glob("torch/lib/*.so")))
    for library in STUBS:
        write_stub(folder / "nvidia/cu13/lib", library,
                   [s for s in symbols if owner(s) == library])


if __name__ == "__main__":
    main()
