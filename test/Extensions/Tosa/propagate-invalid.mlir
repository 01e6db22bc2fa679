// RUN: tp-opt %s --tp-propagate --split-input-file --verify-diagnostics

tp.mesh @mesh(tp = 2)
func.func @unknown(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'tosa.custom' has no sharding rule; it needs ShardingRuleOpInterface to be parallelized}}
  %0 = tosa.custom %x {operator_name = "f", domain_name = "d", implementation_attrs = ""} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
