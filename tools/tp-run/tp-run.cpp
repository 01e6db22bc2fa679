//===- tp-run.cpp - Run a compiled program on its ranks ------------------===//

#include "Cache.h"
#include "tprt/Calibrate.h"
#include "tprt/Compare.h"
#include "tprt/Npy.h"
#include "tprt/Report.h"
#include "tprt/Safetensors.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <iostream>

using namespace tprt;

namespace {

enum ExitCode {
  Success = 0,
  BadInput = 1,
  WrongUsage = 2,
  Mismatch = 3,
  RunFailed = 4
};

/// An error in the command line that shows only once the program is known.
struct UsageError : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Options {
  std::string program;
  std::vector<std::string> inputs, outputs, expected;
  std::string weights, json, blocks, calibration;
  bool allowUnusedWeights = false, describeOnly = false, noCache = false;
  double timeout = 120;
  Tolerance tolerance;
  RunOptions run;
};

} // namespace

static constexpr const char *footer = R"(
NAME=PATH: the NAME= may be left out where the program has one input or output.
Files of inputs, outputs and expected outputs are .npy (bf16: '<V2', inputs and
expected outputs also as f4, which is rounded or compared as it is).

Exit codes:
  0  success
  1  bad input: a file is missing, malformed, or doesn't fit the program
  2  wrong usage
  3  an output differs from what --expect wants (outputs are written all the same)
  4  a rank failed, or the ranks made no progress

Examples:
  tp-run model.tpx --weights model.safetensors --input ids=ids.npy --output y.npy
  tp-run model.tpx --weights model.safetensors --input ids=ids.npy
      --expect y_ref.npy --rtol 1e-4 --atol 1e-5
  tp-run ranks.mlir --weights model.safetensors --input ids=ids.npy
      --warmup 3 --repeat 20 --json -
  tp-run model.tpx --describe
  tp-run --calibrate machine.json
)";

static std::vector<std::string>
getNames(const std::vector<TensorInfo> &tensors) {
  std::vector<std::string> names;
  for (const TensorInfo &info : tensors)
    names.push_back(info.name);
  return names;
}

