//===- CommandLine.h - What the parts of tp-run share -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_COMMANDLINE_H
#define TP_TOOLS_TP_RUN_COMMANDLINE_H

#include "tprt/Compare.h"
#include "tprt/Connection.h"
#include "tprt/File.h"
#include "tprt/Profile.h"
#include "tprt/Session.h"

#include <functional>
#include <optional>

enum ExitCode {
  Success = 0,
  BadInput = 1,
  WrongUsage = 2,
  Mismatch = 3,
  RunFailed = 4,
  Interrupted = 5
};

/// An error in the command line that shows only once the program is known.
struct UsageError : std::runtime_error {
  using runtime_error::runtime_error;
};

/// What --steps needs, and what only it uses.
struct TrainingArguments {
  int64_t steps = 0; ///< 0: no training
  std::vector<std::string> data;
  std::string tokenType;
  std::vector<std::string> tokenInputs = {"ids", "target"};
  uint64_t seed = 0;
  bool noShuffle = false, resetData = false, allowNonfinite = false;
  int64_t logEvery = 0;
  std::string checkpointDirectory, resume = "auto", metrics, lossCurve;
  int64_t checkpointEvery = 0, checkpointKeep = 0;
};

struct Options {
  std::string program;
  std::vector<std::string> inputs, outputs, expected;
  std::string weights, outputWeights, json, blocks, calibration;
  std::string trace, machine;
  bool profile = false, noPin = false;
  std::string communication = "auto";
  std::string gemm = "measure";
  int64_t processes = 0;        ///< to be started; 0: none
  std::optional<tprt::Job> job; ///< of this process, where they are
  /// What `program` names, loaded before the processes have started.
  std::shared_ptr<const tprt::Artifact> artifact;
  std::optional<int> device;
  std::optional<uint64_t> random; ///< seed of what no file gives
  bool tf32 = false, noGraphs = false;
  std::string attention = "auto";
  bool allowUnusedWeights = false, allowOutsideWeights = false;
  bool describeOnly = false, noCache = false;
  double timeout = 120;
  tprt::Tolerance tolerance;
  tprt::RunOptions run;
  TrainingArguments training;
};

std::vector<std::string> getNames(const std::vector<tprt::TensorInfo> &tensors);

/// NAME=PATH arguments by name. `kind` is "input" or "output", and `names` are
/// the program's.
std::map<std::string, std::string>
parseAssignments(const std::vector<std::string> &arguments,
                 const std::string &option, const std::string &kind,
                 const std::vector<std::string> &names, bool checkNames);

tprt::TensorMap readTensors(const std::map<std::string, std::string> &paths);

/// The tensors of --weights, or those that --random draws, checked against the
/// program's parameters: everything that is wrong in one error.
tprt::TensorMap readProgramWeights(const Options &options,
                                   const tprt::Manifest &manifest);

std::chrono::milliseconds getTimeout(const Options &options);

/// For ranks that are threads, or for one of a job's, whose connection outlives
/// the session.
tprt::SessionOptions getSessionOptions(const Options &options,
                                       const tprt::Job *job = nullptr,
                                       tprt::Connection *connection = nullptr);

/// Writes "tp-run: KIND: TEXT" to stderr, as a whole, so that the lines of
/// several ranks' processes don't mix.
void report(const std::string &kind, const std::string &text);

/// Whether report() prints in this process what others may have printed. Null:
/// always.
extern std::function<bool(const std::string &kind, const std::string &text)>
    shouldReport;

/// Says on stderr what is wrong with the file of choices, if anything is.
void noteGemmChoices(const tprt::Session &session);

/// A recording where --trace or --profile ask for one.
std::optional<tprt::Recording> makeRecording(const Options &options);

/// The profile of what was recorded, where --profile says so.
std::optional<tprt::Profile> makeProfile(const Options &options,
                                         const tprt::Manifest &manifest,
                                         const tprt::Recording *recording);

/// Adds the trace to the files that are written, where --trace says so.
void writeTrace(const Options &options, const tprt::Manifest &manifest,
                const tprt::Recording *recording,
                std::vector<tprt::OutputFile> &files);

/// Adds the path that an option gives, if it does.
void addOutput(const std::string &path, std::vector<std::string> &paths);

/// Gives the files their names: each is complete before the first appears.
void commit(std::vector<tprt::OutputFile> &files);

/// Calls `work` with what gives the session's parameters: at once, or at rank 0
/// of the job, whose ranks all call this.
void withParameters(const tprt::Session &session, tprt::Connection *connection,
                    const tprt::UseParameters &work);

/// Writes the model's parameters, not the optimizer's, where --output-weights
/// says so. All ranks of a job call it.
void writeProgramWeights(const Options &options, const tprt::Session &session,
                         tprt::Connection *connection);

#endif // TP_TOOLS_TP_RUN_COMMANDLINE_H
