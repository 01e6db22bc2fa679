//===- Session.cpp - Sessions for several threads of Python ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Session.h"
#include "Errors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <unistd.h>

using namespace mlir::tp::python;

static std::string getDigest(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::utohexstr(llvm::xxh3_64bits(bytes), /*LowerCase=*/true);
}

static std::string getDigest(const tprt::Tensor &tensor) {
  return tensor.getTypeString() + " with the digest " +
         getDigest({reinterpret_cast<const uint8_t *>(tensor.data.get()),
                    static_cast<size_t>(tensor.getNumBytes())});
}

Session::Session(std::shared_ptr<const tprt::Artifact> artifact,
                 const tprt::TensorMap &weights, tprt::SessionOptions options,
                 const tprt::TensorMap &blocks)
    : artifact(artifact), process(getpid()),
      hasOtherProcesses(!options.ranks.empty()),
      session(std::make_unique<tprt::Session>(artifact, weights,
                                              std::move(options), blocks)) {
  if (hasOtherProcesses)
    for (const tprt::TensorInfo &info : getManifest().parameters)
      if (auto found = weights.find(info.name); found != weights.end())
        digests[info.name] = getDigest(found->second);
}

Session::~Session() {
  // After a fork, the destructor would wait for threads that don't exist.
  if (process != getpid())
    (void)session.release();
}

static std::mutex &checked(int process, std::mutex &mutex) {
  checkProcess(process, "session");
  return mutex;
}

Session::Lock::Lock(Session &session)
    : guard(checked(session.process, session.mutex)) {}

void Session::setParameters(const tprt::TensorMap &values,
                            const tprt::TensorMap &blocks) {
  Lock lock(*this);
  session->setParameters(values, blocks);
  if (!hasOtherProcesses)
    return;
  for (const auto &[name, value] : values)
    digests[name] = getDigest(value);
  for (const auto &[name, block] : blocks)
    digests.erase(name);
}

/// What all processes must have in common for a run.
tprt::Communicator::NamedValues
Session::listCommonValues(const tprt::TensorMap &inputs,
                          const tprt::ProgramQuery &query) const {
  llvm::StringRef manifest(artifact->getManifestText());
  tprt::Communicator::NamedValues values = {
      {"the program", query.program + " with the digest " +
                          getDigest(llvm::arrayRefFromStringRef(manifest))}};
  for (const auto &[name, input] : inputs)
    values.emplace_back("the input '" + name + "'", getDigest(input));
  for (const auto &[name, digest] : digests)
    values.emplace_back("the parameter '" + name + "'", digest);
  return values;
}

tprt::TensorMap Session::run(const tprt::TensorMap &inputs,
                             const tprt::ProgramQuery &query,
                             std::set<std::string> kept) {
  Lock lock(*this);
  tprt::RunOptions options;
  options.query = query;
  options.gathersOutputs = true;
  options.blockOutputs = std::move(kept);
  if (hasOtherProcesses)
    options.agreement = listCommonValues(inputs, query);
  tprt::RunResult result = session->run(inputs, options);
  lastRun = {result.choice.program->name, result.seconds.back(),
             std::move(result.counts)};
  return std::move(result.outputs);
}

const tprt::Program &Session::getProgram(const std::string &name) const {
  const std::vector<tprt::Program> &programs = getManifest().programs;
  if (name.empty() && programs.size() == 1)
    return programs.front();
  std::vector<std::string> names;
  for (const tprt::Program &program : programs) {
    if (program.name == name)
      return program;
    names.push_back(program.name);
  }
  if (name.empty())
    throw tprt::inputError("the artifact has several programs; name one: " +
                           tprt::quotedList(names));
  throw tprt::inputError("the artifact has no program '" + name + "'" +
                         tprt::didYouMean(name, names) + "; programs are " +
                         tprt::quotedList(names));
}

std::optional<RunInfo> Session::getLastRun() {
  std::lock_guard lock(mutex);
  return lastRun;
}
