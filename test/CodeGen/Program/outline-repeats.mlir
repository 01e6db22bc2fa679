// RUN: tp-opt %s --split-input-file --tp-outline-repeats=min-saved=8 --verify-roundtrip | FileCheck %s
// RUN: tp-opt %s --split-input-file --tp-outline-repeats | FileCheck %s --check-prefix=FEW

// Without the option, so few ops aren't worth a function.
// FEW-NOT: tprt.call

// A layer begins with the product, which is never fused with what computes its operand. The constant
// is in the function. A call lists the FQNs and the collectives. It takes the buffers of weights.

// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[RANK:[^:]+]]: index
// CHECK: %[[I0:.+]] = tensor.empty() : tensor<8x4xf32>
// CHECK: %[[R0:.+]] = tprt.call @[[LAYER:.+]] rank %[[RANK]] ins(%arg1, %arg2 : memref<8x4xf32>, memref<4x4xf32>)
// CHECK-SAME: outs(%[[I0]] : tensor<8x4xf32>) origins ["layers.0", "", "layers.0", "", "layers.0"] collectives [0] -> tensor<8x4xf32>
// CHECK: %[[R1:.+]] = tprt.call @[[LAYER]] rank %[[RANK]] ins(%[[R0]], %arg3 : tensor<8x4xf32>, memref<4x4xf32>)
// CHECK-SAME: origins ["layers.1", "", "layers.1", "", "layers.1"] collectives [1]
// CHECK: %[[R2:.+]] = tprt.call @[[LAYER]] rank %[[RANK]] ins(%[[R1]], %arg4 : tensor<8x4xf32>, memref<4x4xf32>)
// CHECK-SAME: origins ["layers.2", "", "layers.2", "", "layers.2"] collectives [2]
// CHECK: nn.linear %[[R2]]
// CHECK: tprt.collective 3
// CHECK: return

