//===- Checkpoint.h - The state of a training on disk -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   D/step-00000100/
//     model-00001-of-00002.safetensors       whole tensors, by FQN
//     model-00002-of-00002.safetensors
//     model.safetensors.index.json           which tensor is in which file
//     optimizer-00001-of-00002.safetensors   the same for the optimizer's
//     …
//     checkpoint.json                        step, data, mesh, checksums
//
// A checkpoint is written under another name, synchronised with the disk, and
// renamed: a directory of this name is complete however the writer ended.
// docs/Training.md describes checkpoint.json.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_CHECKPOINT_H
#define TPRT_CHECKPOINT_H

#include "tprt/Session.h"
#include "tprt/Weights.h"

namespace tprt {

/// Parameters of this prefix are the optimizer's state.
inline constexpr std::string_view optimizerPrefix = "optimizer.";

/// What a program's parameters are written from: the model's, or the
/// optimizer's. `manifest` and `getParameter` outlive them.
TPRT_API std::vector<TensorSource>
collectSources(const Manifest &manifest, const GetParameter &getParameter,
               bool ofOptimizer);

/// Where in its data a training is.
struct DataState {
  int64_t numExamples = 0; ///< of the whole data
  int64_t position = 0;    ///< examples taken so far, over all epochs
  /// Of the order of examples; nothing: the order of the files.
  std::optional<uint64_t> seed;

  bool operator==(const DataState &) const = default;
};

/// What a checkpoint says about itself.
struct Checkpoint {
  std::string path;
  std::string producer;
  int64_t step = 0; ///< steps that have been done
  DataState data;
  std::string meshName;
  std::vector<MeshAxis> axes;
  std::vector<WrittenFile> files;

  TPRT_API int64_t getNumBytes() const;
};

/// Reads checkpoint.json, and checks that every file is there and has its size.
/// Throws an input error: no checkpoint, not complete, or damaged.
TPRT_API Checkpoint readCheckpoint(const std::string &path);

/// What is wrong with a checkpoint's files, one text each, empty when nothing
/// is: sizes, checksums, indices, headers of safetensors files.
TPRT_API std::vector<std::string>
verifyCheckpoint(const Checkpoint &checkpoint);

/// All tensors by name, the optimizer's included. Mapped: blocks are cut out of
/// the files without reading the rest.
TPRT_API std::map<std::string, SafetensorsEntry>
readCheckpointTensors(const Checkpoint &checkpoint, bool withModel = true,
                      bool withOptimizer = true);

/// The values for a session of `manifest`, which may have another mesh and
/// other placements. Throws an input error that lists what is missing (also
/// where the parameter has an initial value), surplus or of another type.
TPRT_API TensorMap loadCheckpoint(const Checkpoint &checkpoint,
                                  const Manifest &manifest);

/// What is in a directory of checkpoints.
struct CheckpointList {
  std::vector<Checkpoint> complete; ///< by ascending step
  /// Of directories named as checkpoints that are none: path and why.
  std::vector<std::pair<std::string, std::string>> broken;
};

/// Throws an input error when there is no such directory.
TPRT_API CheckpointList listCheckpoints(const std::string &directory);

/// A directory that this process alone writes checkpoints to.
class TPRT_API CheckpointDirectory {
public:
  /// Makes the directory where there is none, locks it against other processes,
  /// and removes what killed ones have left. Throws an input error when another
  /// process trains into it.
  explicit CheckpointDirectory(std::string path);
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory &) = delete;
  CheckpointDirectory &operator=(const CheckpointDirectory &) = delete;

  const std::string &getPath() const { return path; }

  /// Writes the session's parameters as of `step`, by as many threads as it has
  /// ranks, and returns the checkpoint's path. A broken one of this name is
  /// replaced. Throws when the disk doesn't take it, leaving nothing.
  std::string write(const Session &session, int64_t step,
                    const DataState &data);
  /// The same where other processes host ranks.
  std::string write(const Manifest &manifest, const GetParameter &getParameter,
                    int64_t step, const DataState &data);

  /// Removes all complete checkpoints up to `step`, but the last `count` of
  /// them. Later ones are of a training that this one, resumed before them,
  /// does again: they say nothing about what is worth keeping.
  void keepLast(int64_t count, int64_t step);

private:
  void remove(const std::string &checkpoint);

  std::string path;
  int lock = -1;
};

} // namespace tprt

#endif // TPRT_CHECKPOINT_H
