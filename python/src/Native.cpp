//===- Native.cpp - The extension module ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Bindings.h"
#include "Errors.h"
#include "Tensors.h"
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlir::tp::python;

std::string mlir::tp::python::getPath(nb::handle object) {
  nb::object path = nb::module_::import_("os").attr("fsencode")(object);
  auto bytes = nb::cast<nb::bytes>(path);
  std::string text(bytes.c_str(), bytes.size());
  if (text.find('\0') != std::string::npos)
    throw InputError("the path '" + text.substr(0, text.find('\0')) +
                     "' has a null character");
  return text;
}

NB_MODULE(_native, module) {
  module.doc() = "The compiler and the runtime, in this process.";
  // When Python ends, modules that users have at global scope still hold objects.
  nb::set_leak_warnings(false);
  module.attr("__version__") = TP_MLIR_VERSION;
  bindErrors(module);
  bindTensors(module);
  bindGuards(module);
  bindPrograms(module);
  bindSessions(module);
}
