//===- CommandLine.cpp - Common code of tp-run's parts --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommandLine.h"

#include "Random.h"

#include "tprt/Checkpoint.h"
#include "tprt/ModelWeights.h"
#include "tprt/Npy.h"
#include "tprt/Weights.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <map>

using namespace tprt;

std::vector<std::string> getNames(const Manifest &manifest,
                                  std::vector<TensorInfo> Program::*tensors) {
  std::vector<std::string> names;
  for (const Program &program : manifest.programs)
    for (const TensorInfo &info : program.*tensors)
      if (std::find(names.begin(), names.end(), info.name) == names.end())
        names.push_back(info.name);
  return names;
}

std::map<std::string, std::string>
parseAssignments(const std::vector<std::string> &arguments,
                 const std::string &option, const std::string &kind,
                 const std::vector<std::string> &names, bool checkNames,
                 const std::string &value) {
  std::map<std::string, std::string> paths;
  for (const std::string &argument : arguments) {
    size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    std::string path =
        equals == std::string::npos ? argument : argument.substr(equals + 1);
    if (equals == std::string::npos) {
      if (names.size() != 1)
        throw UsageError(option + " " + argument + ": say for which " + kind +
                         ", NAME=" + value + ": the program has " +
                         (names.empty() ? "none" : quotedList(names)));
      name = names.front();
    }
    if (name.empty() || path.empty())
      throw UsageError(option + " " + argument + ": expected NAME=" + value);
    if (checkNames &&
        std::find(names.begin(), names.end(), name) == names.end())
      throw UsageError(option + " " + argument + ": the program has no " +
                       kind + " '" + name + "', expected " + quotedList(names) +
                       didYouMean(name, names));
    if (!paths.emplace(name, path).second)
      throw UsageError(option + ": " + kind + " '" + name + "' is given twice");
  }
  return paths;
}

ProgramQuery getQuery(const Options &options, const Manifest &manifest) {
  ProgramQuery query{options.programName, {}};
  for (const auto &[name, text] : parseAssignments(
           options.pad, "--pad", "input", getNames(manifest, &Program::inputs),
           /*checkNames=*/true, "VALUE")) {
    double value = 0;
    const char *end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end)
      throw UsageError("--pad " + name + "=" + text + ": expected a number");
    query.pad[name] = value;
  }
  return query;
}

TensorMap readTensors(const std::map<std::string, std::string> &paths) {
  TensorMap tensors;
  for (const auto &[name, path] : paths)
    tensors[name] = readNpy(path);
  return tensors;
}

/// The parameters that weights must contain.
static std::vector<std::string>
getNamesWithoutInit(const std::vector<TensorInfo> &parameters) {
  std::vector<std::string> names;
  for (const TensorInfo &info : parameters)
    if (!info.init)
      names.push_back(info.name);
  return names;
}

TensorMap readProgramWeights(const Options &options, const Manifest &manifest) {
  TensorMap weights;
  if (options.weights.empty() && !options.random) {
    std::vector<std::string> needed = getNamesWithoutInit(manifest.parameters);
    if (!needed.empty())
      throw inputError("the program has " + std::to_string(needed.size()) +
                       " parameters (" + quotedList(needed, 4) +
                       "): give the file that holds them, --weights PATH");
    return weights;
  }
  if (!options.weights.empty()) {
    ModelWeights model = readModelWeights(
        options.weights, manifest.parameters,
        {options.allowUnusedWeights, options.allowOutsideWeights});
    for (const std::string &note : model.notes)
      report("note", note);
    weights = std::move(model.tensors);
  }
  if (options.random)
    drawTensors(manifest.parameters, *options.random, /*isParameter=*/true,
                weights);
  std::string problems =
      checkTensors(manifest.parameters, weights, "weight",
                   /*allowUnused=*/false, /*convertsFloats=*/true);
  if (!problems.empty()) {
    std::string hint;
    if (std::error_code error;
        std::filesystem::is_directory(options.weights, error))
      hint = "\ntransformers renames and joins the weights of some models when "
             "it loads them; the program fits the loaded ones: tp-import "
             "MODEL --weights FILE writes them";
    throw inputError("'" + options.weights + "' doesn't fit the program:\n" +
                     problems + hint);
  }
  return weights;
}

std::chrono::milliseconds getTimeout(const Options &options) {
  return std::chrono::milliseconds(
      static_cast<int64_t>(options.timeout * 1000));
}

SessionOptions getSessionOptions(const Options &options,
                                 const Communication &communication) {
  const auto &[backend, job, connection] = communication;
  SessionOptions sessionOptions;
  sessionOptions.communicator.timeout = getTimeout(options);
  sessionOptions.communicator.checksum = options.checksum;
  sessionOptions.pinRanks = !options.noPin;
  sessionOptions.flightDirectory = options.flightDirectory;
  sessionOptions.gemm.library = parseGemmLibrary(options.gemm);
  int ownDevice = job ? static_cast<int>(job->localRank) : 0;
  sessionOptions.cuda = {
      .device = options.device.value_or(ownDevice),
      .tf32 = options.tf32,
      .graphs = !options.noGraphs,
      .attention = options.attention == "cudnn" ? AttentionLibrary::CuDnn
                   : options.attention == "own" ? AttentionLibrary::Own
                                                : AttentionLibrary::Auto};
  sessionOptions.backend = backend.name;
  sessionOptions.makeCommunicators = makeFactory(backend, connection);
  if (job)
    sessionOptions.ranks = {job->rank};
  return sessionOptions;
}

void withParameters(const Session &session, Connection *connection,
                    const UseParameters &work) {
  if (connection)
    connection->withParameters(session, work);
  else
    work([&](const std::string &name) { return session.getParameter(name); });
}

