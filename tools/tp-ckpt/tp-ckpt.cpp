//===- tp-ckpt.cpp - Care of checkpoints ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../StandardStreams.h"
#include "../Usage.h"
#include "tprt/Checkpoint.h"
#include "tprt/File.h"
#include "tprt/Report.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <thread>

using namespace tprt;
namespace fs = std::filesystem;

namespace {

enum ExitCode { Success = 0, BadInput = 1, WrongUsage = 2, Failed = 4 };

struct Options {
  std::string input, output;
  std::vector<std::string> checkpoints;
  uint64_t maxBytes = 0;
  bool withOptimizer = false, allowOutsideWeights = false;
};

} // namespace

static constexpr const char *footer = R"(
Exit codes:
  0  success
  1  damaged checkpoint, or bad input: a file is missing or malformed
  2  wrong usage
  4  not enough memory

Examples:
  tp-ckpt list run
  tp-ckpt verify run/step-00000100
  tp-ckpt merge run/step-00000100 -o model.safetensors
  tp-ckpt split model.safetensors --max-bytes 100MB -o model
)";

/// "1.5 MB".
static std::string formatBytes(double bytes) {
  static constexpr const char *units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit)
    bytes /= 1000;
  char text[32];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", bytes,
                units[unit]);
  return text;
}

static std::string describeMesh(const Checkpoint &checkpoint) {
  std::string text;
  for (const MeshAxis &axis : checkpoint.axes)
    text += (text.empty() ? "" : " x ") + axis.name + "=" +
            std::to_string(axis.size);
  return text.empty() ? "1 rank" : text;
}

static ExitCode list(const Options &options) {
  CheckpointList found = listCheckpoints(options.input);
  for (const Checkpoint &checkpoint : found.complete)
    std::cout << makePrintable(checkpoint.path) << "  step " << checkpoint.step
              << "  " << formatBytes(checkpoint.getNumBytes()) << "  mesh "
              << describeMesh(checkpoint) << "\n";
  for (const auto &[path, problem] : found.broken)
    std::cout << makePrintable(path) << "  broken: " << makePrintable(problem)
              << "\n";
  if (found.complete.empty() && found.broken.empty())
    std::cout << "no checkpoints in '" << makePrintable(options.input) << "'\n";
  return Success;
}

static ExitCode verify(const Options &options) {
  ExitCode code = Success;
  for (const std::string &path : options.checkpoints) {
    std::vector<std::string> problems;
    std::string summary;
    try {
      Checkpoint checkpoint = readCheckpoint(path);
      problems = verifyCheckpoint(checkpoint);
      summary = "step " + std::to_string(checkpoint.step) + ", " +
                std::to_string(checkpoint.files.size()) + " files, " +
                formatBytes(checkpoint.getNumBytes());
      if (problems.empty())
        summary += ", " +
                   std::to_string(readCheckpointTensors(checkpoint).size()) +
                   " tensors";
    } catch (const Error &error) {
      problems.push_back(error.what());
    }
    for (const std::string &problem : problems)
      std::cerr << "tp-ckpt: error: " << makePrintable(problem) << "\n";
    if (problems.empty())
      std::cout << makePrintable(path) << ": complete (" << summary << ")\n";
    else
      code = BadInput;
  }
  return code;
}

static std::vector<TensorSource>
makeSources(const std::map<std::string, SafetensorsEntry> &tensors) {
  std::vector<TensorSource> sources;
  for (const auto &[name, entry] : tensors)
    sources.push_back(makeSource(name, entry));
  return sources;
}

static ExitCode merge(const Options &options) {
  bool isCheckpoint = fs::exists(options.input + "/checkpoint.json");
  std::map<std::string, SafetensorsEntry> tensors;
  if (isCheckpoint) {
    Checkpoint checkpoint = readCheckpoint(options.input);
    std::vector<std::string> problems = verifyCheckpoint(checkpoint);
    if (!problems.empty())
      throw inputError(problems.front());
    tensors = readCheckpointTensors(checkpoint, true, options.withOptimizer);
  } else {
    if (options.withOptimizer)
      throw inputError("'" + options.input +
                       "' is not a checkpoint: it has no optimizer's state");
    tensors = readWeights(options.input, options.allowOutsideWeights);
  }
  WrittenFile written = writeSafetensors(options.output, makeSources(tensors));
  (options.output == "-" ? std::cerr : std::cout)
      << options.output << ": " << tensors.size() << " tensors, "
      << formatBytes(written.numBytes) << "\n";
  return Success;
}

