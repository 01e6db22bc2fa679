// RUN: tp-opt %s --tp-print-sharding-rules --verify-diagnostics -o /dev/null

func.func @elementwise(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %z: tensor<8x16xf32>) {
  // expected-remark-re@+1 {{{{^}}([0][1]) -> ([0][1]) {0=8, 1=16}{{$}}}}
  %0 = math.exp %x : tensor<8x16xf32>
  // x · y + z
  // expected-remark@+1 {{([0][1], [0][1], [0][1]) -> ([0][1]) {0=8, 1=16} linear={{0, 2}, {1, 2}}}}
  %1 = math.fma %x, %y, %z : tensor<8x16xf32>
  return
}
