//===- Session.h - Sessions for several threads of Python -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PYTHON_SESSION_H
#define TP_PYTHON_SESSION_H

#include "tprt/Session.h"
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mlir::tp::python {

/// What is known about a run that was completed.
struct RunInfo {
  std::string program;
  double seconds;
  std::vector<std::vector<tprt::CollectiveCount>> counts; ///< [rank][id]
};

/// A session that one thread at a time uses; others wait. No function needs the
/// GIL. Throws tprt::Error.
class Session {
public:
  Session(std::shared_ptr<const tprt::Artifact> artifact,
          const tprt::TensorMap &weights, tprt::SessionOptions options,
          const tprt::TensorMap &blocks);
  ~Session();

  void setParameters(const tprt::TensorMap &values,
                     const tprt::TensorMap &blocks);
  /// `kept`: the outputs of which this process's block is wanted.
  tprt::TensorMap run(const tprt::TensorMap &inputs,
                      const tprt::ProgramQuery &query,
                      std::set<std::string> kept = {});
  /// The program that runFlat() runs: the only one, or the one of this name.
  const tprt::Program &getProgram(const std::string &name) const;
  std::optional<RunInfo> getLastRun();
  const tprt::Manifest &getManifest() const { return artifact->getManifest(); }

  /// Calls `use` with the session, while no run is under way.
  template <typename Use>
  auto with(Use use) {
    Lock lock(*this);
    return use(*session);
  }

  const std::shared_ptr<const tprt::Artifact> artifact;

private:
  /// Also checks that this process has made the session.
  struct Lock {
    explicit Lock(Session &session);
    std::lock_guard<std::mutex> guard;
  };

  tprt::Communicator::NamedValues
  listCommonValues(const tprt::TensorMap &inputs,
                   const tprt::ProgramQuery &query) const;

  int process; ///< that has made it
  /// Whether other processes run ranks of the programs.
  const bool hasOtherProcesses;
  /// If it has: digests of the parameters that were given whole, by name.
  std::map<std::string, std::string> digests;
  std::mutex mutex;
  std::unique_ptr<tprt::Session> session;
  std::optional<RunInfo> lastRun;
};

} // namespace mlir::tp::python

#endif // TP_PYTHON_SESSION_H
