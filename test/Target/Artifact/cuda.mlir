// An MLP for CUDA devices: its host code calls the runtime, its kernels are PTX, and cubins where there is ptxas.

// REQUIRES: tp-compile
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-compile %s --target=cuda:sm_90 --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: tp-compile %s --target=cuda:sm_80 --emit=llvm -o - | FileCheck %s --check-prefix=HOST
// RUN: tp-compile %s --target=cuda:sm_90,sm_80 --emit=manifest -o - | FileCheck %s --check-prefix=MANIFEST
// RUN: tp-compile %s --emit=manifest -o - | FileCheck %s --check-prefix=CPU
// RUN: tp-compile %s --target=cuda:sm_80,sm_90,sm_100 -o mlp.tpx
// RUN: grep -a "^[.]target" mlp.tpx | FileCheck %s --check-prefix=TARGETS
// RUN: env CUDA_HOME=%t/none tp-compile %s --target=cuda:emulated -o emulated.tpx 2>&1 | count 0

// Without a toolkit: PTX, unless its library is needed. And one that fails.
// RUN: env CUDA_HOME=%t/none tp-compile %s --target=cuda:sm_80,sm_90 -o ptx.tpx 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: sed s/nn.neg/nn.erf/ %s > erf.mlir
// RUN: not env CUDA_HOME=%t/none tp-compile erf.mlir --target=cuda:sm_80 -o no.tpx 2>&1 | FileCheck %s --check-prefix=LIBRARY
// RUN: mkdir bin
// RUN: printf '#!/bin/sh\necho "ptxas fatal: no such thing"; exit 1\n' > bin/ptxas
// RUN: chmod +x bin/ptxas
// RUN: not env CUDA_HOME=%t tp-compile %s --target=cuda:sm_80,sm_90 -o no.tpx 2>&1 | FileCheck %s --check-prefix=PTXAS

// Targets that can't be compiled for.
// RUN: not tp-compile %s --target=rocm:gfx90a -o no.tpx 2>&1 | FileCheck %s --check-prefix=ROCM
// RUN: not tp-compile %s --target=cuda:sm_70 -o no.tpx 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not tp-compile %s --target=cuda -o no.tpx 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tp-compile %s --target=cuda:sm_9000 -o no.tpx 2>&1 | FileCheck %s --check-prefix=FUTURE
// RUN: not tp-compile %s --target=cuda:sm_80,sm_90 --emit=ptx -o no.ptx 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not tp-compile %s --target=cuda:sm_90 --target-cpu=x86-64-v3,x86-64-v4 -o no.tpx 2>&1 | FileCheck %s --check-prefix=CPUS
// RUN: not ls no.tpx no.ptx

// PTX: .target sm_90
// PTX: .visible .entry kernel_0(
// PTX: ld.global.nc.v4.b32
// PTX: neg.f32
// PTX: st.global.v4.b32

// The lowest architecture's for drivers that refuse the cubins, the highest one's for newer devices.
// TARGETS: .target sm_80
// TARGETS: .target sm_100

// HOST: @tprt_device_code = {{.*}}constant { i32, ptr, i32, ptr, i32, ptr }
// HOST: define internal {{.*}}i32 @main(
// HOST: call i32 @tprt_gemm
// HOST: call i32 @tprt_launch(ptr {{.*}}, i32 0, ptr {{.*}}@launch_args_
// HOST: call i32 @tprt_collective
// HOST: call i32 @tprt_launch(ptr {{.*}}, i32 1, ptr {{.*}}@launch_args_
// HOST: define i32 @tpx_main(

// MANIFEST: "target":{"architectures":[80,90],"cpu":"{{x86-64|generic}}","device":"cuda"
// CPU-NOT: "device"
// CPU: "target":{"cpu":
// CPU-NOT: "device"
// ALONE: warning: no 'bin/ptxas' in the CUDA toolkit, or no toolkit (CUDA_HOME): the artifact has PTX, which the driver compiles when it is loaded
// LIBRARY: error: sm_80: '__nv_erff' is in 'nvvm/libdevice/libdevice.10.bc' of the CUDA toolkit, which isn't found; CUDA_HOME says where it is
// PTXAS: error: sm_80: '{{.*}}/bin/ptxas' failed in '{{.*}}': ptxas fatal: no such thing
// PTXAS-NEXT: sm_90: '{{.*}}/bin/ptxas' failed in '{{.*}}': ptxas fatal: no such thing
// ROCM: error: unknown target 'rocm:gfx90a'; expected 'cuda:' and architectures, as 'cuda:sm_80,sm_90'
// OLD: error: unknown architecture in 'cuda:sm_70'; expected 'sm_80' or newer
// NONE: error: unknown architecture in 'cuda'; expected 'sm_80' or newer
// FUTURE: error: no code for CUDA: unknown CPU 'sm_9000' for nvptx64-nvidia-cuda
// TWO: error: PTX is for one CUDA architecture, not 'cuda:sm_80,sm_90'
// CPUS: error: a program for CUDA has code for one CPU, not 2
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x4xf32> {tp.name = "x"}) -> (tensor<8x3xf32> {tp.name = "y"}) {
  %w1 = nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<16x4xf32>} : tensor<8x4xf32>
  %b1 = nn.parameter "net1.bias" {tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<16xf32>} : tensor<8xf32>
  %0 = nn.linear %x, %w1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %1 = nn.add %0, %b1 : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %2 = nn.neg %1 : tensor<8x8xf32>
  %w2 = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<3x16xf32>} : tensor<3x8xf32>
  %b2 = nn.parameter "net2.bias" : tensor<3xf32>
  %3 = nn.linear %2, %w2 : (tensor<8x8xf32>, tensor<3x8xf32>) -> tensor<8x3xf32>
  %4 = tp.all_reduce sum %3 over @mesh {tp} {fqn = "net2", reason = "plan.yaml:3:9: RowwiseParallel"} : tensor<8x3xf32>
  %5 = nn.add %4, %b2 : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8x3xf32>
  return %5 : tensor<8x3xf32>
}
