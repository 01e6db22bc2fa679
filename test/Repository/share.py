#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests share/: that shells complete options, values and files, and that man pages are well-formed and name every option.

Bash is needed. Zsh, fish, groff and mandoc are used where they are installed.

usage: share.py SHARE BIN
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SHARE = BIN = pathlib.Path()

# Words of a command line, the last of which is completed, and what must and mustn't be proposed.
CASES = [
    ("tp-run --we", ["--weights"], ["--warmup"]),
    ("tp-run --gemm ", ["measure", "tiles", "openblas", "onednn"], ["--weights", "model.tpx"]),
    ("tp-run --gemm=o", ["openblas", "onednn"], ["tiles"]),
    ("tp-run mo", ["model.tpx", "my model.tpx"][:1], ["plan.yaml"]),
    ("tp-run model.tpx --weights ", ["model.tpx", "folder"], ["--weights"]),
    ("tp-run model.tpx --input ids=pl", ["plan.yaml"], ["model.tpx"]),
    ("tp-run model.tpx --input=ids=pl", ["plan.yaml"], ["model.tpx"]),
    ("tp-run model.tpx --blocks ", ["folder"], ["model.tpx"]),
    ("tp-run model.tpx --repeat ", [], ["model.tpx", "--repeat"]),
    ("tp-compile --emit=", ["tpx", "manifest", "ptx"], ["--machine"]),
    ("tp-compile --em", ["--emit="], ["-o"]),
    ("tp-compile ranks.mlir -o mo", ["model.tpx"], ["plan.yaml"]),
    ("tp-opt --print-schema=", ["plan", "training", "machine"], []),
    ("tp-opt --tp-par", ["--tp-parallelize=", "--tp-partition="], ["--tp-explain="]),
    ("tp-opt --tp-parallelize=", ["plan=", "report=", "machine="], ["plan.yaml"]),
    ("tp-opt --tp-parallelize=plan=pl", ["plan.yaml"], ["plan="]),
    ("tp-import --inp", ["--input="], []),
    ("tp-ckpt ", ["list", "verify", "merge", "split"], ["model.tpx"]),
    ("tp-ckpt merge folder -o mo", ["model.tpx"], ["plan.yaml"]),
    ("tp-ckpt split --max", ["--max-bytes"], ["--with-optimizer"]),
    ("tp-mlir ", ["run", "train", "explain", "tp-opt"], []),
    ("tp-mlir run --pl", ["--plan"], []),
    ("tp-mlir run model.pt2 --plan pl", ["plan.yaml"], ["model.tpx"]),
    ("tp-mlir run model.pt2 --gemm ", ["tiles"], ["model.tpx"]),
    ("tp-mlir explain --", ["--value", "--json"], ["--target-cpu"]),
    ("tp-mlir tp-run --gemm ", ["tiles"], ["model.tpx"]),
    ("tp-mlir tp-run --gemm=o", ["openblas", "onednn"], ["tiles"]),
    ("tp-mlir tp-ckpt ", ["list", "merge"], ["model.tpx"]),
    ("tp-mlir tp-ckpt split --max", ["--max-bytes"], ["--with-optimizer"]),
    ("tp-mlir tp-opt --tp-par", ["--tp-parallelize=", "--tp-partition="], ["--tp-explain="]),
]


def list_tools():
    return sorted(path.name for path in (SHARE / "bash-completion/completions").iterdir())


def list_help_options(*command):
    """The options in `--help`, however it's written."""
    text = subprocess.run([str(BIN / command[0]), *command[1:], "--help"], capture_output=True, text=True, check=True, env={"COLUMNS": "1000", "PATH": "/usr/bin:/bin"}).stdout
    text = re.split(r"^(?:EXAMPLES|Examples|EXIT CODES):", text, flags=re.M)[0]
    found = re.findall(r"^ +(-[^\s=,]*)(?:[ ,]*(--[\w-]+))?", text, flags=re.M)
    return sorted({name for names in found for name in names if re.fullmatch(r"--?\w[\w-]*", name)})


