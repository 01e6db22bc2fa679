//===- ProgramChoice.h - The program of an artifact for inputs --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An artifact may have several programs, for inputs of several sizes. A run
// uses the one that takes exactly the given inputs. If they may be padded, it
// uses the smallest one that they fit into: sizes that depend on a symbol of
// the model grow to those of the program, new elements get a value, and the
// outputs are cut back to the sizes that the model would give them.
//
// Padding doesn't know what a model computes. It is right only if elements of
// the result that are kept don't depend on those that were added: in causal
// models, or where a mask that is padded as well hides them.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_PROGRAMCHOICE_H
#define TPRT_PROGRAMCHOICE_H

#include "tprt/TensorMap.h"

namespace tprt {

/// What a caller says about the program to run.
struct ProgramQuery {
  std::string program; ///< its name; if empty, the inputs decide
  /// By the inputs that may grow: the value of the new elements.
  std::map<std::string, double> pad;
};

/// A program, and the inputs' sizes.
struct ProgramChoice {
  const Program *program = nullptr; ///< one of the manifest's
  /// For each symbol of the program's inputs, the value that it has in the
  /// given inputs; at most Program::symbols.
  std::map<std::string, int64_t> symbols = {};
  bool isPadded = false; ///< whether any value is smaller than the program's
};

/// Chooses the program for `inputs`. Of several, it is the one with the fewest
/// elements of inputs, and among these one that takes the inputs' own types.
/// Throws an input error that says for each program why the inputs don't fit;
/// or that the query names an unknown program or input, or a value to pad with
/// that isn't one of the input's type.
TPRT_API ProgramChoice chooseProgram(const Manifest &manifest,
                                     const TensorMap &inputs,
                                     const ProgramQuery &query = {});

/// The inputs of the chosen program: elements are added at the end of
/// dimensions.
TPRT_API TensorMap padInputs(const ProgramChoice &choice,
                             const TensorMap &inputs,
                             const ProgramQuery &query);

/// The outputs for the given inputs: elements at the end of dimensions are left
/// out.
TPRT_API TensorMap cutOutputs(const ProgramChoice &choice, TensorMap outputs);

} // namespace tprt

#endif // TPRT_PROGRAMCHOICE_H
