// Places that are computed from inputs are inside of what they are places in, whatever inputs that takes.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=warning
// CHECK: remark: 'main' is executed for 2 ranks on {{[0-9]+}} inputs

// A slice that begins elsewhere is a fault.
// RUN: sed -e 's/tensor.extract_slice %\([^ []*\)\[%[^,]*, 0\]/tensor.extract_slice %\1[1, 0]/' %t.mlir > %t.bad.mlir
// RUN: not tp-opt %t.bad.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven
// WRONG: note: refuted by execution: on rank {{.*}} of result 0 isn't element

tp.mesh @mesh(tp = 2)

func.func @main(%x: tensor<10x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %y: tensor<3x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %p: tensor<2xi64>, %at: index)
    -> (tensor<2x6xf32>, tensor<3x6xf32>) {
  %zero = arith.constant 0 : index
  %first = tensor.extract %p[%zero] : tensor<2xi64>
  %offset = arith.index_cast %first : i64 to index
  %0 = tensor.insert_slice %y into %x[%offset, 0] [3, 6] [1, 1] : tensor<3x6xf32> into tensor<10x6xf32>
  %1 = tensor.extract_slice %0[%offset, 0] [2, 6] [2, 1] : tensor<10x6xf32> to tensor<2x6xf32>
  %2 = tensor.extract %x[%at, %at] : tensor<10x6xf32>
  %3 = tensor.insert %2 into %y[%zero, %at] : tensor<3x6xf32>
  return %1, %3 : tensor<2x6xf32>, tensor<3x6xf32>
}
