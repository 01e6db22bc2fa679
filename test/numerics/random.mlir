// Philox-4x32-10 as by its authors' test vectors (Random123, kat_vectors): counter 0 and key 0 give 6627e8d5 first, all
// ones 408f276d. A number is the 24 leading bits.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-compile %s -o program.tpx
// RUN: %python -c "import numpy as np; np.save('zero', np.int64(0)); np.save('ones', np.int64(-1)); np.save('index', np.array([0, -1])); np.save('y', np.array([0x6627e8, 0x408f27], 'f4') * np.float32(2**-24))"
// RUN: tp-run program.tpx --input zero=zero.npy --input ones=ones.npy --input index=index.npy --expect y=y.npy --rtol 0 --atol 0
func.func @main(%zero: tensor<i64> {tp.name = "zero"}, %ones: tensor<i64> {tp.name = "ones"}, %index: tensor<2xi64> {tp.name = "index"})
    -> (tensor<2xf32> {tp.name = "y"}) {
  %0 = nn.random_uniform %zero, %index stream %zero seed 0 : (tensor<i64>, tensor<2xi64>, tensor<i64>) -> tensor<2xf32>
  %stream = nn.constant dense<4294967295> : tensor<i64>
  %1 = nn.random_uniform %ones, %index stream %stream seed 4294967295 : (tensor<i64>, tensor<2xi64>, tensor<i64>) -> tensor<2xf32>
  %2 = nn.slice %0 dim 0 start 0 step 1 : tensor<2xf32> -> tensor<1xf32>
  %3 = nn.slice %1 dim 0 start 1 step 1 : tensor<2xf32> -> tensor<1xf32>
  %4 = nn.concat %2, %3 dim 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
  return %4 : tensor<2xf32>
}
