// RUN: tp-opt %s --tp-create-entry-point --split-input-file --verify-diagnostics

// expected-error @+1 {{there is no function '@main' to compile}}
module {
  func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func @backward(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{'x' has a sharding but no tp.global_type: this is a program over global shapes; make the ranks' program of it: tp-opt MODEL --tp-parallelize=plan=PLAN -o RANKS (without '=plan=PLAN' if the IR has the placements)}}
func.func @main(%x: tensor<4xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tp.redistribute' isn't partitioned: this is a program over global shapes; make the ranks' program of it: tp-opt MODEL --tp-parallelize}}
  %0 = tp.redistribute %x to <@mesh, [{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tp.constraint' isn't partitioned: this is a program over global shapes}}
  %0 = tp.constraint %x to <@mesh, [{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Chunks of 3, 3: the program's 4 can't be.
tp.mesh @mesh(tp = 2)
// expected-error @+1 {{'arg0' has 3 elements along dimension 0 on rank 0, but the program's type 'tensor<4xf32>' has 4}}
func.func @main(%x: tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<6xf32>}) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>)
    -> (tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{}], partial = {tp: sum}>, tp.global_type = tensor<4xf32>}) {
  // expected-error @+1 {{output 'result0' is Partial; an output must be replicated or split}}
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{two inputs have the name 'x'}}
func.func @main(%x: tensor<4xf32> {tp.name = "x"}, %y: tensor<4xf32> {tp.name = "x"}) {
  return
}

// -----

// expected-error @+1 {{'arg0' has element type 'i4', an artifact holds f32, f64, f16, bf16, i64, i32, i16, i8, ui8 or i1}}
func.func @main(%x: tensor<4xi4>) {
  return
}

// -----

// expected-error @+1 {{'arg0' has element type 'index', an artifact holds f32, f64, f16, bf16, i64, i32, i16, i8, ui8 or i1; pass i64, and convert it in the program by arith.index_cast}}
func.func @main(%x: tensor<4xindex>) {
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @main() -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // expected-note @+1 {{the other one is here}}
  %0 = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<8x4xf32>} : tensor<4x4xf32>
  // expected-error @+1 {{parameter "w" is placed in two ways}}
  %1 = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<4x8xf32>} : tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// expected-note @+1 {{the first is here}}
tp.mesh @a(tp = 2)
// expected-error @+1 {{a program has one mesh, this is the second}}
tp.mesh @b(tp = 2)
func.func @main() {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-note @+1 {{the first is here}}
func.func @a() attributes {tp.ranks = array<i64: 0, 1>} {
  return
}
// expected-error @+1 {{rank 1 runs both '@a' and '@b'}}
func.func @b() attributes {tp.ranks = array<i64: 1>} {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{rank 0 runs none of the programs: each rank needs one, and has it in 'tp.ranks'}}
func.func @a() attributes {tp.ranks = array<i64: 1>} {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{'@a' runs on rank 2, but the mesh has 2 ranks}}
func.func @a() attributes {tp.ranks = array<i64: 0, 1, 2>} {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-note @+1 {{the ranks' programs have one interface, this is the first}}
func.func @a(%x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  return
}
// expected-error @+1 {{'@b' has 'arg0' as number 0 of its inputs, with another name, type or sharding}}
func.func @b(%x: tensor<2xi64>) attributes {tp.ranks = array<i64: 1>} {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-note @+1 {{this is the first}}
func.func @a(%x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  return
}
// expected-error @+1 {{'@b' has 0 inputs, expected 1}}
func.func @b() attributes {tp.ranks = array<i64: 1>} {
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-note @+1 {{this is the first}}
func.func @a() -> tensor<2xf32> attributes {tp.ranks = array<i64: 0>} {
  %0 = nn.parameter "w" : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// expected-error @+1 {{'@b' has parameter "w" with another type, sharding or update}}
func.func @b() -> tensor<2xf32> attributes {tp.ranks = array<i64: 1>} {
  %0 = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<4xf32>} : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-note@+1 {{the other one is '@main'}}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
// expected-error@+1 {{'@other' is a second entry point; an artifact has one}}
func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  %w = nn.parameter "w" : tensor<3xf32>
  // expected-error@+1 {{assigns "w", but no 'nn.parameter' of this FQN has type 'tensor<2xf32>'}}
  nn.assign "w", %x : tensor<2xf32>
  return %w : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) {
  %w = nn.parameter "w" : tensor<2xf32>
  // expected-note@+1 {{the first is here}}
  nn.assign "w", %x : tensor<2xf32>
  // expected-error@+1 {{assigns "w" a second time}}
  nn.assign "w", %w : tensor<2xf32>
  return
}

// -----

// Every rank updates the parameter, or none.
tp.mesh @mesh(tp = 2)
// expected-note @+1 {{this is the first}}
func.func @a() -> tensor<2xf32> attributes {tp.ranks = array<i64: 0>} {
  %0 = nn.parameter "w" : tensor<2xf32>
  nn.assign "w", %0 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// expected-error @+1 {{'@b' has parameter "w" with another type, sharding or update}}
func.func @b() -> tensor<2xf32> attributes {tp.ranks = array<i64: 1>} {
  %0 = nn.parameter "w" : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  // expected-error @+1 {{a tensor has more than 2^40 elements: 'tensor<8x4611686018427387904xf32>'}}
  %0 = tensor.empty() : tensor<8x4611686018427387904xf32>
  %1 = tensor.empty() : tensor<f32>
  return %1 : tensor<f32>
}

// -----

// expected-error @+1 {{a tensor has more than 2^40 elements: 'tensor<1099511627777xf32>'}}
func.func @main(%x: tensor<1099511627777xf32>) -> tensor<f32> {
  %1 = tensor.empty() : tensor<f32>
  return %1 : tensor<f32>
}
