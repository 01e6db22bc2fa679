//===- MachinePresets.cpp - Machines that are known by name ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sources:
// [H100] NVIDIA H100 Tensor Core GPU data sheet: dense figures, half of the
//        sparse ones that it prints; NVLink 900 GB/s and PCIe Gen5 128 GB/s
//        count both directions.
// [H200] NVIDIA H200 Tensor Core GPU data sheet.
// [DGX]  NVIDIA DGX H100/H200 data sheet: eight GPUs, one 400 Gb/s port each.
// [NCCL] src/graph/tuning.cc, hwLat of ring/Simple: the latencies that NCCL's
//        own model uses, NVLink 3.4 us, PCI 5.7 us, network 14 us.
// [CUDA] "Getting Started with CUDA Graphs", NVIDIA Technical Blog: 3.4 us per
//        short kernel of a graph, of which the kernel runs 2.9 us, and 9.6 us
//        with a launch and a wait for each kernel; 1 us lies between the two.
// [A100] NVIDIA A100 Tensor Core GPU data sheet, SXM, 80 GB; NVLink 600 GB/s
//        counts both directions.
// [TT]   torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: H100 of 96 GB
//        HBM2e, 2.4 TB/s, 500 W; hosts of eight; 400 Gb/s per GPU between them.
// [FA2]  Dao, "FlashAttention-2", 2023, figures 4 and 7: forward and backward
//        pass with a causal mask, heads of 128, 8k to 16k tokens.
// [BUS]  bus bandwidth of all_gather and reduce_scatter in nccl-tests, large
//        messages, eight GPUs: about 4/5 of NVLink's peak.
// [FIT]  benchmarks/published.py: `contraction` is calibrated by one published
//        row of each device. `halfExtent` is a tile of GEMM kernels. `memory`
//        and `overlap` are assumptions, the same for both devices.
// [CPU]  tp-run --calibrate on two cores of an AMD EPYC server, two ranks. A
//        file calibrated on the user's own machine is better.
//
//===----------------------------------------------------------------------===//

#include "tp/Sharding/Cost/MachineModel.h"

using namespace mlir;
using namespace mlir::tp;

static const Link nvlink{"nvlink", 8, 3.4e-6, 450e9, LinkAlgorithm::Ring,
                         {}}; // [DGX] [NCCL] [H100]
static const Link pcie{"pcie", 8, 5.7e-6, 64e9, LinkAlgorithm::Ring,
                       {}}; // [NCCL] [H100]
static const Link infiniband{"infiniband",        0, 14e-6, 50e9,
                             LinkAlgorithm::Ring, {}}; // [NCCL] [DGX]

static Machine makeH100SXM() { // [H100] [CUDA]
  Machine machine;
  machine.name = "h100-nvlink";
  machine.flopsF64 = 66.9e12; // tensor cores
  machine.flopsF32 = 66.9e12; // no TF32: it isn't f32
  machine.flopsF16 = machine.flopsBF16 = 989.4e12;
  machine.elementwise = 33.5e12; // an FMA counts twice in the 66.9
  machine.memoryBandwidth = 3.35e12;
  machine.memoryCapacity = 80'000'000'000;
  machine.launch = 1e-6;
  machine.links = {nvlink, infiniband};
  return machine;
}

static Machine makeH200SXM() { // [H200]: H100's compute, more and faster memory
  Machine machine = makeH100SXM();
  machine.name = "h200-nvlink";
  machine.memoryBandwidth = 4.8e12;
  machine.memoryCapacity = 141'000'000'000;
  return machine;
}

static Machine makeH100PCIe() { // [H100], PCIe column
  Machine machine = makeH100SXM();
  machine.name = "h100-pcie";
  machine.flopsF64 = 51.2e12;
  machine.flopsF32 = 51.2e12;
  machine.flopsF16 = machine.flopsBF16 = 756e12;
  machine.elementwise = 25.6e12;
  machine.memoryBandwidth = 2e12;
  machine.links = {pcie, infiniband};
  return machine;
}

/// torchtitan's H100. The clock that 500 W allow isn't published; what it means
/// for contractions is [FIT].
static Machine makeH100HBM2e() { // [H100] [TT]
  Machine machine = makeH100SXM();
  machine.name = "h100-96gb-hbm2e";
  machine.memoryBandwidth = 2.4e12;
  machine.memoryCapacity = 96'000'000'000;
  machine.efficiency = {/*contraction=*/0.57, /*halfExtent=*/128,
                        /*attention=*/0.33, /*memory=*/0.85}; // [FIT] [FA2]
  machine.overlap = 0.85;
  machine.links = {
      {"nvlink", 8, 3.4e-6, 360e9, LinkAlgorithm::Ring, {}}, // [NCCL] [BUS]
      infiniband};
  return machine;
}

static Machine makeA100SXM() { // [A100]
  Machine machine;
  machine.name = "a100-nvlink";
  machine.flopsF64 = 19.5e12; // tensor cores
  machine.flopsF32 = 19.5e12;
  machine.flopsF16 = machine.flopsBF16 = 312e12;
  machine.elementwise = 9.75e12;
  machine.memoryBandwidth = 2.039e12;
  machine.memoryCapacity = 80'000'000'000;
  machine.launch = 1e-6; // [CUDA]
  machine.efficiency = {/*contraction=*/0.85, /*halfExtent=*/128,
                        /*attention=*/0.6, /*memory=*/0.85}; // [FIT] [FA2]
  machine.overlap = 0.85;
  machine.links = {
      {"nvlink", 8, 3.4e-6, 240e9, LinkAlgorithm::Ring, {}}, // [NCCL] [BUS]
      {"infiniband", 0, 14e-6, 25e9, LinkAlgorithm::Ring, {}}};
  return machine;
}

/// Nodes of eight H100 PCIe that share one port of `gigabits` per second. The
/// latency is that of a network in [NCCL], as for InfiniBand.
static Machine makeEthernet(StringRef name, double gigabits) {
  Machine machine = makeH100PCIe();
  machine.name = name.str();
  machine.links = {
      pcie,
      {"ethernet", 0, 14e-6, gigabits * 1e9 / 8 / 8, LinkAlgorithm::Ring, {}}};
  return machine;
}

static Machine makeCPU() { // [CPU]
  Machine machine;
  machine.name = "cpu";
  machine.flopsF64 = 39e9;
  machine.flopsF32 = 80e9;
  machine.flopsF16 = machine.flopsBF16 = 65e9; // converted to f32
  machine.elementwise = 3.8e9;
  machine.memoryBandwidth = 18e9;
  machine.memoryCapacity = 12'600'000'000;
  machine.launch = 0.24e-6;
  machine.nodeDevices = 2;
  machine.nodeMemoryBandwidth = 21e9;
  machine.links = {{"memory", 0, 1e-6, 14e9, LinkAlgorithm::Direct, {}}};
  return machine;
}

static const std::vector<Machine> &getPresets() {
  static const std::vector<Machine> presets = {
      makeH100SXM(),
      makeH200SXM(),
      makeH100PCIe(),
      makeH100HBM2e(),
      makeA100SXM(),
      makeEthernet("ethernet-100g", 100),
      makeEthernet("ethernet-400g", 400),
      makeCPU()};
  return presets;
}

std::vector<StringRef> tp::getMachineNames() {
  std::vector<StringRef> names;
  for (const Machine &machine : getPresets())
    names.push_back(machine.name);
  return names;
}

const Machine *tp::findMachine(StringRef name) {
  for (const Machine &machine : getPresets())
    if (machine.name == name)
      return &machine;
  return nullptr;
}
