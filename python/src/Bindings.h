//===- Bindings.h - The parts of the extension module -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PYTHON_BINDINGS_H
#define TP_PYTHON_BINDINGS_H

#include <nanobind/nanobind.h>
#include <string>

namespace mlir::tp::python {

void bindGuards(nanobind::module_ &module);
void bindPrograms(nanobind::module_ &module);
void bindSessions(nanobind::module_ &module);

/// The path that a `str` or an `os.PathLike` is.
std::string getPath(nanobind::handle object);

} // namespace mlir::tp::python

#endif // TP_PYTHON_BINDINGS_H
