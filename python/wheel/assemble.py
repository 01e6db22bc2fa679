# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles the contents of a wheel from a build: the package, its extension modules, the tools, and the libraries that
they need and that a user's machine may lack. Symbols are stripped, and run paths are relative.

    tp_mlir/*.py, *.so       the package
    tp_mlir/bin              the tools, which `python -m tp_mlir` runs
    tp_mlir/lib              libtprt, libtpllvm (trim_llvm.py), libnettle
    tp_mlir/licenses         of everything that the wheel contains
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# What every Linux with Python has, or PyTorch brings.
EXPECTED = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux-x86-64|libtorch_cpu|libc10)\.so")
LICENSES = {
    "LLVM and MLIR": "/usr/share/doc/llvm-22-dev/copyright",
    "OpenBLAS": "/usr/share/doc/libopenblas-pthread-dev/copyright",
    "Nettle": "/usr/share/doc/libnettle8/copyright",
    "zlib": "/usr/share/doc/zlib1g-dev/copyright",
    "Zstandard": "/usr/share/doc/libzstd-dev/copyright",
    "JSON for Modern C++": "/usr/share/doc/nlohmann-json3-dev/copyright",
    "CLI11": "/usr/share/doc/libcli11-dev/copyright",
    "Protocol Buffers": "/usr/share/doc/libprotobuf-dev/copyright",
}


def list_needed(file):
    """The names of the libraries that a file is linked with."""
    output = subprocess.run(["readelf", "--dynamic", "--wide", file], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output)


def find_library(file, name):
    """Where the dynamic linker finds a library that `file` needs."""
    output = subprocess.run(["ldd", file], check=True, capture_output=True, text=True).stdout
    return re.search(rf"{re.escape(name)} => (\S+)", output)[1]


class Wheel:
    def __init__(self, options):
        self.options = options
        self.root = options.output / "tp_mlir"
        shutil.rmtree(options.output, ignore_errors=True)
        self.files = []

    def add(self, source, folder="", name=None):
        """Copies a program or library."""
        target = self.root / folder / (name or pathlib.Path(source).name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755)
        subprocess.run([self.options.strip, target], check=True)
        self.files.append(target)

    def replace_llvm(self):
        """Puts the trimmed library in the place of MLIR's and LLVM's."""
        users = [file for file in self.files if any(name.startswith(("libMLIR.so", "libLLVM.so")) for name in list_needed(file))]
        library = self.root / "lib" / "libtpllvm.so"
        subprocess.run([sys.executable, HERE / "trim_llvm.py", "--output", library, "--libraries", self.options.llvm,
                        "--clang", self.options.clang, *users], check=True)
        self.files.append(library)
        for file in users:
            for name in list_needed(file):
                if name.startswith(("libMLIR.so", "libLLVM.so")):
                    subprocess.run([self.options.patchelf, "--replace-needed", name, library.name, file], check=True)

    def add_needed(self):
        """Copies the libraries that neither the wheel nor every machine has."""
        for file in self.files:
            for name in list_needed(file):
                if not EXPECTED.match(name) and not (self.root / "lib" / name).exists():
                    self.add(find_library(file, name), "lib", name)

    def set_run_paths(self):
        for file in self.files:
            path = {"lib": "$ORIGIN", "bin": "$ORIGIN/../lib"}.get(file.parent.name, "$ORIGIN/lib")
            subprocess.run([self.options.patchelf, "--set-rpath", path, file], check=True)

    def add_texts(self):
        source = HERE.parent / "tp_mlir"
        for pattern in ("*.py", "*.pyi", "py.typed"):
            for file in source.rglob(pattern):
                target = self.root / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        project = HERE.parents[1]
        licenses = {**LICENSES, "tp-mlir": project / "LICENSE", "Chart.js": project / "third_party/Chart.js/LICENSE",
                    "dagre": project / "third_party/dagre/LICENSE", "TensorBoard": project / "third_party/tensorboard/LICENSE",
                    "nanobind": self.options.nanobind_license}
        for name, path in licenses.items():
            target = self.root / "licenses" / f"{name.replace(' ', '-')}.txt"
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--modules", nargs="+", required=True)
    parser.add_argument("--tools", nargs="+", required=True)
    parser.add_argument("--runtime", required=True, help="libtprt")
    parser.add_argument("--llvm", required=True, help="the folder of MLIR's and LLVM's libraries")
    parser.add_argument("--clang", required=True)
    parser.add_argument("--strip", required=True)
    parser.add_argument("--patchelf", required=True)
    parser.add_argument("--nanobind-license", required=True)
    options = parser.parse_args()
    wheel = Wheel(options)
    for module in options.modules:
        wheel.add(module)
    for tool in options.tools:
        wheel.add(tool, "bin")
    wheel.add(options.runtime, "lib", "libtprt.so.0")
    wheel.replace_llvm()
    wheel.add_needed()
    wheel.set_run_paths()
    wheel.add_texts()


if __name__ == "__main__":
    main()
