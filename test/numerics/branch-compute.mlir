// A training step through a branch in bf16, with f32 weights, over two ranks: of the side that isn't taken, nothing changes.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize=train=train.yaml -o ranks.mlir && tp-compile ranks.mlir -o branch.tpx
// RUN: %python -c "import numpy as np; np.save('yes', np.bool_(1)); np.save('no', np.bool_(0)); np.save('x', np.ones((2, 4), 'f4'))"
// RUN: %python -c "import numpy as np; from safetensors.numpy import save_file as s; s({'w': np.arange(4, dtype='f4'), 'v': np.arange(4, 8, dtype='f4') / 3}, 'w.safetensors')"
// RUN: tp-run branch.tpx --weights w.safetensors --input keep=yes.npy --data x=x.npy --steps 1 --output-weights yes.safetensors
// RUN: tp-run branch.tpx --weights w.safetensors --input keep=no.npy --data x=x.npy --steps 1 --output-weights no.safetensors
// RUN: %python -c "from safetensors.numpy import load_file as l; [print(n, l(n + '.safetensors')[p].tolist()) for n in ('yes', 'no') for p in 'wv']" | FileCheck %s

// e, e² and e³ are 2.71875, 7.375 and 20.125 in bf16, and 4/3, 5/3 and 7/3 are 1.3359375, 1.6640625 and 2.328125 there; as weights they
// stay what they are.
// CHECK: yes [-2.0, -4.4375, -12.75, -37.25]
// CHECK-NEXT: yes [1.3333333730697632, 1.6666666269302368, 2.0, 2.3333332538604736]
// CHECK-NEXT: no [-2.671875, -2.328125, -2.0, -1.65625]
// CHECK-NEXT: no [1.3333333730697632, -0.3333333730697632, -2.0, -3.6666667461395264]

//--- model.mlir
tp.mesh @mesh(tp = 2)

func.func @main(%keep: tensor<i1> {tp.name = "keep"}, %x: tensor<2x4xf32> {tp.name = "x"}) -> tensor<f32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}]>} : tensor<4xf32>
  %c = tensor.extract %keep[] : tensor<i1>
  %l = scf.if %c -> tensor<4xf32> {
    %a = nn.exp %w : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    %v = nn.parameter "v" {tp.sharding = #tp.sharding<@mesh, [{tp}]>} : tensor<4xf32>
    %a = nn.mul %w, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  %y = nn.mul %x, %l : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %s = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %s : tensor<f32>
}

//--- train.yaml
loss: output
optimizer: {name: SGD, lr: 1.0}
compute: bf16
