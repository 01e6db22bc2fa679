// The gradient of a branch, over two ranks: that of the side that was taken.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-opt %s --tp-grad --tp-parallelize -o ranks.mlir && tp-compile ranks.mlir -o branch.tpx
// RUN: %python -c "import numpy as np; np.save('yes', np.bool_(1)); np.save('no', np.bool_(0))"
// RUN: %python -c "import numpy as np; from safetensors.numpy import save_file as s; s({'w': np.arange(4, dtype='f4'), 'v': np.arange(4, 8, dtype='f4')}, 'w.safetensors')"
// RUN: tp-run branch.tpx --weights w.safetensors --input keep=yes.npy | FileCheck %s --check-prefix=YES
// RUN: tp-run branch.tpx --weights w.safetensors --input keep=no.npy | FileCheck %s --check-prefix=NO

// YES: grad.v: 4xf32 = [0, 0, 0, 0]
// YES: grad.w: 4xf32 = [1, 2.7182{{.*}}, 7.3890{{.*}}, 20.085{{.*}}]
// YES: loss: f32 = [31.19
// NO: grad.v: 4xf32 = [0, 1, 2, 3]
// NO: grad.w: 4xf32 = [4, 5, 6, 7]
// NO: loss: f32 = [38]

tp.mesh @mesh(tp = 2)

func.func @main(%keep: tensor<i1> {tp.name = "keep"}) -> (tensor<f32> {tp.name = "loss"}) {
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
  %s = nn.reduce sum %l dims [0] : tensor<4xf32> -> tensor<f32>
  return %s : tensor<f32>
}
