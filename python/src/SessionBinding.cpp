//===- SessionBinding.cpp - Artifacts and sessions for Python -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Bindings.h"
#include "Errors.h"
#include "Session.h"
#include "Tensors.h"
#include "Transport.h"
#include "tprt/Backends.h"
#include <cmath>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::tp::python;
using tprt::SessionOptions;

/// What Python calls an artifact.
using Artifact = std::shared_ptr<const tprt::Artifact>;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// The value of an option as a T. `wanted` is what it must be.
template <typename T>
static T getValue(const std::string &name, nb::handle value,
                  const char *wanted) {
  // A bool is a number to Python.
  if (std::is_same_v<T, bool> == nb::isinstance<nb::bool_>(value))
    if (T result; nb::try_cast(value, result))
      return result;
  throw InputError("the option '" + name + "' must be " + wanted + ", found " +
                   nb::cast<std::string>(nb::repr(value)));
}

static double getSeconds(const std::string &name, nb::handle value) {
  double seconds = getValue<double>(name, value, "a number of seconds");
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9)
    throw InputError("the option '" + name +
                     "' must be 0 to 1e9 seconds, found " +
                     nb::cast<std::string>(nb::repr(value)));
  return seconds;
}

static int64_t getCount(const std::string &name, nb::handle value) {
  auto count = getValue<int64_t>(name, value, "an integer");
  if (count < 0)
    throw InputError("the option '" + name + "' must be at least 0, found " +
                     std::to_string(count));
  return count;
}

static void setBackend(SessionOptions &options, const std::string &name) {
  std::vector<std::string> usable;
  for (const tprt::Backend *each : tprt::getBackends())
    if (!each->needsProcesses)
      usable.emplace_back(each->name);
  const tprt::Backend *backend = tprt::findBackend(name);
  if (!backend)
    throw InputError("there is no backend '" + name + "'" +
                     tprt::didYouMean(name, usable) + "; backends are " +
                     tprt::quotedList(usable));
  if (backend->needsProcesses)
    throw InputError("the backend '" + name +
                     "' has one process per rank, which only tp-run starts so "
                     "far; a session's ranks are threads of one process: " +
                     tprt::quotedList(usable));
  options.backend = name;
  options.makeCommunicators = tprt::makeFactory(*backend);
}

using SetOption = void (*)(SessionOptions &, const std::string &, nb::handle);

static const std::map<std::string, SetOption> &getOptionSetters() {
  static const std::map<std::string, SetOption> setters = {
      {"backend",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         setBackend(options, getValue<std::string>(name, value, "a name"));
       }},
      {"transport",
       [](SessionOptions &options, const std::string &, nb::handle value) {
         std::shared_ptr<tprt::Transport> transport = makeTransport(value);
         options.backend = nb::cast<std::string>(value.attr("name"));
         options.makeCommunicators = tprt::makeFactory(transport);
         options.ranks = {transport->getRank()};
         // Python's main thread would raise KeyboardInterrupt in a collective.
         options.usesCaller = false;
       }},
      {"timeout",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         options.communicator.timeout = std::chrono::milliseconds(
             std::llround(1000 * getSeconds(name, value)));
       }},
      {"pin_ranks",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         options.pinRanks = getValue<bool>(name, value, "True or False");
       }},
      {"max_packed_weight_bytes",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         options.maxPackedWeightBytes = getCount(name, value);
       }},
      {"gemm_library",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         auto text = getValue<std::string>(name, value, "a name");
         options.gemm.library = tprt::parseGemmLibrary(text);
         if (!options.gemm.library)
           throw InputError("the option '" + name +
                            "' must be 'tiles', 'openblas' or 'onednn', found "
                            "'" +
                            text + "'");
       }},
      {"gemm_file",
       [](SessionOptions &options, const std::string &, nb::handle value) {
         options.gemm.file = getPath(value);
       }},
      {"gemm_seconds",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         options.gemm.maxSeconds = getSeconds(name, value);
       }},
      {"cuda_device",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         options.cuda.device = getCount(name, value);
       }},
      {"cuda_tf32",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         options.cuda.tf32 = getValue<bool>(name, value, "True or False");
       }},
      {"cuda_graphs",
       [](SessionOptions &options, const std::string &name, nb::handle value) {
         options.cuda.graphs = getValue<bool>(name, value, "True or False");
       }},
  };
  return setters;
}

static SessionOptions readOptions(const nb::dict &given) {
  SessionOptions options;
  for (auto [key, value] : given) {
    std::string name = nb::cast<std::string>(nb::str(key));
    auto found = getOptionSetters().find(name);
    if (found == getOptionSetters().end()) {
      std::vector<std::string> names;
      for (const auto &[each, set] : getOptionSetters())
        names.push_back(each);
      throw InputError("a session has no option '" + name + "'" +
                       tprt::didYouMean(name, names) + "; options are " +
                       tprt::quotedList(names));
    }
    found->second(options, name, value);
  }
  return options;
}

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

static Artifact loadArtifact(nb::handle path) {
  std::string file = getPath(path);
  nb::gil_scoped_release unlocked;
  return tprt::Artifact::load(file);
}

