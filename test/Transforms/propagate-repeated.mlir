// RUN: tp-opt %s --tp-propagate --split-input-file | FileCheck %s

// Layers that repeat are solved once, and each has its placements and redistributions.

tp.mesh @mesh(tp = 2)

// CHECK-LABEL: @layers
// CHECK: nn.parameter "l0.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l1.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l2.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l3.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l4.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l5.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l6.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l7.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l8.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK: nn.parameter "l9.in"
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
// CHECK: nn.linear {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// CHECK: nn.layer_norm {{.*}} {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
// CHECK-NOT: tp.redistribute
// CHECK: return
func.func @layers(%x0: tensor<8x16xf32>, %g: tensor<16xf32>) -> tensor<8x16xf32> {
  %a0 = nn.parameter "l0.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b0 = nn.parameter "l0.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h0 = nn.linear %x0, %a0 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y0 = nn.linear %h0, %b0 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x1 = nn.layer_norm %y0 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a1 = nn.parameter "l1.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b1 = nn.parameter "l1.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h1 = nn.linear %x1, %a1 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y1 = nn.linear %h1, %b1 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x2 = nn.layer_norm %y1 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a2 = nn.parameter "l2.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b2 = nn.parameter "l2.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h2 = nn.linear %x2, %a2 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y2 = nn.linear %h2, %b2 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x3 = nn.layer_norm %y2 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a3 = nn.parameter "l3.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b3 = nn.parameter "l3.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h3 = nn.linear %x3, %a3 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y3 = nn.linear %h3, %b3 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x4 = nn.layer_norm %y3 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a4 = nn.parameter "l4.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b4 = nn.parameter "l4.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h4 = nn.linear %x4, %a4 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y4 = nn.linear %h4, %b4 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x5 = nn.layer_norm %y4 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a5 = nn.parameter "l5.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b5 = nn.parameter "l5.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h5 = nn.linear %x5, %a5 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y5 = nn.linear %h5, %b5 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x6 = nn.layer_norm %y5 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a6 = nn.parameter "l6.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b6 = nn.parameter "l6.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h6 = nn.linear %x6, %a6 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y6 = nn.linear %h6, %b6 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x7 = nn.layer_norm %y6 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a7 = nn.parameter "l7.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b7 = nn.parameter "l7.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h7 = nn.linear %x7, %a7 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y7 = nn.linear %h7, %b7 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x8 = nn.layer_norm %y7 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a8 = nn.parameter "l8.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b8 = nn.parameter "l8.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h8 = nn.linear %x8, %a8 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y8 = nn.linear %h8, %b8 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x9 = nn.layer_norm %y8 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a9 = nn.parameter "l9.in" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x16xf32>
  %b9 = nn.parameter "l9.out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %h9 = nn.linear %x9, %a9 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y9 = nn.linear %h9, %b9 : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %x10 = nn.layer_norm %y9 weight %g bias %g over 1 eps 1.0e-5 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return %x10 : tensor<8x16xf32>
}

// -----

// Local values are not the graph's: what repeats on them stays as it is.

tp.mesh @mesh(tp = 2)

// CHECK-LABEL: @local
// CHECK-COUNT-36: nn.relu
// CHECK: tp.from_local
func.func @local(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %x0 = tp.to_local %a as <@mesh, [{tp}, {}]> : tensor<8x16xf32> -> tensor<4x16xf32>
  %x1 = nn.relu %x0 : tensor<4x16xf32>
  %x2 = nn.relu %x1 : tensor<4x16xf32>
  %x3 = nn.relu %x2 : tensor<4x16xf32>
  %x4 = nn.relu %x3 : tensor<4x16xf32>
  %x5 = nn.relu %x4 : tensor<4x16xf32>
  %x6 = nn.relu %x5 : tensor<4x16xf32>
  %x7 = nn.relu %x6 : tensor<4x16xf32>
  %x8 = nn.relu %x7 : tensor<4x16xf32>
  %x9 = nn.relu %x8 : tensor<4x16xf32>
  %x10 = nn.relu %x9 : tensor<4x16xf32>
  %x11 = nn.relu %x10 : tensor<4x16xf32>
  %x12 = nn.relu %x11 : tensor<4x16xf32>
  %x13 = nn.relu %x12 : tensor<4x16xf32>
  %x14 = nn.relu %x13 : tensor<4x16xf32>
  %x15 = nn.relu %x14 : tensor<4x16xf32>
  %x16 = nn.relu %x15 : tensor<4x16xf32>
  %x17 = nn.relu %x16 : tensor<4x16xf32>
  %x18 = nn.relu %x17 : tensor<4x16xf32>
  %x19 = nn.relu %x18 : tensor<4x16xf32>
  %x20 = nn.relu %x19 : tensor<4x16xf32>
  %x21 = nn.relu %x20 : tensor<4x16xf32>
  %x22 = nn.relu %x21 : tensor<4x16xf32>
  %x23 = nn.relu %x22 : tensor<4x16xf32>
  %x24 = nn.relu %x23 : tensor<4x16xf32>
  %x25 = nn.relu %x24 : tensor<4x16xf32>
  %x26 = nn.relu %x25 : tensor<4x16xf32>
  %x27 = nn.relu %x26 : tensor<4x16xf32>
  %x28 = nn.relu %x27 : tensor<4x16xf32>
  %x29 = nn.relu %x28 : tensor<4x16xf32>
  %x30 = nn.relu %x29 : tensor<4x16xf32>
  %x31 = nn.relu %x30 : tensor<4x16xf32>
  %x32 = nn.relu %x31 : tensor<4x16xf32>
  %x33 = nn.relu %x32 : tensor<4x16xf32>
  %x34 = nn.relu %x33 : tensor<4x16xf32>
  %x35 = nn.relu %x34 : tensor<4x16xf32>
  %x36 = nn.relu %x35 : tensor<4x16xf32>
  %r = tp.from_local %x36 as <@mesh, [{tp}, {}]> : tensor<4x16xf32> -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
