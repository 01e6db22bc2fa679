//===- Session.cpp - Sessions for several threads of Python ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Session.h"
#include "Errors.h"
#include <unistd.h>

using namespace mlir::tp::python;

Session::Session(std::shared_ptr<const tprt::Artifact> artifact,
                 const tprt::TensorMap &weights, tprt::SessionOptions options)
    : artifact(artifact), process(getpid()),
      session(std::make_unique<tprt::Session>(artifact, weights,
                                              std::move(options))) {}

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

tprt::TensorMap Session::run(const tprt::TensorMap &inputs,
                             const tprt::ProgramQuery &query) {
  Lock lock(*this);
  tprt::RunOptions options;
  options.query = query;
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
