//===- Transport.h - Ranks that are processes of Python ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PYTHON_TRANSPORT_H
#define TP_PYTHON_TRANSPORT_H

#include "tprt/Transport.h"
#include <nanobind/nanobind.h>

namespace mlir::tp::python {

/// The transport that a Python object is, of the protocol `Transport` in
/// _native.pyi. The GIL is held only in its calls.
std::shared_ptr<tprt::Transport> makeTransport(nanobind::handle object);

} // namespace mlir::tp::python

#endif // TP_PYTHON_TRANSPORT_H
