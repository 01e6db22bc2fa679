// RUN: tp-opt %s --tp-verify-collectives --split-input-file --verify-diagnostics

tp.mesh @mesh(tp = 2)
func.func @main() attributes {tp.ranks = array<i64: 0>} { return }
// expected-error @+1 {{is a copy of @other, which must be a function that has a body and isn't a copy itself}}
func.func @main_0() attributes {tp.copy_of = @other, tp.ranks = array<i64: 1>} { return }

// -----

tp.mesh @mesh(tp = 3)
func.func @main() attributes {tp.ranks = array<i64: 0>} { return }
func.func @main_0() attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>} { return }
// expected-error @+1 {{is a copy of @main_0, which must be a function that has a body and isn't a copy itself}}
func.func @main_1() attributes {tp.copy_of = @main_0, tp.ranks = array<i64: 2>} { return }

// -----

tp.mesh @mesh(tp = 2)
// expected-note @+1 {{the first is here}}
func.func @main() attributes {tp.ranks = array<i64: 0, 1>} { return }
// expected-error @+1 {{rank 1 runs both '@main' and '@main_0'}}
func.func @main_0() attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>} { return }

// -----

// Without 'tp.ranks', all ranks run it.
tp.mesh @mesh(tp = 2)
// expected-note @+1 {{the first is here}}
func.func @main() { return }
// expected-error @+1 {{rank 1 runs both '@main' and '@main_0'}}
func.func @main_0() attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>} { return }

// -----

// Programs that don't name each other are programs of two functions.
tp.mesh @mesh(tp = 2)
// expected-error @+1 {{rank 1 runs none of the programs: each rank needs one, and has it in 'tp.ranks'}}
func.func @main() attributes {tp.ranks = array<i64: 0>} { return }
func.func @main_0() attributes {tp.ranks = array<i64: 1>} { return }

// -----

tp.mesh @mesh(tp = 2)
func.func @main() attributes {tp.ranks = array<i64: 0>} { return }
// expected-error @+1 {{'@main_0' runs on rank 2, but the mesh has 2 ranks}}
func.func @main_0() attributes {tp.copy_of = @main, tp.ranks = array<i64: 2>} { return }

// -----

tp.mesh @mesh(tp = 2)
func.func @main() attributes {tp.ranks = array<i64: 0>} { return }
// expected-error @+1 {{is a copy of @main without a body}}
func.func private @main_0() attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>}
