// The assertions of PyTorch's test_math_ops.py about the forward pass.
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --implicit-check-not=tp.all_ --implicit-check-not=tp.reduce_scatter --implicit-check-not=tp.exchange --implicit-check-not=tp.permute
// RUN: tp-opt %s --tp-propagate | FileCheck %s --check-prefix=PLACED

tp.mesh @mesh(tp = 4)

// softmax along the split dimension gathers; along others it keeps the placement.
// CHECK-LABEL: func.func @softmax_split
// CHECK: tp.all_gather
// CHECK: nn.softmax
func.func @softmax_split(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x16xf32> {
  %0 = nn.softmax %x dim 1 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @log_softmax_kept
// PLACED-LABEL: func.func @log_softmax_kept
// PLACED: nn.log_softmax {{.*}}[{tp}, {}]
// CHECK: return
func.func @log_softmax_kept(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %0 = nn.log_softmax %x dim 1 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// Losses: split rows pass, or are Partial; split classes are gathered.
// CHECK-LABEL: func.func @loss_none
// PLACED-LABEL: func.func @loss_none
// PLACED: nn.cross_entropy {{.*}}[{tp}]
// CHECK: return
func.func @loss_none(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                     %t: tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}]>})
    -> (tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  %0 = nn.cross_entropy none %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @loss_sum
// PLACED-LABEL: func.func @loss_sum
// PLACED: nn.cross_entropy {{.*}}partial = {tp: sum}
// CHECK: tp.all_reduce sum %{{.*}} : tensor<f32>
func.func @loss_sum(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                    %t: tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) -> tensor<f32> {
  %0 = nn.cross_entropy sum %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @loss_classes
// CHECK: tp.all_gather
// CHECK: nn.cross_entropy
func.func @loss_classes(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %t: tensor<8xi64>) -> tensor<f32> {
  %0 = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Norms: a dimension that isn't normalized stays split; one that is gets gathered.
// CHECK-LABEL: func.func @norms_kept
// PLACED-LABEL: func.func @norms_kept
// PLACED: nn.layer_norm {{.*}}[{tp}, {}, {}]
// PLACED: nn.rms_norm {{.*}}[{tp}, {}, {}]
// CHECK: return
func.func @norms_kept(%x: tensor<20x5x10xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>}, %w: tensor<10xf32>)
    -> (tensor<20x5x10xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>}) {
  %0 = nn.layer_norm %x weight %w bias %w over 1 eps 1.0e-5 : (tensor<20x5x10xf32>, tensor<10xf32>, tensor<10xf32>) -> tensor<20x5x10xf32>
  %1 = nn.rms_norm %0 weight %w over 1 eps 1.0e-5 : (tensor<20x5x10xf32>, tensor<10xf32>) -> tensor<20x5x10xf32>
  return %1 : tensor<20x5x10xf32>
}

// CHECK-LABEL: func.func @norm_split
// CHECK: tp.all_gather
// CHECK: nn.layer_norm
func.func @norm_split(%x: tensor<20x5x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}, %w: tensor<8xf32>) -> tensor<20x5x8xf32> {
  %0 = nn.layer_norm %x weight %w bias %w over 1 eps 1.0e-5 : (tensor<20x5x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<20x5x8xf32>
  return %0 : tensor<20x5x8xf32>
}

// The maximum of a sum that is Partial needs the sum; that of a maximum that is Partial has 1 collective as well.
// CHECK-LABEL: func.func @max_of_sum
// CHECK: tp.all_reduce sum
// CHECK: nn.reduce max
// CHECK: return
func.func @max_of_sum(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x16xf32> -> tensor<8x16xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x16xf32> -> tensor<8x16xf32>
  %0 = nn.reduce max %a dims [1] : tensor<8x16xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @max_of_max
// CHECK: tp.all_reduce max
// CHECK: return
func.func @max_of_max(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x16xf32> -> tensor<8x16xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: max}> : tensor<8x16xf32> -> tensor<8x16xf32>
  %0 = nn.reduce max %a dims [1] : tensor<8x16xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Reductions over the split dimension are Partial of their kind, over others they keep the split.
// CHECK-LABEL: func.func @sum_over_split
// PLACED-LABEL: func.func @sum_over_split
// PLACED: nn.reduce sum {{.*}}partial = {tp: sum}
// CHECK: tp.all_reduce sum
func.func @sum_over_split(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<16xf32> {
  %0 = nn.reduce sum %x dims [0] : tensor<8x16xf32> -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// CHECK-LABEL: func.func @max_over_split
// PLACED-LABEL: func.func @max_over_split
// PLACED: nn.reduce max {{.*}}partial = {tp: max}
// CHECK: tp.all_reduce max
func.func @max_over_split(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<16xf32> {
  %0 = nn.reduce max %x dims [0] : tensor<8x16xf32> -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// CHECK-LABEL: func.func @mean_over_whole
// PLACED-LABEL: func.func @mean_over_whole
// PLACED: nn.reduce mean {{.*}}[{tp}]
func.func @mean_over_whole(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  %0 = nn.reduce mean %x dims [1] : tensor<8x16xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