class Completion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("model.tpx", "my model.tpx", "plan.yaml"):
            (self.folder / name).touch()
        (self.folder / "folder").mkdir()

    def run_shell(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def complete_bash(self, line):
        # As readline splits words, at '=' too.
        words = [word for word in re.split(r" +|(=)", line) if word]
        if line[-1] in " ":
            words.append("")
        tool = words[0]
        quoted = " ".join(f"'{word}'" for word in words)
        script = (f"source '{SHARE}/bash-completion/completions/{tool}'; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
                  f"_{tool.replace('-', '_')}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = self.run_shell("bash", "-c", script)
        self.assertEqual(done.stderr, "")
        return [word for word in done.stdout.splitlines() if word]

    def check_cases(self, complete):
        for line, wanted, unwanted in CASES:
            if (SHARE / "bash-completion/completions" / line.split()[0]).exists():
                with self.subTest(line):
                    found = complete(line)
                    self.assertEqual([word for word in wanted if word not in found], [], found)
                    self.assertEqual([word for word in unwanted if word in found], [], found)

    def test_bash(self):
        self.check_cases(self.complete_bash)
        # A file's name may have a space.
        self.assertIn("my model.tpx", self.complete_bash("tp-run my"))

    def test_bash_is_complete(self):
        """Every option of --help is proposed, and nothing else."""
        for tool in list_tools():
            if not (BIN / tool).exists():
                continue
            with self.subTest(tool):
                text = (SHARE / "bash-completion/completions" / tool).read_text()
                if " command= " not in text:
                    found = {word.rstrip("=") for word in self.complete_bash(f"{tool} -")}
                    self.assertEqual(sorted(found), list_help_options(tool))

    def test_bash_syntax(self):
        for tool in list_tools():
            self.run_shell("bash", "-n", str(SHARE / "bash-completion/completions" / tool))

    @unittest.skipUnless(shutil.which("fish"), "fish isn't installed")
    def test_fish(self):
        def complete(line):
            tool = line.split()[0]
            script = f"source '{SHARE}/fish/vendor_completions.d/{tool}.fish'; complete -C '{line}'"
            words = [found.split("\t")[0] for found in self.run_shell("fish", "--no-config", "-c", script).stdout.splitlines()]
            option = re.search(r"(--[\w-]+=(?:\w+=)?)\S*$", line)
            return [word.removeprefix(option[1]).rstrip("/") if option else word.rstrip("/") for word in words]
        for line, wanted, _ in CASES:
            # Fish adds '=' itself, and completes files after 'name=' on its own.
            if "ids=" in line or "=plan=" in line or not (BIN / line.split()[0]).exists():
                continue
            with self.subTest(line):
                found = [word.rstrip("=") for word in complete(line)]
                self.assertEqual([word for word in wanted if word.rstrip("=") not in found], [], found)

    @unittest.skipUnless(shutil.which("zsh"), "zsh isn't installed")
    def test_zsh_syntax(self):
        for tool in list_tools():
            self.run_shell("zsh", "-f", "-n", str(SHARE / "zsh/site-functions" / f"_{tool}"))


class ManPages(unittest.TestCase):
    def test_every_option_is_there(self):
        for tool in list_tools():
            if not (BIN / tool).exists():
                continue
            page = (SHARE / "man/man1" / f"{tool}.1").read_text()
            text = page.replace("\\-", "-").replace("\\fR", " ").replace("\\fB", " ")
            words = set(re.findall(r"(?<!\S)--?\w[\w-]*", text))
            commands = re.findall(r"^(?:    )(\w+)\)$", (SHARE / "bash-completion/completions" / tool).read_text(), flags=re.M)
            for command in ([tool], *([tool, name] for name in commands)):
                with self.subTest(" ".join(command)):
                    self.assertEqual([name for name in list_help_options(*command) if name not in words], [])

    def test_groff(self):
        self.check("groff", "-man", "-ww", "-z")

    def test_mandoc(self):
        self.check("mandoc", "-T", "lint", "-W", "error,stop")

    def check(self, program, *options):
        if not shutil.which(program):
            self.skipTest(f"{program} isn't installed")
        for page in sorted((SHARE / "man/man1").iterdir()):
            done = subprocess.run([program, *options, str(page)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("share", type=pathlib.Path)
    parser.add_argument("bin", type=pathlib.Path)
    options, rest = parser.parse_known_args()
    SHARE, BIN = options.share.resolve(), options.bin.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
