//===- Session.h - Running a program on its ranks ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   auto artifact = tprt::Artifact::load("model.tpx");
//   tprt::Session session(artifact, weights);
//   tprt::RunResult result = session.run(inputs);
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_SESSION_H
#define TPRT_SESSION_H

#include "tprt/Artifact.h"
#include "tprt/Communicator.h"
#include "tprt/CudaOptions.h"
#include "tprt/GemmChoice.h"
#include "tprt/Recording.h"
#include "tprt/Tensor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tprt {

using TensorMap = std::map<std::string, Tensor>;

/// What one rank did in collective `id`, within one run.
struct CollectiveCount {
  int64_t calls = 0;
  int64_t bytes = 0; ///< received from other ranks, counted at the copies

  bool operator==(const CollectiveCount &) const = default;
};

struct RunOptions {
  int64_t warmup = 0;      ///< runs before the measured ones
  int64_t repeat = 1;      ///< measured runs
  bool keepBlocks = false; ///< fill RunResult::blocks
  /// Takes, if given, what the ranks do in the measured runs, after what it
  /// holds already. Costs some 50 ns an op.
  Recording *recording = nullptr;
};

struct RunResult {
  /// Of the last run, global. Where other processes host ranks, only what the
  /// ranks here have is defined; see `blocks`.
  TensorMap outputs;
  /// [rank] of the last run, if asked for: each rank's own blocks of the
  /// outputs. Empty for ranks that other processes host.
  std::vector<TensorMap> blocks;
  std::vector<double> seconds; ///< per measured run: from the first rank's
                               ///< start to the last rank's end; of this
                               ///< process alone where it replays one rank
  /// On a device, of the same runs: what is left of the time when what the host
  /// has waited for the device is taken off.
  std::vector<double> hostSeconds;
  std::vector<std::vector<CollectiveCount>>
      counts; ///< [rank][id], of the last run
};

struct SessionOptions {
  /// Bytes that a rank may spend on copies of its weights as matrix products
  /// read them, made at the first run. Results are the same without.
  int64_t maxPackedWeightBytes = int64_t(1) << 30;
  /// What computes matrix products on the host.
  GemmOptions gemm;
  CommunicatorOptions communicator;
  CommunicatorFactory makeCommunicators = makeLocalCommunicators;
  std::string backend = "local"; ///< its name, for reports
  /// The ranks that this process runs, ascending, where makeCommunicators gives
  /// it only some of them. Empty: all.
  std::vector<int64_t> ranks;
  CudaOptions cuda;
  /// Keeps each rank's thread on cores of its own, where there are enough.
  bool pinRanks = true;
};

/// All problems of a set of named tensors against what is wanted, one per line:
/// missing (and without an initial value), unknown, wrong type or shape. `kind`
/// is "input", "weight", … Empty when all is well. bf16 wanted and f32 given is
/// accepted.
TPRT_API std::string checkTensors(const std::vector<TensorInfo> &wanted,
                                  const TensorMap &given, std::string_view kind,
                                  bool allowUnused);

/// Gives whole values of parameters by name; and what is done with one.
using GetParameter = std::function<Tensor(const std::string &name)>;
using UseParameters = std::function<void(const GetParameter &)>;

/// A program with its weights cut for the ranks. Reusable: run() may be called
/// again with other inputs, by one thread at a time. After a failed run too,
/// though parameters that the program updates are then of no step.
class TPRT_API Session {
public:
  /// Slices `weights` (by FQN; unused ones are ignored): a block that is
  /// contiguous and aligned is used where it is, others are copied once,
  /// however many ranks share them, and each rank has its own copy of what the
  /// program updates. Parameters with an initial value needn't be given.
  /// Chooses what computes large products, see chooseGemms. Throws an input
  /// error listing every missing or wrong weight.
  Session(std::shared_ptr<const Artifact> artifact, const TensorMap &weights,
          SessionOptions options = {});
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const Manifest &getManifest() const;
  const std::string &getBackend() const;
  /// What the backend says of how data move, once something has run; see
  /// Communicator::getDescription().
  const std::string &getCommunication() const;

  /// Throws an input error listing every missing, unknown or wrong input; an
  /// execution error when a rank fails, naming the rank, and the collective and
  /// module it was in. Updated parameters go from run to run, warm-up included.
  RunResult run(const TensorMap &inputs, const RunOptions &options = {});

  /// The whole value of a parameter as it is now, a copy. May be called by
  /// several threads at a time while nothing runs. Throws an input error when
  /// there is no such parameter, an execution error when other processes host
  /// ranks that have a part of it.
  Tensor getParameter(const std::string &name) const;
  /// The ranks of this process, ascending.
  const std::vector<int64_t> &getRanks() const;
  /// What `rank`, one of this process's, has of a parameter, dense. May be
  /// called as getParameter().
  Tensor getParameterBlock(const std::string &name, int64_t rank) const;
  /// Sets whole values of parameters, checked like the constructor's. All or
  /// nothing.
  void setParameters(const TensorMap &values);

  /// Bytes of the parameters that each rank reads: its blocks, no more.
  std::vector<int64_t> getWeightBytesByRank() const;
  /// Bytes of parameters that had to be copied out of where they were; the rest
  /// is read in place.
  int64_t getCopiedWeightBytes() const;
  /// What computes which product; nothing on a device.
  const GemmChoices &getGemmChoices() const;
  /// Bytes of the weights' copies for matrix products, of all ranks here.
  int64_t getPackedWeightBytes() const;
  /// On a CUDA device, who computes attention of which form, on the first rank
  /// here; of the last run that wasn't the replay of a graph.
  std::vector<AttentionUse> getAttentionUses() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace tprt

#endif // TPRT_SESSION_H
