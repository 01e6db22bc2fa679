//===- EventFile.h - Scalars of a training for TensorBoard ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_EVENTFILE_H
#define TP_TOOLS_TP_RUN_EVENTFILE_H

#include "tprt/Training.h"

/// A file of TensorBoard's events in a directory: for each step the scalars
/// loss, learning_rate, gradient_norm, and tokens_per_second or
/// examples_per_second. After each step the file is complete.
///
/// The file is a sequence of records, each with its length and checksums
/// (https://www.tensorflow.org/tutorials/load_data/tfrecord), whose data are
/// messages of third_party/tensorboard.
class EventFile {
public:
  /// Throws a UsageError if this program was built without protobuf, and an
  /// input error if `directory` can't be one because another file has its name.
  static void checkDirectory(const std::string &directory);

  /// Makes `directory`, if it isn't there, and a new file in it. Tells
  /// TensorBoard to forget the steps after `step` that other files of the
  /// directory have. Throws an input error if the file can't be written.
  EventFile(const std::string &directory, int64_t step);
  ~EventFile();
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;

  void write(const tprt::StepReport &report,
             std::optional<int64_t> tokensPerExample);

private:
  /// Appends a record.
  void append(const std::string &data);

  std::string path;
  [[maybe_unused]] int descriptor = -1; ///< unused without protobuf
};

#endif // TP_TOOLS_TP_RUN_EVENTFILE_H
