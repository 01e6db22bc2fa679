//===- ExplainEdits.cpp - Edits that leave less to move -------------------===//

#include "ExplainEdits.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::explain;

void explain::tryEdits(Program &program, const Propagation &propagation,
                       ModuleOp original, PropagationOptions options,
                       unsigned limit) {}
