// RUN: tp-opt %s --tp-print-sharding-rules --verify-diagnostics -o /dev/null

// Dimensions that can't be computed in parts stay whole.

func.func @integer_mean(%x: tensor<8x12xi64>) -> tensor<8xi64> {
  // The quotient of the whole sum is not the sum of the quotients.
  // expected-remark@+1 {{([0][1]) -> ([0]) {0=8, 1=12} whole={1}}}
  %0 = nn.reduce mean %x dims [1] : tensor<8x12xi64> -> tensor<8xi64>
  // expected-remark@+1 {{([0][1]) -> ([0]) {0=8, 1=12} reduction={1} linear={{0}}}}
  %1 = nn.reduce sum %x dims [1] : tensor<8x12xi64> -> tensor<8xi64>
  return %0 : tensor<8xi64>
}

func.func @boolean_table(%ids: tensor<8xi64>, %table: tensor<12x4xi1>) -> tensor<8x4xi1> {
  // Booleans have no sum.
  // expected-remark@+1 {{([0], [2][1]) -> ([0][1]) {0=8, 1=4, 2=12} whole={2}}}
  %0 = nn.embedding %ids, %table : (tensor<8xi64>, tensor<12x4xi1>) -> tensor<8x4xi1>
  return %0 : tensor<8x4xi1>
}