static ExitCode split(const Options &options) {
  std::map<std::string, SafetensorsEntry> tensors =
      readWeights(options.input, options.allowOutsideWeights);
  NewDirectory directory(options.output);
  // Shards of another split in this directory would be mistaken for this one's.
  if (!fs::is_empty(options.output))
    throw inputError("directory '" + options.output +
                     "' is not empty: give a new one");
  auto files = distributeByBytes(makeSources(tensors), options.maxBytes);
  try {
    writeShardedSafetensors(options.output, "model", files,
                            std::thread::hardware_concurrency());
  } catch (const Error &) { // shards without an index aren't a checkpoint
    std::error_code ignored;
    for (const fs::directory_entry &shard :
         fs::directory_iterator(options.output, ignored))
      fs::remove(shard.path(), ignored);
    throw;
  }
  std::cout << options.output << ": " << tensors.size() << " tensors in "
            << files.size() << (files.size() == 1 ? " file\n" : " files\n");
  return Success;
}

/// Checks a number without unit. Returns an error, or an empty string if it is
/// a number of bytes.
static std::string isByteCount(const std::string &text) {
  int64_t bytes = 0;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, bytes);
  if (error == std::errc() && end == last && bytes > 0)
    return {};
  return "expected 1 to " + std::to_string(INT64_MAX) + " bytes, found '" +
         makePrintable(text, /*maxLine=*/40, /*maxLines=*/1) + "'";
}

/// "there is no command 'foo'" if a word is in a command's position.
static std::string describeUnknownCommand(const CLI::App &app,
                                          const std::string &word) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands({}))
    names.push_back(command->get_name());
  if (word.starts_with("-") || std::ranges::count(names, word))
    return "";
  return "there is no command '" + makePrintable(word) + "'" +
         didYouMean(word, names);
}

static int runTool(int argc, char **argv) {
  CLI::App app("Lists, verifies, merges and splits checkpoints of tp-run, and "
               "other models in safetensors files",
               "tp-ckpt");
  app.footer(footer);
  app.set_version_flag("--version", "tp-ckpt " + std::string(getVersion()));
  app.require_subcommand(1);
  Options options;
  ExitCode (*command)(const Options &) = nullptr;
  auto add = [&](const char *name, const char *description,
                 ExitCode (*run)(const Options &)) {
    CLI::App *subcommand = app.add_subcommand(name, description);
    subcommand->callback([&command, run] { command = run; });
    return subcommand;
  };

  add("list", "list a directory's checkpoints, one line each", list)
      ->add_option("directory", options.input, "what --checkpoint-dir named")
      ->required();
  add("verify",
      "check every file's size and checksum, and that each tensor is readable",
      verify)
      ->add_option("checkpoint", options.checkpoints,
                   "directories of checkpoints, D/step-N")
      ->required();
  CLI::App *merging =
      add("merge", "write a checkpoint's tensors to one file", merge);
  merging
      ->add_option("checkpoint", options.input,
                   "checkpoint, or another model's index or directory")
      ->required();
  merging
      ->add_option("-o,--output", options.output,
                   "safetensors file; '-' is stdout")
      ->type_name("PATH")
      ->required();
  merging->add_flag("--with-optimizer", options.withOptimizer,
                    "the optimizer's state too");
  CLI::App *splitting =
      add("split",
          "write a model as files of bounded size, with Hugging Face's index",
          split);
  splitting
      ->add_option("model", options.input,
                   "safetensors file, index, or directory with one")
      ->required();
  splitting
      ->add_option("--max-bytes", options.maxBytes,
                   "tensors in one file, in bytes, or with kB, MB, GB (powers "
                   "of 1000) or KiB, MiB, GiB (of 1024)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->check(isByteCount)
      ->type_name("SIZE")
      ->required();
  splitting
      ->add_option("-o,--output", options.output, "directory, made if need be")
      ->check(isDirectoryName)
      ->type_name("DIRECTORY")
      ->required();
  for (CLI::App *subcommand : {merging, splitting})
    subcommand->add_flag(
        "--allow-outside-weights", options.allowOutsideWeights,
        "accept an index whose files lie outside of its directory");

  try {
    ExitCode code = Success;
    try {
      app.parse(argc, argv);
      refuseEmptyValues(app);
      code = command(options);
    } catch (const CLI::Success &information) { // --help, --version
      app.exit(information);
    }
    closeStandardOutput();
    return code;
  } catch (const CLI::ParseError &error) {
    std::string unknown =
        argc > 1 ? describeUnknownCommand(app, argv[1]) : std::string();
    std::cerr << "tp-ckpt: error: "
              << (unknown.empty() ? error.what() + suggestOptions(app)
                                  : unknown)
              << "\nrun 'tp-ckpt --help' for the options\n";
    return WrongUsage;
  } catch (const Error &error) {
    std::cerr << "tp-ckpt: error: " << makePrintable(error.what()) << "\n";
    return error.getKind() == ErrorKind::Input ? BadInput : Failed;
  } catch (const std::exception &error) {
    std::cerr << "tp-ckpt: error: " << makePrintable(error.what()) << "\n";
    return Failed;
  }
}

int main(int argc, char **argv) {
  reserveStandardStreams();
  reportLostPages("tp-ckpt", BadInput);
  leave(runTool(argc, argv));
}
