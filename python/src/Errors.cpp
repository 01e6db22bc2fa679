//===- Errors.cpp - The package's exceptions ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Errors.h"
#include "tprt/Error.h"
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

namespace nb = nanobind;
using namespace mlir::tp::python;

static std::string joinErrors(const std::vector<Message> &messages) {
  std::string all;
  for (const Message &message : messages)
    if (message.severity == std::string_view("error"))
      all += (all.empty() ? "" : "\n") + message.format();
  return all.empty() ? "the compiler failed without a message" : all;
}

CompileError::CompileError(std::vector<Message> messages,
                           std::map<std::string, std::string> outputs)
    : std::runtime_error(joinErrors(messages)), messages(std::move(messages)),
      outputs(std::move(outputs)) {}

void mlir::tp::python::checkProcess(int owner, const char *what) {
  if (owner != getpid())
    throw tprt::executionError(std::string("this ") + what +
                               " was made by process " + std::to_string(owner) +
                               ", of which this process is a fork; make a " +
                               what + " in this process");
}

namespace {
/// The Python classes, which live as long as the interpreter.
struct Classes {
  PyObject *compile, *input, *execution, *aborted;
};
} // namespace

static Classes classes;

bool mlir::tp::python::isAborted(const nb::python_error &error) {
  return error.matches(classes.aborted);
}

static nb::object makeClass(nb::module_ &module, const char *name,
                            const char *text, nb::handle bases) {
  std::string qualified =
      nb::cast<std::string>(module.attr("__name__")) + "." + name;
  nb::object made = nb::steal(
      PyErr_NewExceptionWithDoc(qualified.c_str(), text, bases.ptr(), nullptr));
  if (!made.is_valid())
    nb::raise_python_error();
  module.attr(name) = made;
  return made;
}

/// Sets the Python exception for a C++ exception of the classes above.
static void translate(const std::exception_ptr &thrown, void *) {
  // An interrupt also ends what a call waits for, such as the linker. Then the
  // interrupt is what the user has to know.
  if (PyErr_CheckSignals() != 0)
    return;
  try {
    std::rethrow_exception(thrown);
  } catch (const CompileError &error) {
    nb::object object = nb::handle(classes.compile)(error.what());
    object.attr("diagnostics") = nb::cast(error.messages);
    object.attr("outputs") = nb::cast(error.outputs);
    PyErr_SetObject(classes.compile, object.ptr());
  } catch (const InputError &error) {
    PyErr_SetString(classes.input, error.what());
  } catch (const tprt::Error &error) {
    PyErr_SetString(error.getKind() == tprt::ErrorKind::Input
                        ? classes.input
                        : classes.execution,
                    error.what());
  }
}

void mlir::tp::python::bindErrors(nb::module_ &module) {
  nb::class_<Message>(module, "Diagnostic", "A message of the compiler.")
      .def_prop_ro("severity",
                   [](const Message &self) { return self.severity; })
      .def_ro("location", &Message::location)
      .def_prop_ro("file",
                   [](const Message &self) -> std::optional<std::string> {
                     if (!self.place)
                       return std::nullopt;
                     return self.place->file;
                   })
      .def_prop_ro("line",
                   [](const Message &self) -> std::optional<unsigned> {
                     if (!self.place)
                       return std::nullopt;
                     return self.place->line;
                   })
      .def_prop_ro("column",
                   [](const Message &self) -> std::optional<unsigned> {
                     if (!self.place)
                       return std::nullopt;
                     return self.place->column;
                   })
      .def_ro("message", &Message::text)
      .def_ro("notes", &Message::notes)
      .def("__str__", &Message::format)
      .def("__repr__", [](const Message &self) {
        return "<Diagnostic " + self.format() + ">";
      });

  nb::object base = makeClass(module, "Error", "The base of the errors below.",
                              PyExc_RuntimeError);
  nb::object compile = makeClass(
      module, "CompileError", "A program, a plan or an option is wrong.", base);
  compile.attr("diagnostics") = nb::tuple();
  compile.attr("outputs") = nb::dict();
  nb::object input =
      makeClass(module, "InputError", "A file, a weight or an input is wrong.",
                nb::make_tuple(base, nb::handle(PyExc_ValueError)));
  nb::object execution =
      makeClass(module, "ExecutionError",
                "A rank failed, or the ranks made no progress.", base);
  nb::object aborted =
      makeClass(module, "AbortedError",
                "Raised by a transport: another rank has failed.", execution);
  classes = {compile.release().ptr(), input.release().ptr(),
             execution.release().ptr(), aborted.release().ptr()};
  nb::register_exception_translator(translate, nullptr);
}
