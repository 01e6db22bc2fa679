# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links the part of MLIR and LLVM that some programs use into one shared library.

Debian's libMLIR and libLLVM have all dialects and targets, and need further libraries. This one stands in for both: it is
linked from the static archives of the same package, and exports what the programs import from the two, with the same
symbol versions. So the programs need no other link, only the new name (`patchelf --replace-needed`).

usage: trim_llvm.py --output LIBRARY --libraries FOLDER --clang CLANG++ PROGRAM…
"""

import argparse
import pathlib
import subprocess
import tempfile

SHARED = ("libMLIR.so", "libLLVM.so")


def list_symbols(kind, files):
    """The dynamic symbols, as `name` or `name@version`."""
    run = subprocess.run(["nm", "--dynamic", f"--{kind}-only", "--format=posix", *files], check=True, capture_output=True, text=True)
    return {line.split()[0] for line in run.stdout.splitlines() if line and not line.endswith(":")}


def write_exports(path, symbols):
    """A version script. Symbols without a version get one, which no program asks for."""
    versions = {}
    for symbol in sorted(symbols):
        name, _, version = symbol.partition("@")
        versions.setdefault(version.lstrip("@") or "MLIR", []).append(name)
    text = "".join(f"{version} {{ global:\n{''.join(f'  {name};{chr(10)}' for name in names)}}};\n" for version, names in versions.items())
    path.write_text(text + "LOCAL { local: *; };\n")


def list_other_targets(folder):
    """LLVM's targets that tp-mlir doesn't compile for."""
    names = {path.stem.removeprefix("libLLVM").removesuffix("Info") for path in folder.glob("libLLVM*Info.a")}
    return sorted(names - {"X86", "NVPTX", "Debug"})


def find_archives(folder):
    """MLIR's archives, and LLVM's without those of other targets."""
    parts = ("AsmParser", "CodeGen", "Desc", "Disassembler", "Info", "TargetMCA", "Utils", "Analysis")
    skipped = {f"libLLVM{target}{part}" for target in list_other_targets(folder) for part in parts}
    return [*sorted(folder.glob("libMLIR*.a")), *(path for path in sorted(folder.glob("libLLVM*.a")) if path.stem not in skipped)]


def write_stubs(path, folder):
    """What registers another target, which MLIR's list of all passes calls: there is nothing to register."""
    parts = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser", "Disassembler")
    path.write_text("".join(f"void LLVMInitialize{target}{part}(void) {{}}\n" for target in list_other_targets(folder) for part in parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", type=pathlib.Path, required=True, help="the folder of the archives and shared libraries")
    parser.add_argument("--clang", required=True)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    defined = list_symbols("defined", [options.libraries / name for name in SHARED])
    # A definition of the default version has '@@'.
    defined = {symbol.replace("@@", "@") for symbol in defined}
    # What programs and libraries both define, as templates, must stay one object.
    used = list_symbols("undefined", options.programs) | list_symbols("defined", options.programs)
    wanted = used & defined
    with tempfile.TemporaryDirectory() as scratch:
        exports, arguments, stubs = (pathlib.Path(scratch, name) for name in ("exports", "arguments", "stubs.c"))
        write_exports(exports, wanted)
        write_stubs(stubs, options.libraries)
        names = [symbol.split("@")[0] for symbol in sorted(wanted)]
        arguments.write_text("\n".join([*(f"-Wl,--undefined={name}" for name in names), "-Wl,--start-group",
                                        *map(str, find_archives(options.libraries)), "-Wl,--end-group"]))
        subprocess.run([options.clang, "-shared", "-fuse-ld=lld", "-o", options.output, f"-Wl,-soname,{options.output.name}",
                        f"-Wl,--version-script={exports}", "-Wl,--gc-sections", "-Wl,-s", "-Wl,-z,defs", "-xc", stubs, "-xnone",
                        f"@{arguments}", "-l:libz.a", "-l:libzstd.a"], check=True)


if __name__ == "__main__":
    main()
