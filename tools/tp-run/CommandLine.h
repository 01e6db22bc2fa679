//===- CommandLine.h - Common code of tp-run's parts ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_COMMANDLINE_H
#define TP_TOOLS_TP_RUN_COMMANDLINE_H

#include "tprt/Backends.h"
#include "tprt/Compare.h"
#include "tprt/Connection.h"
#include "tprt/File.h"
#include "tprt/Generator.h"
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

/// An error in the command line that is only found once the program is known.
struct UsageError : std::runtime_error {
  using runtime_error::runtime_error;
};

/// The options that --steps needs, and those that only it uses.
struct TrainingArguments {
  int64_t steps = 0; ///< 0: no training
  std::vector<std::string> data;
  std::string tokenType;
  std::vector<std::string> tokenInputs = {"ids", "target"};
  uint64_t seed = 0;
  bool noShuffle = false, resetData = false, allowNonfinite = false;
  int64_t logEvery = 0;
  std::string checkpointDirectory, resume = "auto", metrics, lossCurve, html,
                                   tensorboard;
  int64_t checkpointEvery = 0, checkpointKeep = 0;
  bool checkpointAsync = false;
  int64_t checkReplicasEvery = 0; ///< 0: never
  int64_t numRestarts = 0;
};

/// The options of --generate.
struct GenerationArguments {
  bool isWanted = false;
  std::vector<std::string> prompts; ///< files of ids
  std::vector<std::string> texts;   ///< prompts as text, for the tokenizer
  std::string tokenizer;
  int64_t cacheSize = 0; ///< 0: the program says
  tprt::GenerationOptions options;
};

struct Options {
  std::string program;
  std::vector<std::string> inputs, outputs, expected, pad;
  std::string programName; ///< of several in the artifact; empty: by the inputs
  std::string weights, outputWeights, json, blocks, calibration;
  std::string stateIn, stateOut;
  std::string trace, machine, flightDirectory;
  bool profile = false, noPin = false, checksum = false;
  std::string communication = "auto";
  std::string gemm = "measure";
  int64_t processes = 0;        ///< number to start; 0: none
  std::optional<tprt::Job> job; ///< of this process, if it is a rank
  /// The artifact of `program`, loaded before the processes are started.
  std::shared_ptr<const tprt::Artifact> artifact;
  std::optional<int> device;
  std::optional<uint64_t> random; ///< seed for tensors without a file
  bool tf32 = false, noGraphs = false;
  std::string attention = "auto";
  bool allowUnusedWeights = false, allowOutsideWeights = false;
  bool describeOnly = false, noCache = false, quiet = false;
  double timeout = 120;
  tprt::Tolerance tolerance;
  tprt::RunOptions run;
  TrainingArguments training;
  GenerationArguments generation;
};

/// Fails if one of the outputs' `paths` is a file that the command reads. What is
/// of the same kind may replace its input, which the run has read before: an
/// output an input, and weights or a state those that it starts from.
void checkAreNoInputs(const Options &options,
                      std::span<const std::string> paths);

/// The names of the inputs or of the outputs of all programs.
std::vector<std::string>
getNames(const tprt::Manifest &manifest,
         std::vector<tprt::TensorInfo> tprt::Program::*tensors);

/// NAME=PATH arguments by name. `kind` is "input" or "output", and `names` are
/// the program's. `value` is what messages call a PATH.
std::map<std::string, std::string>
parseAssignments(const std::vector<std::string> &arguments,
                 const std::string &option, const std::string &kind,
                 const std::vector<std::string> &names, bool checkNames,
                 const std::string &value = "PATH");

/// What --program and --pad say.
tprt::ProgramQuery getQuery(const Options &options,
                            const tprt::Manifest &manifest);

tprt::TensorMap readTensors(const std::map<std::string, std::string> &paths);

/// The tensors of --weights, or those that --random draws, checked against the
/// program's parameters. One error lists all problems.
tprt::TensorMap readProgramWeights(const Options &options,
                                   const tprt::Manifest &manifest);

std::chrono::milliseconds getTimeout(const Options &options);

/// How the ranks of this process communicate.
struct Communication {
  const tprt::Backend &backend;
  /// That this process is a rank of, and its connection, which outlives the
  /// session. Null if all ranks are threads of this process.
  const tprt::Job *job = nullptr;
  tprt::Connection *connection = nullptr;
};

tprt::SessionOptions getSessionOptions(const Options &options,
                                       const Communication &communication);

/// Writes "tp-run: KIND: TEXT" to stderr in one piece, so that the lines of
/// several processes don't mix.
void report(const std::string &kind, const std::string &text);

/// Where to print what isn't an error: stdout, or stderr where an output is
/// written to stdout.
std::ostream &getTextStream(const Options &options);

/// Whether report() prints a message in this process, since other ranks may
/// have printed it already. Null: always.
extern std::function<bool(const std::string &kind, const std::string &text)>
    shouldReport;

/// Comes before the text of messages: "rank 2: ".
extern std::string messagePrefix;

/// The exit code that stands for an error.
int getExitCode(const std::exception &error);

/// Reports a problem with the file of choices, if any, on stderr.
void noteGemmChoices(const tprt::Session &session);

/// A recording if --trace or --profile need one.
std::optional<tprt::Recording> makeRecording(const Options &options);

/// The profile of a recording, if --profile is given.
std::optional<tprt::Profile> makeProfile(const Options &options,
                                         const tprt::Manifest &manifest,
                                         const tprt::Recording *recording);

/// Adds the trace to the output files, if --trace is given.
void writeTrace(const Options &options, const tprt::Manifest &manifest,
                const tprt::Recording *recording,
                std::vector<tprt::OutputFile> &files);

/// Adds an option's path, unless it is empty.
void addOutput(const std::string &path, std::vector<std::string> &paths);

/// Gives the files their names. All files are complete before the first one
/// appears.
void commit(std::vector<tprt::OutputFile> &files);

/// Calls `work` with a function that returns the session's parameters. In a
/// job, all ranks call this, and `work` is called at rank 0.
void withParameters(const tprt::Session &session, tprt::Connection *connection,
                    const tprt::UseParameters &work);

/// Writes the model's parameters, not the optimizer's, if --output-weights is
/// given. All ranks of a job call it.
void writeProgramWeights(const Options &options, const tprt::Session &session,
                         tprt::Connection *connection);

/// The state of --state-in; empty without it. Fails if --state-in or
/// --state-out is given for a program without state.
tprt::TensorMap readProgramState(const Options &options,
                                 const tprt::Manifest &manifest);

/// Writes the state, if --state-out is given. All ranks of a job call it.
void writeProgramState(const Options &options, const tprt::Session &session,
                       tprt::Connection *connection);

#endif // TP_TOOLS_TP_RUN_COMMANDLINE_H