static void initSession(Session *self, nb::handle artifact, nb::handle weights,
                        const nb::dict &given, nb::handle blocks) {
  Artifact loaded = nb::isinstance<tprt::Artifact>(artifact)
                        ? nb::cast<Artifact>(artifact)
                        : loadArtifact(artifact);
  tprt::TensorMap tensors = readTensors(weights, "weights"),
                  shards = readTensors(blocks, "blocks");
  SessionOptions options = readOptions(given);
  nb::gil_scoped_release unlocked;
  new (self) Session(loaded, tensors, std::move(options), shards);
}

static nb::dict run(Session &self, nb::handle inputs,
                    const std::string &program,
                    const std::map<std::string, double> &pad) {
  tprt::TensorMap tensors = readTensors(inputs, "inputs");
  tprt::TensorMap outputs;
  {
    nb::gil_scoped_release unlocked;
    outputs = self.run(tensors, {program, pad});
  }
  return makeArrays(outputs);
}

static nb::tuple runFlat(Session &self, const nb::sequence &inputs,
                         const std::string &name,
                         const std::vector<size_t> &blocks) {
  const tprt::Program &program = self.getProgram(name);
  if (nb::len(inputs) != program.inputs.size())
    throw InputError("the program '" + program.name + "' has " +
                     std::to_string(program.inputs.size()) + " inputs, found " +
                     std::to_string(nb::len(inputs)));
  tprt::TensorMap tensors;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    tensors[program.inputs[i].name] =
        readTensor(nb::object(inputs[i]), program.inputs[i].name);
  std::set<std::string> kept;
  for (size_t index : blocks) {
    if (index >= program.outputs.size())
      throw InputError("the program '" + program.name + "' has no output " +
                       std::to_string(index));
    kept.insert(program.outputs[index].name);
  }
  tprt::TensorMap outputs;
  {
    nb::gil_scoped_release unlocked;
    outputs = self.run(tensors, {program.name, {}}, std::move(kept));
  }
  nb::list list;
  for (const tprt::TensorInfo &output : program.outputs)
    list.append(Array{outputs.at(output.name)});
  return nb::tuple(list);
}

static Array getParameter(Session &self, const std::string &name) {
  return {self.with(
      [&](tprt::Session &session) { return session.gatherParameter(name); })};
}

static Array getBlock(Session &self, const std::string &name) {
  return {self.with([&](tprt::Session &session) {
    if (session.getRanks().size() != 1)
      throw tprt::inputError(
          "this process runs " + std::to_string(session.getRanks().size()) +
          " ranks; a block of '" + name + "' needs a process that runs one");
    return session.getParameterBlock(name, session.getRanks().front());
  })};
}

static void setParameters(Session &self, nb::handle values, nb::handle blocks) {
  tprt::TensorMap tensors = readTensors(values, "parameters"),
                  shards = readTensors(blocks, "blocks");
  nb::gil_scoped_release unlocked;
  self.setParameters(tensors, shards);
}

void mlir::tp::python::bindSessions(nb::module_ &module) {
  using namespace nb::literals;
  using Released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<tprt::Artifact>(module, "Artifact", "Compiled programs.")
      .def(nb::new_(&loadArtifact), "path"_a)
      .def_prop_ro("path", &tprt::Artifact::getPath)
      .def_prop_ro("manifest", [](const tprt::Artifact &self) {
        return std::string(self.getManifestText());
      });
  nb::class_<tprt::CollectiveCount>(
      module, "CollectiveCount",
      "What one rank did in one collective within one run.")
      .def_ro("calls", &tprt::CollectiveCount::calls)
      .def_ro("bytes", &tprt::CollectiveCount::bytes);
  nb::class_<RunInfo>(module, "RunInfo", "What is known about a run.")
      .def_ro("program", &RunInfo::program)
      .def_ro("seconds", &RunInfo::seconds)
      .def_ro("counts", &RunInfo::counts);
  nb::class_<Session>(
      module, "Session",
      "Programs with their weights, on the ranks of this process.")
      .def("__init__", &initSession, "artifact"_a, "weights"_a = nb::dict(),
           "options"_a = nb::dict(), "blocks"_a = nb::dict())
      .def("run", &run, "inputs"_a, nb::kw_only(), "program"_a = "",
           "pad"_a = std::map<std::string, double>())
      .def("run_flat", &runFlat, "inputs"_a, "program"_a = "",
           "blocks"_a = std::vector<size_t>())
      .def_prop_ro("manifest",
                   [](const Session &self) {
                     return std::string(self.artifact->getManifestText());
                   })
      .def_prop_ro("last_run", &Session::getLastRun, Released())
      .def_prop_ro(
          "weight_bytes",
          [](Session &self) {
            return self.with([](tprt::Session &session) {
              return session.getWeightBytesByRank();
            });
          },
          Released())
      .def_prop_ro(
          "copied_weight_bytes",
          [](Session &self) {
            return self.with([](tprt::Session &session) {
              return session.getCopiedWeightBytes();
            });
          },
          Released())
      .def_prop_ro(
          "packed_weight_bytes",
          [](Session &self) {
            return self.with([](tprt::Session &session) {
              return session.getPackedWeightBytes();
            });
          },
          Released())
      .def("get_parameter", &getParameter, "name"_a, Released())
      .def("get_block", &getBlock, "name"_a, Released())
      .def("set_parameters", &setParameters, "values"_a,
           "blocks"_a = nb::dict())
      .def(
          "reset_state",
          [](Session &self) {
            self.with([](tprt::Session &session) { session.resetState(); });
          },
          Released());
}
