// Calls, loops and branches, with collectives in all of them. Rank r holds the row r of [[0, 1], [2, 3]]: the mean of the rows is
// [1, 2], and stays so, or changes its sign three times.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-compile %s -o flat.tpx
// RUN: %python -c "import numpy as np; np.save('x', np.arange(4, dtype='f4').reshape(2, 2)); np.save('yes', np.bool_(1)); np.save('no', np.bool_(0))"
// RUN: tp-run flat.tpx --input x=x.npy --input keep=yes.npy | FileCheck %s --check-prefix=YES
// RUN: tp-run flat.tpx --input x=x.npy --input keep=no.npy | FileCheck %s --check-prefix=NO
// RUN: tp-run flat.tpx --describe | FileCheck %s --check-prefix=DESCRIBE

// YES: y: 1x2xf32 = [1, 2]
// NO: y: 1x2xf32 = [-1, -2]
// DESCRIBE: collectives (6):
tp.mesh @mesh(tp = 2)

func.func private @mean(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %half = arith.constant dense<0.5> : tensor<1x2xf32>
  %s = tp.all_reduce sum %x over @mesh {tp} : tensor<1x2xf32>
  %m = arith.mulf %s, %half : tensor<1x2xf32>
  return %m : tensor<1x2xf32>
}

func.func @main(%x: tensor<1x2xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<2x2xf32>},
                %keep: tensor<i1> {tp.name = "keep"}) -> (tensor<1x2xf32> {tp.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c = tensor.extract %keep[] : tensor<i1>
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<1x2xf32> {
    %m = func.call @mean(%a) : (tensor<1x2xf32>) -> tensor<1x2xf32>
    %b = scf.if %c -> tensor<1x2xf32> {
      %t = tp.all_reduce max %m over @mesh {tp} : tensor<1x2xf32>
      scf.yield %t : tensor<1x2xf32>
    } else {
      %n = arith.negf %m : tensor<1x2xf32>
      scf.yield %n : tensor<1x2xf32>
    }
    scf.yield %b : tensor<1x2xf32>
  }
  return %y : tensor<1x2xf32>
}
