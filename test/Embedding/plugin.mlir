// The project in the stock mlir-opt.
// An instrumented plugin needs an instrumented mlir-opt.
// UNSUPPORTED: sanitized
// DEFINE: %{parallelize} = mlir-opt %S/../Plan/Inputs/mlp.mlir --load-dialect-plugin=%plugin --load-pass-plugin=%plugin
// RUN: echo '{mesh: {tp: 2}, plan: {net1: ColwiseParallel, net2: RowwiseParallel}}' > %t.yaml
// RUN: %{parallelize} --pass-pipeline='builtin.module(tp-parallelize{plan=%t.yaml})' | FileCheck %s
// CHECK: func.func @main
// CHECK: nn.relu {{.*}} : tensor<8x8xf32>
// CHECK: tp.all_reduce sum {{.*}} over @mesh {tp}

// RUN: echo '{mesh: {tp: 2}, plan: {net3: ColwiseParallel}}' > %t.bad.yaml
// RUN: not %{parallelize} --pass-pipeline='builtin.module(tp-parallelize{plan=%t.bad.yaml})' 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: plugin.mlir.tmp.bad.yaml:1:24: error: {{.*}}'net3'