// CHECK: func.func private @[[LAYER]](
// CHECK-SAME: %{{.+}}: index {tprt.role = "rank"}, %{{.+}}: memref<8x4xf32>, %{{.+}}: memref<4x4xf32>,
// CHECK-SAME: %[[OUT:[^:]+]]: memref<8x4xf32>) attributes {tprt.repeated}
// CHECK: %[[P:.+]] = nn.linear
// CHECK: tprt.collective 0 into %[[P]]
// CHECK: %[[Y:.+]] = nn.add
// CHECK: %[[HALF:.+]] = nn.constant
// CHECK: %[[Z:.+]] = nn.mul %[[Y]], %[[HALF]]
// CHECK: bufferization.materialize_in_destination %[[Z]] in restrict writable %[[OUT]]
#linear0 = loc(fused<{fqn = "layers.0", op = "linear", position = 0 : i64}>["m.py":1:1])
#reduce0 = loc(fused<{fqn = "", op = "tp.all_reduce", position = 1 : i64}>["m.py":1:1])
#add0 = loc(fused<{fqn = "layers.0", op = "add", position = 2 : i64}>["m.py":1:1])
#mul0 = loc(fused<{fqn = "layers.0", op = "mul", position = 3 : i64}>["m.py":1:1])
#linear1 = loc(fused<{fqn = "layers.1", op = "linear", position = 5 : i64}>["m.py":1:1])
#reduce1 = loc(fused<{fqn = "", op = "tp.all_reduce", position = 6 : i64}>["m.py":1:1])
#add1 = loc(fused<{fqn = "layers.1", op = "add", position = 7 : i64}>["m.py":1:1])
#mul1 = loc(fused<{fqn = "layers.1", op = "mul", position = 8 : i64}>["m.py":1:1])
#linear2 = loc(fused<{fqn = "layers.2", op = "linear", position = 10 : i64}>["m.py":1:1])
#reduce2 = loc(fused<{fqn = "", op = "tp.all_reduce", position = 11 : i64}>["m.py":1:1])
#add2 = loc(fused<{fqn = "layers.2", op = "add", position = 12 : i64}>["m.py":1:1])
#mul2 = loc(fused<{fqn = "layers.2", op = "mul", position = 13 : i64}>["m.py":1:1])
#constant = loc(fused<{fqn = "", op = "constant", position = 20 : i64}>["m.py":1:1])
func.func @layers(%rank: index {tprt.role = "rank"}, %arg1: memref<8x4xf32> {tp.name = "x", tprt.role = "input"},
    %arg2: memref<4x4xf32> {tprt.role = "parameter"}, %arg3: memref<4x4xf32> {tprt.role = "parameter"},
    %arg4: memref<4x4xf32> {tprt.role = "parameter"}, %arg5: memref<4x4xf32> {tprt.role = "parameter"},
    %out: memref<8x4xf32> {tprt.role = "output"}) attributes {tp.ranks = array<i64: 0>} {
  %x = bufferization.to_tensor %arg1 restrict : memref<8x4xf32> to tensor<8x4xf32>
  %w0 = bufferization.to_tensor %arg2 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w1 = bufferization.to_tensor %arg3 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w2 = bufferization.to_tensor %arg4 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w3 = bufferization.to_tensor %arg5 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %half = nn.constant dense<0.5> : tensor<f32> loc(#constant)
  %p0 = nn.linear %x, %w0 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc(#linear0)
  %q0 = tprt.collective 0 into %p0 : tensor<8x4xf32> -> tensor<8x4xf32> loc(#reduce0)
  %y0 = nn.add %x, %q0 {tp.fqn = "layers.0"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> loc(#add0)
  %z0 = nn.mul %y0, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32> loc(#mul0)
  %p1 = nn.linear %z0, %w1 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc(#linear1)
  %q1 = tprt.collective 1 into %p1 : tensor<8x4xf32> -> tensor<8x4xf32> loc(#reduce1)
  %y1 = nn.add %z0, %q1 {tp.fqn = "layers.1"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> loc(#add1)
  %z1 = nn.mul %y1, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32> loc(#mul1)
  %p2 = nn.linear %z1, %w2 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc(#linear2)
  %q2 = tprt.collective 2 into %p2 : tensor<8x4xf32> -> tensor<8x4xf32> loc(#reduce2)
  %y2 = nn.add %z1, %q2 {tp.fqn = "layers.2"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> loc(#add2)
  %z2 = nn.mul %y2, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32> loc(#mul2)
  %p3 = nn.linear %z2, %w3 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %q3 = tprt.collective 3 into %p3 : tensor<8x4xf32> -> tensor<8x4xf32>
  %y3 = nn.add %z2, %q3 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  bufferization.materialize_in_destination %y3 in restrict writable %out : (tensor<8x4xf32>, memref<8x4xf32>) -> ()
  return
}

// -----

// A parameter whose next value a layer computes is overwritten where it is.

// CHECK-LABEL: func.func @step(
// CHECK: %[[C0:.+]] = tprt.call @[[LAYER:.+]] rank %{{.+}} ins(%arg1 : memref<4x4xf32>) updates(%arg2 : memref<4x4xf32>) outs(
// CHECK: %[[C1:.+]] = tprt.call @[[LAYER]] rank %{{.+}} ins(%[[C0]] : tensor<4x4xf32>) updates(%arg3 : memref<4x4xf32>) outs(
// CHECK-NEXT: bufferization.materialize_in_destination %[[C1]] in restrict writable %arg4
// CHECK-NEXT: return
// CHECK: func.func private @[[LAYER]](
// CHECK-SAME: %[[W:[^:]+]]: memref<4x4xf32>, %{{[^:]+}}: memref<4x4xf32>) attributes {tprt.repeated}
// CHECK: %[[T:.+]] = bufferization.to_tensor %[[W]] restrict writable
// CHECK: %[[N:.+]] = nn.sub %[[T]]
// CHECK: %[[I:.+]] = bufferization.materialize_in_destination %[[N]] in %[[T]]
// CHECK: bufferization.materialize_in_destination %[[I]] in restrict writable %[[W]]
func.func @step(%rank: index {tprt.role = "rank"}, %arg1: memref<4x4xf32> {tprt.role = "input"},
    %arg2: memref<4x4xf32> {tprt.role = "parameter"}, %arg3: memref<4x4xf32> {tprt.role = "parameter"},
    %arg4: memref<4x4xf32> {tprt.role = "output"}) attributes {tp.ranks = array<i64: 0>} {
  %x = bufferization.to_tensor %arg1 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w0 = bufferization.to_tensor %arg2 restrict writable : memref<4x4xf32> to tensor<4x4xf32>
  %w1 = bufferization.to_tensor %arg3 restrict writable : memref<4x4xf32> to tensor<4x4xf32>
  %0 = nn.exp %x : tensor<4x4xf32>
  %1 = nn.exp %0 : tensor<4x4xf32>
  %2 = nn.mul %1, %w0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = nn.tanh %2 : tensor<4x4xf32>
  %4 = nn.relu %3 : tensor<4x4xf32>
  %5 = nn.exp %4 : tensor<4x4xf32>
  %6 = nn.sub %w0, %5 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = nn.linear %4, %5 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %8 = nn.exp %7 : tensor<4x4xf32>
  %9 = nn.exp %8 : tensor<4x4xf32>
  %10 = nn.mul %9, %w1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %11 = nn.tanh %10 : tensor<4x4xf32>
  %12 = nn.relu %11 : tensor<4x4xf32>
  %13 = nn.exp %12 : tensor<4x4xf32>
  %14 = nn.sub %w1, %13 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %15 = nn.linear %12, %13 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  bufferization.materialize_in_destination %15 in restrict writable %arg4 : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  %16 = bufferization.materialize_in_destination %6 in %w0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  bufferization.materialize_in_destination %16 in restrict writable %arg2 : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  %17 = bufferization.materialize_in_destination %14 in %w1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  bufferization.materialize_in_destination %17 in restrict writable %arg3 : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

// What differs is an argument, also where it is equal to a constant of the layer. The indices are computed
// in the layer, from the rank, and not read. Constants may stand between the layer's ops.

// CHECK-LABEL: func.func @dropouts(
// CHECK-SAME: %[[RANK:[^:]+]]: index
// CHECK-NOT: nn.iota
// CHECK-DAG: %[[S0:.+]] = nn.constant dense<0> : tensor<i64>
// CHECK-DAG: %[[S1:.+]] = nn.constant dense<1> : tensor<i64>
// CHECK-DAG: %[[S2:.+]] = nn.constant dense<2> : tensor<i64>
// CHECK: tprt.call @[[LAYER:.+]] rank %[[RANK]] ins({{.*}}%[[S0]]{{.*}})
// CHECK: tprt.call @[[LAYER]] rank %[[RANK]] ins({{.*}}%[[S1]]{{.*}})
// CHECK: tprt.call @[[LAYER]] rank %[[RANK]] ins({{.*}}%[[S2]]{{.*}})

// CHECK: func.func private @[[LAYER]](
// CHECK-SAME: %[[LAYERS_RANK:[^:]+]]: index {tprt.role = "rank"}, {{.+}}: memref<8x4xf32>, {{.+}}: memref<4x4xf32>, {{.+}}: memref<i64>, %[[ARG:[^:]+]]: memref<i64>
// CHECK: %[[STREAM:.+]] = bufferization.to_tensor %[[ARG]]
// CHECK: nn.linear
// CHECK: nn.iota
// CHECK: nn.iota
// CHECK: nn.add
// CHECK: arith.muli %[[LAYERS_RANK]]
// CHECK: %[[GLOBAL:.+]] = nn.add
// CHECK: %[[OWN:.+]] = nn.constant dense<0> : tensor<i64>
// CHECK: %[[INDEX:.+]] = nn.add %[[GLOBAL]], %[[OWN]]
// CHECK: nn.random_uniform %{{.+}}, %[[INDEX]] stream %[[STREAM]] seed
func.func @dropouts(%rank: index {tprt.role = "rank"}, %arg1: memref<8x4xf32> {tp.name = "x", tprt.role = "input"},
    %arg2: memref<4x4xf32> {tprt.role = "parameter"}, %arg3: memref<4x4xf32> {tprt.role = "parameter"},
    %arg4: memref<4x4xf32> {tprt.role = "parameter"}, %arg5: memref<i64> {tprt.role = "parameter"},
    %out: memref<8x4xf32> {tprt.role = "output"}) attributes {tp.ranks = array<i64: 0, 1>} {
  %x = bufferization.to_tensor %arg1 restrict : memref<8x4xf32> to tensor<8x4xf32>
  %w0 = bufferization.to_tensor %arg2 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w1 = bufferization.to_tensor %arg3 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w2 = bufferization.to_tensor %arg4 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %step = bufferization.to_tensor %arg5 restrict : memref<i64> to tensor<i64>
  %half = nn.constant dense<0.5> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %c32 = arith.constant 32 : index
  %begin = arith.muli %rank, %c32 : index
  %integer = arith.index_cast %begin : index to i64
  %offset = tensor.from_elements %integer : tensor<i64>
  %column = nn.iota dim 1 start 0.0 step 1.0 : tensor<1x4xi64>
  %row = nn.iota dim 0 start 0.0 step 4.0 : tensor<8x1xi64>
  %inner = nn.add %column, %row : (tensor<1x4xi64>, tensor<8x1xi64>) -> tensor<8x4xi64>
  %index = nn.add %inner, %offset : (tensor<8x4xi64>, tensor<i64>) -> tensor<8x4xi64>
  %p0 = nn.linear %x, %w0 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %s0 = nn.constant dense<0> : tensor<i64>
  %j0 = nn.add %index, %s0 : (tensor<8x4xi64>, tensor<i64>) -> tensor<8x4xi64>
  %r0 = nn.random_uniform %step, %j0 stream %s0 seed 7 : (tensor<i64>, tensor<8x4xi64>, tensor<i64>) -> tensor<8x4xf32>
  %k0 = nn.compare ge %r0, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xi1>
  %t0 = nn.mul %p0, %two : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %z0 = nn.where %k0, %t0, %two : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %p1 = nn.linear %z0, %w1 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %s1 = nn.constant dense<1> : tensor<i64>
  %j1 = nn.add %index, %s0 : (tensor<8x4xi64>, tensor<i64>) -> tensor<8x4xi64>
  %r1 = nn.random_uniform %step, %j1 stream %s1 seed 7 : (tensor<i64>, tensor<8x4xi64>, tensor<i64>) -> tensor<8x4xf32>
  %k1 = nn.compare ge %r1, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xi1>
  %t1 = nn.mul %p1, %two : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %z1 = nn.where %k1, %t1, %two : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %p2 = nn.linear %z1, %w2 : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %s2 = nn.constant dense<2> : tensor<i64>
  %j2 = nn.add %index, %s0 : (tensor<8x4xi64>, tensor<i64>) -> tensor<8x4xi64>
  %r2 = nn.random_uniform %step, %j2 stream %s2 seed 7 : (tensor<i64>, tensor<8x4xi64>, tensor<i64>) -> tensor<8x4xf32>
  %k2 = nn.compare ge %r2, %half : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xi1>
  %t2 = nn.mul %p2, %two : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %z2 = nn.where %k2, %t2, %two : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  bufferization.materialize_in_destination %z2 in restrict writable %out : (tensor<8x4xf32>, memref<8x4xf32>) -> ()
  return
}

// -----

// Ops that many paths lead to aren't computed again for each of their readers, nor are other ops on
// constants. An exponent stays a constant, since the code for it depends on it.

// CHECK-LABEL: func.func @shared(
// CHECK: nn.iota
// CHECK-COUNT-5: nn.mul
// CHECK-NOT: nn.mul
// CHECK: tprt.call @[[LAYER:.+]] rank
// CHECK: tprt.call @[[LAYER]] rank
func.func @shared(%rank: index {tprt.role = "rank"}, %arg1: memref<4x4xf32> {tp.name = "x", tprt.role = "input"},
    %arg2: memref<4x4xf32> {tprt.role = "parameter"}, %arg3: memref<i64> {tprt.role = "parameter"},
    %out: memref<4x4xf32> {tprt.role = "output"}) attributes {tp.ranks = array<i64: 0>} {
  %x = bufferization.to_tensor %arg1 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w = bufferization.to_tensor %arg2 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %step = bufferization.to_tensor %arg3 restrict : memref<i64> to tensor<i64>
  %stream = nn.constant dense<1> : tensor<i64>
  %h0 = nn.iota dim 1 start 0.0 step 1.0 : tensor<4x4xi64>
  %h1 = nn.mul %h0, %h0 : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  %h2 = nn.mul %h1, %h1 : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  %h3 = nn.mul %h2, %h2 : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  %h4 = nn.mul %h3, %h3 : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  %h5 = nn.mul %h4, %h4 : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  %p0 = nn.linear %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r0 = nn.random_uniform %step, %h5 stream %stream seed 7 : (tensor<i64>, tensor<4x4xi64>, tensor<i64>) -> tensor<4x4xf32>
  %a0 = nn.add %p0, %r0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b0 = nn.relu %a0 : tensor<4x4xf32>
  %c0 = nn.tanh %b0 : tensor<4x4xf32>
  %z0 = nn.exp %c0 : tensor<4x4xf32>
  %p1 = nn.linear %z0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r1 = nn.random_uniform %step, %h5 stream %stream seed 7 : (tensor<i64>, tensor<4x4xi64>, tensor<i64>) -> tensor<4x4xf32>
  %a1 = nn.add %p1, %r1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b1 = nn.relu %a1 : tensor<4x4xf32>
  %c1 = nn.tanh %b1 : tensor<4x4xf32>
  %z1 = nn.exp %c1 : tensor<4x4xf32>
  %p2 = nn.linear %z1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r2 = nn.random_uniform %step, %h5 stream %stream seed 7 : (tensor<i64>, tensor<4x4xi64>, tensor<i64>) -> tensor<4x4xf32>
  %a2 = nn.add %p2, %r2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b2 = nn.relu %a2 : tensor<4x4xf32>
  %c2 = nn.tanh %b2 : tensor<4x4xf32>
  %z2 = nn.exp %c2 : tensor<4x4xf32>
  bufferization.materialize_in_destination %z2 in restrict writable %out : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @exponents(
// CHECK-NOT: tprt.call {{.*}}f32>, tensor<f32>
// CHECK: return
func.func @exponents(%rank: index {tprt.role = "rank"}, %arg1: memref<4x4xf32> {tp.name = "x", tprt.role = "input"},
    %arg2: memref<4x4xf32> {tprt.role = "parameter"}, %out: memref<4x4xf32> {tprt.role = "output"}) attributes {tp.ranks = array<i64: 0>} {
  %x = bufferization.to_tensor %arg1 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %w = bufferization.to_tensor %arg2 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %e0 = nn.constant dense<2.0> : tensor<f32>
  %p0 = nn.linear %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a0 = nn.pow %p0, %e0 : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %b0 = nn.relu %a0 : tensor<4x4xf32>
  %c0 = nn.tanh %b0 : tensor<4x4xf32>
  %z0 = nn.exp %c0 : tensor<4x4xf32>
  %e1 = nn.constant dense<3.0> : tensor<f32>
  %p1 = nn.linear %z0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a1 = nn.pow %p1, %e1 : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %b1 = nn.relu %a1 : tensor<4x4xf32>
  %c1 = nn.tanh %b1 : tensor<4x4xf32>
  %z1 = nn.exp %c1 : tensor<4x4xf32>
  %e2 = nn.constant dense<2.0> : tensor<f32>
  %p2 = nn.linear %z1, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a2 = nn.pow %p2, %e2 : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %b2 = nn.relu %a2 : tensor<4x4xf32>
  %c2 = nn.tanh %b2 : tensor<4x4xf32>
  %z2 = nn.exp %c2 : tensor<4x4xf32>
  %e3 = nn.constant dense<3.0> : tensor<f32>
  %p3 = nn.linear %z2, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a3 = nn.pow %p3, %e3 : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %b3 = nn.relu %a3 : tensor<4x4xf32>
  %c3 = nn.tanh %b3 : tensor<4x4xf32>
  %z3 = nn.exp %c3 : tensor<4x4xf32>
  bufferization.materialize_in_destination %z3 in restrict writable %out : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

// Each microbatch takes its part of the input, and is a pass over the model of its own.

// CHECK-LABEL: func.func @microbatches(
// CHECK: %[[X:.+]] = bufferization.to_tensor %arg1
// CHECK-COUNT-5: nn.slice %[[X]] dim 0
// CHECK-COUNT-4: tprt.call @[[PASS:.+]] rank %
// CHECK-NOT: nn.slice
// CHECK: func.func private @[[PASS]](
func.func @microbatches(%rank: index {tprt.role = "rank"}, %arg1: memref<20x4xf32> {tp.name = "x", tprt.role = "input"},
    %arg2: memref<4x4xf32> {tprt.role = "parameter"}, %out: memref<4x4xf32> {tprt.role = "output"})
    attributes {tp.ranks = array<i64: 0>} {
  %x = bufferization.to_tensor %arg1 restrict : memref<20x4xf32> to tensor<20x4xf32>
  %w = bufferization.to_tensor %arg2 restrict : memref<4x4xf32> to tensor<4x4xf32>
  %zero = nn.constant dense<0.0> : tensor<4x4xf32>
  %x0 = nn.slice %x dim 0 start 0 step 1 : tensor<20x4xf32> -> tensor<4x4xf32>
  %w0 = nn.recompute %w {tp.pass = 0 : i64} : tensor<4x4xf32>
  %p0 = nn.linear %x0, %w0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q0 = tprt.collective 0 into %p0 : tensor<4x4xf32> -> tensor<4x4xf32>
  %r0 = nn.relu %q0 : tensor<4x4xf32>
  %s0 = nn.add %zero, %r0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %x1 = nn.slice %x dim 0 start 4 step 1 : tensor<20x4xf32> -> tensor<4x4xf32>
  %w1 = nn.recompute %w {tp.pass = 1 : i64} : tensor<4x4xf32>
  %p1 = nn.linear %x1, %w1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q1 = tprt.collective 1 into %p1 : tensor<4x4xf32> -> tensor<4x4xf32>
  %r1 = nn.relu %q1 : tensor<4x4xf32>
  %s1 = nn.add %s0, %r1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %x2 = nn.slice %x dim 0 start 8 step 1 : tensor<20x4xf32> -> tensor<4x4xf32>
  %w2 = nn.recompute %w {tp.pass = 2 : i64} : tensor<4x4xf32>
  %p2 = nn.linear %x2, %w2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q2 = tprt.collective 2 into %p2 : tensor<4x4xf32> -> tensor<4x4xf32>
  %r2 = nn.relu %q2 : tensor<4x4xf32>
  %s2 = nn.add %s1, %r2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %x3 = nn.slice %x dim 0 start 12 step 1 : tensor<20x4xf32> -> tensor<4x4xf32>
  %w3 = nn.recompute %w {tp.pass = 3 : i64} : tensor<4x4xf32>
  %p3 = nn.linear %x3, %w3 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q3 = tprt.collective 3 into %p3 : tensor<4x4xf32> -> tensor<4x4xf32>
  %r3 = nn.relu %q3 : tensor<4x4xf32>
  %s3 = nn.add %s2, %r3 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %x4 = nn.slice %x dim 0 start 16 step 1 : tensor<20x4xf32> -> tensor<4x4xf32>
  %w4 = nn.recompute %w {tp.pass = 4 : i64} : tensor<4x4xf32>
  %p4 = nn.linear %x4, %w4 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %q4 = tprt.collective 4 into %p4 : tensor<4x4xf32> -> tensor<4x4xf32>
  %r4 = nn.relu %q4 : tensor<4x4xf32>
  %s4 = nn.add %s3, %r4 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  bufferization.materialize_in_destination %s4 in restrict writable %out : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

// Layers of which different results are needed are different functions, even if the results have one type.

// CHECK-LABEL: func.func @results(
// CHECK: tprt.call @[[VALUES:.+]] rank
// CHECK: tprt.call @[[INDICES:.+]] rank
// CHECK: tprt.call @[[VALUES]] rank
// CHECK: tprt.call @[[INDICES]] rank
// CHECK: return
// CHECK: func.func private @[[VALUES]](
// CHECK: %[[SORTED:.+]], %{{.+}} = nn.sort
// CHECK: materialize_in_destination %[[SORTED]] in restrict writable
// CHECK: func.func private @[[INDICES]](
// CHECK: %{{.+}}, %[[ORDER:.+]] = nn.sort
// CHECK: materialize_in_destination %[[ORDER]] in restrict writable
func.func @results(%rank: index {tprt.role = "rank"}, %arg1: memref<4xi64> {tprt.role = "input"},
    %out0: memref<4xi64> {tprt.role = "output"}, %out1: memref<4xi64> {tprt.role = "output"}, %out2: memref<4xi64> {tprt.role = "output"}, %out3: memref<4xi64> {tprt.role = "output"}, %out4: memref<4xi64> {tprt.role = "output"}) attributes {tp.ranks = array<i64: 0>} {
  %x0 = bufferization.to_tensor %arg1 restrict : memref<4xi64> to tensor<4xi64>
  %s0, %i0 = nn.sort %x0 dim 0 count 4 : tensor<4xi64> -> (tensor<4xi64>, tensor<4xi64>)
  %a0_0 = nn.add %s0, %i0 : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %a0_1 = nn.neg %a0_0 : tensor<4xi64>
  %a0_2 = nn.neg %a0_1 : tensor<4xi64>
  %a0_3 = nn.neg %a0_2 : tensor<4xi64>
  %a0_4 = nn.neg %a0_3 : tensor<4xi64>
  %a0_5 = nn.neg %a0_4 : tensor<4xi64>
  %a0_6 = nn.neg %a0_5 : tensor<4xi64>
  %a0_7 = nn.neg %a0_6 : tensor<4xi64>
  %a0_8 = nn.neg %a0_7 : tensor<4xi64>
  %a0_9 = nn.neg %a0_8 : tensor<4xi64>
  %x1 = nn.abs %a0_9 : tensor<4xi64>
  %s1, %i1 = nn.sort %x1 dim 0 count 4 : tensor<4xi64> -> (tensor<4xi64>, tensor<4xi64>)
  %a1_0 = nn.add %s1, %i1 : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %a1_1 = nn.neg %a1_0 : tensor<4xi64>
  %a1_2 = nn.neg %a1_1 : tensor<4xi64>
  %a1_3 = nn.neg %a1_2 : tensor<4xi64>
  %a1_4 = nn.neg %a1_3 : tensor<4xi64>
  %a1_5 = nn.neg %a1_4 : tensor<4xi64>
  %a1_6 = nn.neg %a1_5 : tensor<4xi64>
  %a1_7 = nn.neg %a1_6 : tensor<4xi64>
  %a1_8 = nn.neg %a1_7 : tensor<4xi64>
  %a1_9 = nn.neg %a1_8 : tensor<4xi64>
  %x2 = nn.abs %a1_9 : tensor<4xi64>
  %s2, %i2 = nn.sort %x2 dim 0 count 4 : tensor<4xi64> -> (tensor<4xi64>, tensor<4xi64>)
  %a2_0 = nn.add %s2, %i2 : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %a2_1 = nn.neg %a2_0 : tensor<4xi64>
  %a2_2 = nn.neg %a2_1 : tensor<4xi64>
  %a2_3 = nn.neg %a2_2 : tensor<4xi64>
  %a2_4 = nn.neg %a2_3 : tensor<4xi64>
  %a2_5 = nn.neg %a2_4 : tensor<4xi64>
  %a2_6 = nn.neg %a2_5 : tensor<4xi64>
  %a2_7 = nn.neg %a2_6 : tensor<4xi64>
  %a2_8 = nn.neg %a2_7 : tensor<4xi64>
  %a2_9 = nn.neg %a2_8 : tensor<4xi64>
  %x3 = nn.abs %a2_9 : tensor<4xi64>
  %s3, %i3 = nn.sort %x3 dim 0 count 4 : tensor<4xi64> -> (tensor<4xi64>, tensor<4xi64>)
  %a3_0 = nn.add %s3, %i3 : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %a3_1 = nn.neg %a3_0 : tensor<4xi64>
  %a3_2 = nn.neg %a3_1 : tensor<4xi64>
  %a3_3 = nn.neg %a3_2 : tensor<4xi64>
  %a3_4 = nn.neg %a3_3 : tensor<4xi64>
  %a3_5 = nn.neg %a3_4 : tensor<4xi64>
  %a3_6 = nn.neg %a3_5 : tensor<4xi64>
  %a3_7 = nn.neg %a3_6 : tensor<4xi64>
  %a3_8 = nn.neg %a3_7 : tensor<4xi64>
  %a3_9 = nn.neg %a3_8 : tensor<4xi64>
  %x4 = nn.abs %a3_9 : tensor<4xi64>
  bufferization.materialize_in_destination %s0 in restrict writable %out0 : (tensor<4xi64>, memref<4xi64>) -> ()
  bufferization.materialize_in_destination %i1 in restrict writable %out1 : (tensor<4xi64>, memref<4xi64>) -> ()
  bufferization.materialize_in_destination %s2 in restrict writable %out2 : (tensor<4xi64>, memref<4xi64>) -> ()
  bufferization.materialize_in_destination %i3 in restrict writable %out3 : (tensor<4xi64>, memref<4xi64>) -> ()
  bufferization.materialize_in_destination %x4 in restrict writable %out4 : (tensor<4xi64>, memref<4xi64>) -> ()
  return
}