/// NAME=PATH arguments by name. `kind` is "input" or "output", and `names` are
/// the program's.
static std::map<std::string, std::string>
parseAssignments(const std::vector<std::string> &arguments,
                 const std::string &option, const std::string &kind,
                 const std::vector<std::string> &names, bool checkNames) {
  std::map<std::string, std::string> paths;
  for (const std::string &argument : arguments) {
    size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    std::string path =
        equals == std::string::npos ? argument : argument.substr(equals + 1);
    if (equals == std::string::npos) {
      if (names.size() != 1)
        throw UsageError(option + " " + argument + ": say for which " + kind +
                         ", NAME=PATH: the program has " +
                         (names.empty() ? "none" : quotedList(names)));
      name = names.front();
    }
    if (name.empty() || path.empty())
      throw UsageError(option + " " + argument + ": expected NAME=PATH");
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

static TensorMap readTensors(const std::map<std::string, std::string> &paths) {
  TensorMap tensors;
  for (const auto &[name, path] : paths)
    tensors[name] = readNpy(path);
  return tensors;
}

/// The file's tensors, checked against the program's parameters: everything
/// that is wrong in one error.
static TensorMap readWeights(const Options &options, const Manifest &manifest) {
  TensorMap weights;
  std::string problems;
  if (!options.weights.empty()) {
    std::vector<std::string> names = getNames(manifest.parameters);
    Safetensors file = Safetensors::open(options.weights);
    for (const auto &[name, entry] : file.getEntries()) {
      bool isUsed = std::find(names.begin(), names.end(), name) != names.end();
      if (!entry.isSupported && isUsed)
        throw inputError("'" + options.weights + "': weight '" + name +
                         "' has type " + entry.dtypeName +
                         ", which programs don't compute with");
      if (isUsed || !options.allowUnusedWeights)
        weights[name] = entry.tensor;
    }
    problems = checkTensors(manifest.parameters, weights, "weight", false);
    if (!problems.empty())
      throw inputError("'" + options.weights + "' doesn't fit the program:\n" +
                       problems);
  } else if (!manifest.parameters.empty()) {
    throw inputError(
        "the program has " + std::to_string(manifest.parameters.size()) +
        " parameters (" + quotedList(getNames(manifest.parameters), 4) +
        "): give the file that holds them, --weights PATH");
  }
  return weights;
}

static std::string toString(const Shape &index) {
  std::string text = "[";
  for (size_t d = 0; d < index.size(); ++d)
    text += (d ? ", " : "") + std::to_string(index[d]);
  return text + "]";
}

static std::string formatNumber(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

/// The first elements of each output, for a look.
static void printOutputs(const TensorMap &outputs) {
  constexpr int64_t shown = 6;
  for (const auto &[name, tensor] : outputs) {
    std::cout << name << ": " << tensor.getTypeString() << " = [";
    int64_t count = tensor.getNumElements();
    for (int64_t i = 0; i < std::min(count, shown); ++i)
      std::cout << (i ? ", " : "")
                << formatNumber(
                       loadAsDouble(tensor.dtype, tensor.data.get(), i));
    std::cout << (count > shown ? ", …]" : "]") << "\n";
  }
}

/// Compares one output; says how it went and returns whether it matches.
static bool compareOutput(const std::string &name, const Tensor &got,
                          const Tensor &expected, const std::string &path,
                          const Options &options) {
  Comparison comparison;
  try {
    comparison = compare(got, expected, options.tolerance);
  } catch (const Error &error) {
    throw inputError("output '" + name + "' " + error.what() + " of '" + path +
                     "'");
  }
  std::string limits = "rtol " + formatNumber(options.tolerance.relative) +
                       ", atol " + formatNumber(options.tolerance.absolute);
  if (comparison.matches()) {
    (options.json == "-" ? std::cerr : std::cout)
        << "output '" << name << "' matches '" << path
        << "': largest difference " << formatNumber(comparison.maxAbsolute)
        << " (" << limits << ")\n";
    return true;
  }
  std::cerr << "tp-run: error: output '" << name << "' differs from '" << path
            << "' in " << comparison.numDifferent << " of "
            << comparison.numElements << " elements (" << limits
            << "); the largest differences:\n";
  for (const Difference &difference : comparison.largest)
    std::cerr << "  " << toString(difference.index) << ": got "
              << formatNumber(difference.got) << ", expected "
              << formatNumber(difference.expected) << ", difference "
              << formatNumber(std::abs(difference.got - difference.expected))
              << "\n";
  return false;
}

/// Writes every rank's own blocks of the outputs as DIRECTORY/NAME.RANK.npy.
static void writeBlocks(const std::string &directory,
                        const std::vector<TensorMap> &blocks,
                        std::vector<OutputFile> &files) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw inputError("cannot create directory '" + directory +
                     "': " + error.message());
  for (size_t rank = 0; rank < blocks.size(); ++rank)
    for (const auto &[name, tensor] : blocks[rank])
      writeNpy(files.emplace_back(directory + "/" + name + "." +
                                  std::to_string(rank) + ".npy"),
               tensor);
}

static ExitCode run(const Options &options) {
  std::shared_ptr<const Artifact> artifact =
      loadProgram(options.program, !options.noCache);
  const Manifest &manifest = artifact->getManifest();
  std::vector<std::string> outputNames = getNames(manifest.outputs);
  auto inputPaths = parseAssignments(options.inputs, "--input", "input",
                                     getNames(manifest.inputs), false);
  auto outputPaths = parseAssignments(options.outputs, "--output", "output",
                                      outputNames, true);
  auto expectedPaths = parseAssignments(options.expected, "--expect", "output",
                                        outputNames, true);

  for (const std::string &name : outputNames)
    if (!options.blocks.empty() && name.find('/') != std::string::npos)
      throw inputError("--blocks: output '" + name +
                       "' can't be the name of a file");

  TensorMap expected = readTensors(expectedPaths);
  TensorMap inputs = readTensors(inputPaths);
  std::string problems =
      checkTensors(manifest.inputs, inputs, "input", /*allowUnused=*/false);
  if (!problems.empty())
    throw inputError(problems);
  TensorMap weights = readWeights(options, manifest);
  SessionOptions sessionOptions;
  sessionOptions.communicator.timeout =
      std::chrono::milliseconds(static_cast<int64_t>(options.timeout * 1000));
  Session session(artifact, weights, sessionOptions);
  RunOptions runOptions = options.run;
  runOptions.keepBlocks = !options.blocks.empty();
  RunResult result = session.run(inputs, runOptions);

  bool matches = true;
  for (const auto &[name, path] : expectedPaths)
    matches &= compareOutput(name, result.outputs.at(name), expected.at(name),
                             path, options);
  // Every file is complete before the first appears.
  std::vector<OutputFile> files;
  for (const auto &[name, path] : outputPaths)
    writeNpy(files.emplace_back(path), result.outputs.at(name));
  if (!options.blocks.empty())
    writeBlocks(options.blocks, result.blocks, files);
  if (!options.json.empty()) {
    std::string report =
        makeRunReport(options.program, session, result, options.run);
    if (options.json == "-")
      std::cout << report;
    else
      files.emplace_back(options.json).write(report);
  }
  for (OutputFile &file : files)
    file.commit();
  if (options.outputs.empty() && options.expected.empty() &&
      options.json.empty() && options.blocks.empty())
    printOutputs(result.outputs);
  return matches ? Success : Mismatch;
}

static ExitCode describeProgram(const Options &options) {
  if (isArtifact(options.program))
    std::cout << describe(readManifest(options.program));
  else
    std::cout << describe(
        loadProgram(options.program, !options.noCache)->getManifest());
  return Success;
}

static ExitCode calibrateMachine(const Options &options) {
  OutputFile file(options.calibration);
  file.write(calibrate());
  file.commit();
  return Success;
}

static void declareOptions(CLI::App &app, Options &options) {
  app.footer(footer);
  app.set_version_flag("--version", "tp-run " + std::string(getVersion()) +
                                        " (artifact version " +
                                        std::to_string(TPRT_ABI_VERSION) + ")");
  app.add_option("program", options.program,
                 "artifact (.tpx) of tp-compile, or per-rank IR, which is "
                 "compiled on the way and cached");
  app.add_option("--weights", options.weights,
                 "safetensors file with the program's parameters")
      ->type_name("PATH");
  app.add_option("--input", options.inputs, "input from a .npy file")
      ->type_name("NAME=PATH")
      ->allow_extra_args(false);
  app.add_option("--output", options.outputs,
                 "write an output to a .npy file; without --output, --blocks, "
                 "--expect and --json the first elements are printed")
      ->type_name("[NAME=]PATH")
      ->allow_extra_args(false);
  app.add_option("--blocks", options.blocks,
                 "write each rank's own block of every output to "
                 "DIRECTORY/NAME.RANK.npy")
      ->type_name("DIRECTORY");
  app.add_option("--expect", options.expected,
                 "compare an output with a .npy file")
      ->type_name("[NAME=]PATH")
      ->allow_extra_args(false);
  app.add_option("--rtol", options.tolerance.relative,
                 "relative tolerance of --expect")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--atol", options.tolerance.absolute,
                 "absolute tolerance of --expect")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--json", options.json,
                 "write the run's report (bytes, calls, seconds) to a file, or "
                 "to stdout for '-'")
      ->type_name("PATH");
  app.add_option("--repeat", options.run.repeat, "measured runs")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--warmup", options.run.warmup,
                 "runs before the measured ones")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 40))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--timeout", options.timeout,
                 "seconds that a rank may wait for the others; 0: forever")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag(
      "--allow-unused-weights", options.allowUnusedWeights,
      "accept tensors in the weights file that the program doesn't use");
  app.add_flag("--describe,--list", options.describeOnly,
               "print the program's inputs, parameters, outputs and "
               "collectives, and don't run it");
  app.add_option("--calibrate", options.calibration,
                 "measure this machine, and write a description for 'machine=' "
                 "of tp-opt; takes some seconds and no program")
      ->type_name("PATH");
  app.add_flag("--no-cache", options.noCache,
               "compile IR anew, and don't keep the result");
}

int main(int argc, char **argv) {
  CLI::App app("Runs a compiled tensor-parallel program, one thread per rank",
               "tp-run");
  Options options;
  declareOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &information) { // --help, --version
    return app.exit(information);
  } catch (const CLI::ParseError &error) {
    std::cerr << "tp-run: error: " << error.what()
              << "\nrun 'tp-run --help' for the options\n";
    return WrongUsage;
  }
  if (options.program.empty() == options.calibration.empty()) {
    std::cerr << "tp-run: error: "
              << (options.program.empty() ? "program is required"
                                          : "--calibrate takes no program")
              << "\nrun 'tp-run --help' for the options\n";
    return WrongUsage;
  }
  try {
    if (!options.calibration.empty())
      return calibrateMachine(options);
    return options.describeOnly ? describeProgram(options) : run(options);
  } catch (const UsageError &error) {
    std::cerr << "tp-run: error: " << error.what() << "\n";
    return WrongUsage;
  } catch (const Error &error) {
    std::cerr << "tp-run: error: " << error.what() << "\n";
    return error.getKind() == ErrorKind::Input ? BadInput : RunFailed;
  } catch (const std::exception &error) {
    std::cerr << "tp-run: error: " << error.what() << "\n";
    return RunFailed;
  }
}
