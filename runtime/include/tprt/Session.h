//===- Session.h - Execution of programs on their ranks ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   auto artifact = tprt::Artifact::load("model.tpx");
//   tprt::Session session(artifact, weights);
//   tprt::RunResult result = session.run(inputs);
//
// An artifact may have several programs. They share the session's weights, its
// threads, communicators and arenas. Each run is of one of them, see
// ProgramChoice.h.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_SESSION_H
#define TPRT_SESSION_H

#include "tprt/Artifact.h"
#include "tprt/CudaOptions.h"
#include "tprt/GemmChoice.h"
#include "tprt/LocalCommunicator.h"
#include "tprt/ProgramChoice.h"
#include "tprt/Recording.h"

#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tprt {

/// What one rank did in collective `id`, within one run.
struct CollectiveCount {
  int64_t calls = 0;
  int64_t bytes = 0; ///< received from other ranks, counted at the copies

  bool operator==(const CollectiveCount &) const = default;
};

/// What a rank holds of the outputs when its run is complete.
class TPRT_API RankOutputs {
public:
  virtual ~RankOutputs();
  virtual int64_t getRank() const = 0;
  /// `count` elements of the rank's dense block of the program's output number
  /// `index`, from element `first` on. Valid until the next call.
  virtual const std::byte *read(size_t index, int64_t first, int64_t count) = 0;
  /// Returns each rank's contribution, of at most `limit` bytes, by rank. All
  /// ranks call it.
  virtual std::vector<std::string> exchange(const std::string &mine,
                                            size_t limit) = 0;
};

struct RunOptions {
  /// Which program to run. Without a name, the one that takes the inputs.
  ProgramQuery query = {};
  int64_t warmup = 0;      ///< runs before the measured ones
  int64_t repeat = 1;      ///< measured runs
  bool keepBlocks = false; ///< fill RunResult::blocks
  /// Gets the whole outputs from the ranks of other processes, which all do
  /// this. Its backend must implement Communicator::exchange().
  bool gathersOutputs = false;
  /// If this process runs one rank: the outputs of which RunResult::outputs gets
  /// that rank's dense block instead of the whole tensor, without communication.
  std::set<std::string> blockOutputs = {};
  /// If not empty, the run fails before it begins unless all processes give the
  /// same, such as digests of the inputs.
  Communicator::NamedValues agreement = {};
  /// If given, no outputs are assembled. Instead it is called for each rank of
  /// this process, in the rank's thread, after the last run. If it throws, the
  /// run fails.
  std::function<void(RankOutputs &)> useOutputs = {};
  /// If given, the ranks' work in the measured runs is appended to it. Costs
  /// some 50 ns an op.
  Recording *recording = nullptr;
};

struct RunResult {
  /// The program that has run, and the sizes that the inputs had.
  ProgramChoice choice;
  /// Outputs of the last run, global, without what belongs to the padding of
  /// inputs. If other processes host ranks, only the elements that this
  /// process's ranks hold are defined, unless RunOptions::gathersOutputs is set;
  /// see `blocks`. Empty with RunOptions::useOutputs.
  TensorMap outputs;
  /// [rank] of the last run, if requested: each rank's shards of the program's
  /// whole outputs. Empty for ranks that other processes host.
  std::vector<TensorMap> blocks;
  std::vector<double> seconds; ///< per measured run: from the first rank's
                               ///< start to the last rank's end; for this
                               ///< process alone if it replays one rank
  /// On a device, for the same runs: `seconds` minus the time in which the host
  /// only waited for the device.
  std::vector<double> hostSeconds;
  std::vector<std::vector<CollectiveCount>>
      counts; ///< [rank][id], of the last run
};

struct SessionOptions {
  /// Limit, in bytes, on this process's weights in the layout that matrix
  /// products read. They are made in the first run. Results are the same without
  /// them, but products take longer.
  int64_t maxPackedWeightBytes = std::numeric_limits<int64_t>::max();
  /// What computes matrix products. On a device, `library` has no meaning.
  GemmOptions gemm;
  CommunicatorOptions communicator;
  /// A backend's, see makeFactory(), or the program's own.
  CommunicatorFactory makeCommunicators = makeLocalCommunicators;
  std::string backend = "local"; ///< its name, for reports
  /// The ranks that this process runs, ascending, if makeCommunicators gives it
  /// only some of them. Empty: all.
  std::vector<int64_t> ranks;
  CudaOptions cuda;
  /// If not empty, the directory to which each rank of this process writes
  /// `flight-<rank>.json` when a run fails, or by recordFailure(): its last 64
  /// collectives, with times. The session creates it. Costs about 100 ns per
  /// collective.
  std::string flightDirectory;
  /// Pins each rank's thread to its own cores, if there are enough; a thread
  /// that calls run() only during the call.
  bool pinRanks = true;
  /// Whether the thread that calls run() runs the first rank, which saves the
  /// time of waking a thread up. It never does on a device, or if oneDNN has a
  /// product, since these keep states of a thread.
  bool usesCaller = true;
};

