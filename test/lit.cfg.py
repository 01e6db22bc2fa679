"""The lit suite: IR tests with FileCheck, and the tools' command lines."""

import os
import shutil
import subprocess

import lit.formats

config.name = "tp-mlir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
# Seeds of the fuzzers are no tests.
config.excludes = ["Inputs", "Fuzz", "consumer", "CMakeLists.txt"]
# DEFINE lines may use substitutions themselves.
config.recursiveExpansionLimit = 3
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tp_binary_dir, "test")

path = [os.path.join(config.tp_binary_dir, "bin"), config.llvm_tools_dir]
config.environment["PATH"] = os.pathsep.join(path + [config.environment["PATH"]])
# Compiled artifacts of tp-run's cache belong to this build.
config.environment["TP_TEST_STRIDE"] = lit_config.params.get("stride", "3")  # test/numerics/sampling.py
config.environment["TP_CACHE_DIR"] = os.path.join(config.test_exec_root, "cache")
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TP_KILLS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%python", config.python))
config.substitutions.append(("%examples", os.path.join(config.tp_source_dir, "examples")))
# NVIDIA's libraries without a device.
config.substitutions.append(("%fake_cuda", os.path.join(config.tp_binary_dir, "fake-cuda")))
config.substitutions.append(("%plugin", os.path.join(config.tp_binary_dir, "lib", "TPPlugin.so")))

for tool in ("tp-import", "tp-opt", "tp-compile", "tp-run", "tp-ckpt"):
    if os.path.exists(os.path.join(path[0], tool)):
        config.available_features.add(tool)
# Whether tp-run was built with protobuf, whose compiler reads what tp-run writes.
if os.path.exists(os.path.join(config.tp_binary_dir, "tools/tp-run/tensorboard")):
    config.available_features.add("tensorboard")
    config.substitutions.append(("%protoc", config.protoc))
# Implementations of MPI, whose plug-ins have been built.
for name in ("openmpi", "mpich"):
    plugin = os.path.join(config.tp_binary_dir, "lib", f"libtprt-mpi-{name}.so")
    if os.path.exists(plugin) and shutil.which(f"mpirun.{name}"):
        config.available_features.add(name)
# Hosts that are network namespaces. Only root may make them.
hosts = os.path.join(config.test_source_root, "tools/tp-run/Inputs/hosts.py")
if subprocess.run([config.python, hosts, os.path.join(config.test_exec_root, "hosts")], capture_output=True).returncode == 0:
    config.available_features.add("hosts")
if config.sanitize:
    config.available_features.add("sanitized")
