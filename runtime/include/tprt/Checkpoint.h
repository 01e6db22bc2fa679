//===- Checkpoint.h - The state of a training on disk -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   D/step-00000100/
//     model-00001-of-00002.safetensors       global tensors, by FQN
//     model-00002-of-00002.safetensors
//     model.safetensors.index.json           which tensor is in which file
//     optimizer-00001-of-00002.safetensors   the same for the optimizer's
//     …
//     checkpoint.json                        step, data, mesh, checksums
//
// A checkpoint is written under a temporary name, synchronized with the disk,
// and then renamed. A directory with the final name is therefore complete, even
// if the writer was killed. docs/Training.md describes checkpoint.json.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_CHECKPOINT_H
#define TPRT_CHECKPOINT_H

#include "tprt/State.h"

namespace tprt {

/// Parameters with this prefix are the optimizer's state.
inline constexpr std::string_view optimizerPrefix = "optimizer.";
inline bool isOfOptimizer(const TensorInfo &info) {
  return info.name.starts_with(optimizerPrefix);
}

/// How far a training has come in its data.
struct DataState {
  int64_t numExamples = 0; ///< in all the data
  int64_t position = 0;    ///< examples taken so far, over all epochs
  /// The seed of the order of examples. Without one, the files' order is used.
  std::optional<uint64_t> seed;

  bool operator==(const DataState &) const = default;
};

/// What a checkpoint says about itself.
struct Checkpoint {
  std::string path;
  std::string producer;
  int64_t step = 0; ///< completed steps
  DataState data;
  std::string meshName;
  std::vector<MeshAxis> axes;
  std::vector<WrittenFile> files;

  TPRT_API int64_t getNumBytes() const;
};

/// Reads checkpoint.json, and checks that every file exists and has the
/// recorded size. Throws an input error if there is no checkpoint, or if it is
/// incomplete or damaged.
TPRT_API Checkpoint readCheckpoint(const std::string &path);

/// Checks sizes, checksums, indices and headers of a checkpoint's safetensors
/// files. Returns one message for each problem.
TPRT_API std::vector<std::string>
verifyCheckpoint(const Checkpoint &checkpoint);

/// All tensors by name, including the optimizer's. The files are mapped, so a
/// shard is read without the rest of its file.
TPRT_API std::map<std::string, SafetensorsEntry>
readCheckpointTensors(const Checkpoint &checkpoint, bool withModel = true,
                      bool withOptimizer = true);

/// The values for a session of `manifest`, which may have another mesh and
/// other placements. Throws an input error that lists the tensors that are
/// missing (even if the parameter has an initial value), surplus, or of another
/// type.
TPRT_API TensorMap loadCheckpoint(const Checkpoint &checkpoint,
                                  const Manifest &manifest);

/// The contents of a directory of checkpoints.
struct CheckpointList {
  std::vector<Checkpoint> complete; ///< by ascending step
  /// Directories that are named like checkpoints but aren't valid: path and
  /// reason.
  std::vector<std::pair<std::string, std::string>> broken;
};

/// Throws an input error when there is no such directory.
TPRT_API CheckpointList listCheckpoints(const std::string &directory);

/// A directory that only this process writes checkpoints to.
class TPRT_API CheckpointDirectory {
public:
  /// Makes the directory if it doesn't exist, locks it against other processes,
  /// and removes the leftovers of killed ones. Throws an input error when
  /// another process holds the lock.
  explicit CheckpointDirectory(std::string path);
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory &) = delete;
  CheckpointDirectory &operator=(const CheckpointDirectory &) = delete;

  const std::string &getPath() const { return path; }

  /// Writes the session's parameters as of `step`, with as many threads as it
  /// has ranks, and returns the checkpoint's path. Replaces a broken checkpoint
  /// of the same name. If writing fails, throws and leaves nothing behind.
  std::string write(const Session &session, int64_t step,
                    const DataState &data);
  /// The same if other processes host ranks, or if values have been copied
  /// before. The number of files doesn't depend on `numThreads`.
  std::string write(const Manifest &manifest, const GetParameter &getParameter,
                    int64_t step, const DataState &data, int64_t numThreads);

  /// Removes all complete checkpoints up to `step` except the last `count` of
  /// them. Later checkpoints are left alone and aren't counted: this training
  /// was resumed from before them and will do their steps again.
  void keepLast(int64_t count, int64_t step);

private:
  void remove(const std::string &checkpoint);

  std::string path;
  int lock = -1;
};

} // namespace tprt

#endif // TPRT_CHECKPOINT_H
