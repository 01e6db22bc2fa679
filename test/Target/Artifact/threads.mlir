// One rank on one core and on all that there are: the same bits. Its kernels are
// rows of a nest, elements, columns of a sum, and an odd number of elements.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %python %S/Inputs/threads.py
// RUN: tp-compile %s -o model.tpx
// RUN: tp-compile %s --emit=llvm -o - | FileCheck %s
// RUN: %python %S/Inputs/on_one_core.py tp-run model.tpx --input x=x.npy --input v=v.npy --blocks one
// RUN: tp-run model.tpx --input x=x.npy --input v=v.npy --blocks all --warmup 5 --repeat 20
// RUN: diff -r one all
// RUN: %python %S/Inputs/threads.py check

// CHECK-DAG: declare i32 @tprt_parallel(ptr, ptr, ptr, i64, i64)
// CHECK-DAG: call i32 @tprt_parallel(ptr %{{.+}}, ptr @kernel_0_range
func.func @main(%x: tensor<1021x515xf32> {tp.name = "x"}, %v: tensor<300007xf32> {tp.name = "v"})
    -> (tensor<1021x515xf32> {tp.name = "rows"}, tensor<515xf32> {tp.name = "sums"}, tensor<300007xf32> {tp.name = "elements"}) {
  %rows = nn.softmax %x dim 1 : tensor<1021x515xf32>
  %sums = nn.reduce sum %x dims [0] : tensor<1021x515xf32> -> tensor<515xf32>
  %elements = nn.gelu %v : tensor<300007xf32>
  return %rows, %sums, %elements : tensor<1021x515xf32>, tensor<515xf32>, tensor<300007xf32>
}