/// Returns the global value of a parameter by name; and a function that uses
/// such a getter.
using GetParameter = std::function<Tensor(const std::string &name)>;
using UseParameters = std::function<void(const GetParameter &)>;

/// Programs with their weights sharded for the ranks. run() may be called again
/// with other inputs, by one thread at a time. It may also be called after a
/// failed run, but parameters that the program updates then don't belong to any
/// one step.
class TPRT_API Session {
public:
  /// Slices `weights` (by FQN; unused ones are ignored). Floats of another type
  /// are converted, with rounding to nearest even. A shard that is
  /// contiguous and aligned is used in place. Other shards are copied once,
  /// even if several ranks share them, or when they are packed for products; but
  /// each rank has its own copy of parameters that the program updates. Parameters with an initial value
  /// needn't be given. Chooses the libraries for large products, see
  /// chooseGemms. Throws an input error listing every missing or wrong weight.
  ///
  /// If this process runs one rank, `blocks` may have that rank's dense shards
  /// of weights, which `weights` then needn't contain.
  Session(std::shared_ptr<const Artifact> artifact, const TensorMap &weights,
          SessionOptions options = {}, const TensorMap &blocks = {});
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const Manifest &getManifest() const;
  const std::string &getBackend() const;
  /// The backend's description of how data move, available after the first run;
  /// see Communicator::getDescription().
  const std::string &getCommunication() const;

  /// Runs the program that `options.query` and the inputs choose. A program's
  /// first run allocates its outputs, which the session keeps. Throws an input
  /// error listing every missing, unknown or wrong input; an execution error
  /// when a rank fails, naming the rank, and the collective and module it was
  /// in. Updated parameters carry over from run to run, including warm-up runs.
  RunResult run(const TensorMap &inputs, const RunOptions &options = {});

  /// A copy of a parameter's current global value. May be called by several
  /// threads at a time while nothing runs. Throws an input error if there is no
  /// such parameter, and an execution error if this process's ranks don't hold
  /// all of it.
  Tensor getParameter(const std::string &name) const;
  /// The same, but all processes of the job call it, and what their ranks don't
  /// hold comes from others. A parameter that each rank holds whole needs no
  /// communication. Throws execution errors like run().
  Tensor gatherParameter(const std::string &name);
  /// The ranks of this process, ascending.
  const std::vector<int64_t> &getRanks() const;
  /// The shard of a parameter that `rank`, one of this process's ranks, holds,
  /// dense. Like getParameter(), it may be called by several threads.
  Tensor getParameterBlock(const std::string &name, int64_t rank) const;
  /// Sets global values of parameters, and shards of the one rank of this
  /// process, both checked like those of the constructor. If a check fails, sets
  /// none of them.
  void setParameters(const TensorMap &values, const TensorMap &blocks = {});
  /// Compares the values of parameters that a program updates and several ranks
  /// hold, by a CRC-32 of each block; those whose ranks hold summands
  /// (Partial) are left out. Blocks have the same bits unless a rank has computed
  /// something else, for example on a broken processor. Returns what differs in
  /// the first parameter in which something does; empty if nothing does. All
  /// processes of the job call it. Reads each such parameter once. Throws
  /// execution errors like run().
  std::string findDivergence();
  /// For a failure that isn't one of run(), such as the end of another process
  /// between runs: writes what run() writes to `flightDirectory`. After a run
  /// that has failed, and before the first run, there is nothing to write.
  /// Returns what goes wrong, as the end of the failure's text; empty if nothing
  /// does.
  std::string recordFailure(const std::string &failure);
  /// Sets all parameters that programs update to their initial values. Throws
  /// an input error if one of them has none.
  void resetState();

  /// Bytes of the parameters that each rank reads, that is, of its shards.
  std::vector<int64_t> getWeightBytesByRank() const;
  /// Bytes of parameters that had to be copied; the rest are read in place.
  int64_t getCopiedWeightBytes() const;
  /// The library that computes each product; empty on a device.
  const GemmChoices &getGemmChoices() const;
  /// Bytes of the weights that are packed for matrix products. The ranks of this
  /// process share them.
  int64_t getPackedWeightBytes() const;
  /// On a CUDA device, what computes attention of each form, on the first rank
  /// of this process, in the last run that didn't replay a graph.
  std::vector<AttentionUse> getAttentionUses() const;
  /// The same for products.
  GemmUses getGemmUses() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace tprt

#endif // TPRT_SESSION_H
