//===- ProgramBinding.cpp - Programs for Python ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Bindings.h"
#include "Program.h"
#include "Tensors.h"
#include "tp/Embedding/Programs.h"
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::tp::python;
using mlir::tp::CompileOptions;

/// The memory of a `str` or `bytes`.
static std::string_view getBytes(nb::handle object, const std::string &what) {
  if (nb::isinstance<nb::bytes>(object)) {
    auto bytes = nb::borrow<nb::bytes>(object);
    return {bytes.c_str(), bytes.size()};
  }
  if (nb::isinstance<nb::str>(object))
    return nb::cast<std::string_view>(object);
  throw InputError(
      what + " must be of type 'str' or 'bytes', not '" +
      nb::cast<std::string>(nb::str(object.type().attr("__name__"))) + "'");
}

static Files getFiles(const nb::dict &dictionary) {
  Files files;
  for (auto [name, text] : dictionary) {
    std::string key = nb::cast<std::string>(name);
    files[key] = getBytes(text, "the file '" + key + "'");
  }
  return files;
}

static std::unique_ptr<Program> parse(nb::handle source,
                                      const std::string &name) {
  std::string_view bytes = getBytes(source, "the source");
  nb::gil_scoped_release unlocked;
  return Program::parse(bytes, name);
}

static std::unique_ptr<Program> parallelize(const Program &self,
                                            const Options &options,
                                            const nb::dict &dictionary) {
  Files files = getFiles(dictionary);
  nb::gil_scoped_release unlocked;
  return self.parallelize(options, files);
}

static std::map<std::string, std::string>
runPasses(Program &self, const std::string &pipeline,
          const nb::dict &dictionary, const std::vector<std::string> &outputs) {
  Files files = getFiles(dictionary);
  nb::gil_scoped_release unlocked;
  return self.runPipeline(pipeline, files, outputs);
}

static CompileOptions makeOptions(const std::string &cpu, unsigned optLevel,
                                  const std::string &target) {
  CompileOptions options;
  options.targetCPU = cpu;
  options.optLevel = optLevel;
  options.target = target;
  return options;
}

static std::vector<Message>
compilePrograms(const std::vector<std::pair<std::string, const Program *>> &all,
                nb::handle path, const std::string &cpu, unsigned optLevel,
                const std::string &target) {
  std::string file = getPath(path);
  std::vector<Program::Named> programs;
  for (const auto &[name, program] : all)
    programs.push_back({name, program});
  nb::gil_scoped_release unlocked;
  return Program::compile(programs, makeOptions(cpu, optLevel, target), file);
}

/// Imports in the extension that depends on LibTorch, whose result is the
/// program as bytecode, its notes and its weights.
static std::unique_ptr<Program>
importProgram(nb::handle source, bool weights,
              const std::vector<std::string> &inputs, nb::handle signature,
              const std::optional<std::string> &name,
              const std::vector<std::string> &without) {
  nb::object importer =
      nb::module_::import_("tp_mlir._torch").attr("load_importer")();
  std::string given = signature.is_none() ? "" : getPath(signature);
  bool isInMemory = nb::isinstance<nb::bytes>(source);
  nb::object archive =
      isInMemory ? nb::borrow(source) : nb::cast(getPath(source));
  std::string called = name         ? *name
                       : isInMemory ? "<bytes>"
                                    : nb::cast<std::string>(archive);
  nb::object result;
  try {
    result = importer.attr("read")(archive, called, inputs, given, weights,
                                   nb::set(nb::cast(without)));
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_ValueError))
      throw;
    nb::object text = nb::str(error.value());
    throw InputError(nb::cast<std::string>(text));
  }
  auto bytecode = nb::cast<nb::bytes>(result[0]);
  std::unique_ptr<Program> program = parse(bytecode, called);
  program->notes = nb::cast<std::string>(result[1]);
  program->weights = std::make_shared<tprt::TensorMap>(
      readTensors(nb::object(result[2]), "weights"));
  program->weightNames = nb::cast<std::vector<std::string>>(result[3]);
  return program;
}

void mlir::tp::python::bindPrograms(nb::module_ &module) {
  using namespace nb::literals;
  using Released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Program>(
      module, "Program",
      "A module of MLIR, with the weights that were imported with it.")
      .def_static("parse", &parse, "text"_a, "name"_a = "<string>")
      .def_prop_ro(
          "weights",
          [](const Program &self) { return makeArrays(*self.weights); })
      .def_ro("weight_names", &Program::weightNames)
      .def_ro("notes", &Program::notes)
      .def_ro("diagnostics", &Program::messages)
      .def("text", &Program::print, nb::kw_only(), "locations"_a = false,
           Released())
      .def("bytecode",
           [](const Program &self) {
             std::string bytes;
             {
               nb::gil_scoped_release unlocked;
               bytes = self.writeBytecode();
             }
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("clone", &Program::clone, Released())
      .def("parallelize", &parallelize, "options"_a = Options(), nb::kw_only(),
           "files"_a = nb::dict())
      .def("run_pipeline", &runPasses, "pipeline"_a, nb::kw_only(),
           "files"_a = nb::dict(), "outputs"_a = std::vector<std::string>())
      .def("report", &Program::getReport, Released())
      .def(
          "compile",
          [](const Program &self, nb::handle path, const std::string &cpu,
             unsigned optLevel, const std::string &target,
             const std::string &name) {
            return compilePrograms({{name, &self}}, path, cpu, optLevel,
                                   target);
          },
          "path"_a, nb::kw_only(), "cpu"_a = "native", "opt_level"_a = 3,
          "target"_a = "", "name"_a = "main");
  module.def(
      "report_page",
      [](const std::string &report, const std::string &explanation,
         const std::string &trace, const std::string &alternatives,
         const std::string &scaling) {
        auto page =
            mlir::tp::getReportPage(report, {{"explanation", explanation},
                                             {"trace", trace},
                                             {"alternatives", alternatives},
                                             {"scaling", scaling}});
        if (!page)
          throw InputError(llvm::toString(page.takeError()));
        return *page;
      },
      "report"_a, "explanation"_a = "", "trace"_a = "", "alternatives"_a = "",
      "scaling"_a = "", Released());
  module.def("compile_programs", &compilePrograms, "programs"_a, "path"_a,
             nb::kw_only(), "cpu"_a = "native", "opt_level"_a = 3,
             "target"_a = "");
  module.def("import_program", &importProgram, "source"_a, "weights"_a = true,
             nb::kw_only(), "inputs"_a = std::vector<std::string>(),
             "signature"_a = nb::none(), "name"_a = nb::none(),
             "without"_a = std::vector<std::string>());
}