std::function<bool(const std::string &kind, const std::string &text)>
    shouldReport;

std::string messagePrefix;

int getExitCode(const std::exception &error) {
  if (dynamic_cast<const UsageError *>(&error))
    return WrongUsage;
  const auto *own = dynamic_cast<const Error *>(&error);
  return own && own->getKind() == ErrorKind::Input ? BadInput : RunFailed;
}

void report(const std::string &kind, const std::string &text) {
  if (shouldReport && !shouldReport(kind, text))
    return;
  std::cerr << "tp-run: " + kind + ": " + messagePrefix + makePrintable(text) +
                   "\n"; // at once
}

std::ostream &getTextStream(const Options &options) {
  std::vector<std::string> paths = {options.json,
                                    options.trace,
                                    options.outputWeights,
                                    options.stateOut,
                                    options.training.metrics,
                                    options.training.lossCurve};
  for (const std::string &output : options.outputs)
    paths.push_back(output.substr(output.find('=') + 1)); // npos + 1 is 0
  return std::ranges::count(paths, "-") ? std::cerr : std::cout;
}

void noteGemmChoices(const Session &session) {
  if (const std::string &note = session.getGemmChoices().note; !note.empty())
    report("note", note);
}

void writeProgramWeights(const Options &options, const Session &session,
                         Connection *connection) {
  if (options.outputWeights.empty())
    return;
  withParameters(session, connection, [&](const GetParameter &getParameter) {
    writeSafetensors(options.outputWeights,
                     collectSources(session.getManifest(), getParameter,
                                    [](const TensorInfo &info) {
                                      return !isOfOptimizer(info);
                                    }));
  });
}

TensorMap readProgramState(const Options &options, const Manifest &manifest) {
  for (const auto &[option, path] :
       {std::pair("--state-in", options.stateIn),
        std::pair("--state-out", options.stateOut)})
    if (!path.empty() && !manifest.hasState())
      throw inputError(std::string(option) +
                       ": the program updates no parameters, so it has no "
                       "state");
  return options.stateIn.empty() ? TensorMap()
                                 : readState(options.stateIn, manifest);
}

void writeProgramState(const Options &options, const Session &session,
                       Connection *connection) {
  if (options.stateOut.empty())
    return;
  withParameters(session, connection, [&](const GetParameter &getParameter) {
    writeState(options.stateOut, session.getManifest(), getParameter);
  });
}

std::optional<Recording> makeRecording(const Options &options) {
  if (options.trace.empty() && !options.profile)
    return std::nullopt;
  return Recording();
}

std::optional<Profile> makeProfile(const Options &options,
                                   const Manifest &manifest,
                                   const Recording *recording) {
  if (!options.profile)
    return std::nullopt;
  if (options.machine.empty())
    return Profile(manifest, *recording);
  Machine machine = Machine::read(options.machine);
  return Profile(manifest, *recording, &machine);
}

void writeTrace(const Options &options, const Manifest &manifest,
                const Recording *recording, std::vector<OutputFile> &files) {
  if (!options.trace.empty())
    files.emplace_back(options.trace).write(makeTrace(manifest, *recording));
}

void addOutput(const std::string &path, std::vector<std::string> &paths) {
  if (!path.empty())
    paths.push_back(path);
}

void commit(std::vector<OutputFile> &files) {
  for (OutputFile &file : files)
    file.close();
  for (OutputFile &file : files)
    file.commit();
}

/// The paths in options whose values may be NAME=FILE.
static std::vector<std::string>
listFiles(std::initializer_list<const std::vector<std::string> *> lists) {
  std::vector<std::string> paths;
  for (const auto *list : lists)
    for (const std::string &text : *list) {
      paths.push_back(text);
      paths.push_back(text.substr(text.find('=') + 1)); // npos + 1 is 0
    }
  return paths;
}

/// The weights' files, and the state's.
static std::vector<std::string> listWeights(const Options &options) {
  std::vector<std::string> paths = {options.weights, options.stateIn};
  if (!options.weights.empty()) {
    try {
      std::vector<std::string> files =
          listWeightFiles(options.weights, options.allowOutsideWeights);
      paths.insert(paths.end(), files.begin(), files.end());
    } catch (const Error &) { // reported when they are read, if ever
    }
  }
  return paths;
}

void checkAreNoInputs(const Options &options,
                      std::span<const std::string> paths) {
  std::vector<std::string> others = listFiles(
      {&options.expected, &options.training.data, &options.generation.prompts});
  others.insert(others.end(), {options.program, options.machine,
                               options.generation.tokenizer});
  const std::vector<std::string> inputs = listFiles({&options.inputs}),
                                 outputs = listFiles({&options.outputs}),
                                 weights = listWeights(options);
  const std::string &resume = options.training.resume;
  for (const std::string &path : paths) {
    if (findOpenFile(path)) // written on, not replaced
      continue;
    std::error_code error;
    auto isIn = [&](const std::vector<std::string> &files) {
      return std::any_of(files.begin(), files.end(), [&](const auto &file) {
        return std::filesystem::equivalent(file, path, error);
      });
    };
    std::filesystem::path place = std::filesystem::canonical(path, error);
    bool isInCheckpoint =
        resume != "auto" && resume != "never" &&
        std::filesystem::equivalent(place.parent_path(), resume, error);
    bool isOutput = std::count(outputs.begin(), outputs.end(), path) > 0;
    bool isWeights = path == options.outputWeights || path == options.stateOut;
    if (isInCheckpoint || isIn(others) || (!isOutput && isIn(inputs)) ||
        (!isWeights && isIn(weights)))
      throw inputError("'" + path +
                       "' is an input of this command, so no output can be "
                       "written there; give another path");
  }
}
