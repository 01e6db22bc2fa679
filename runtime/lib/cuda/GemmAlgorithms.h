//===- GemmAlgorithms.h - Choice of cuBLASLt's algorithms -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CUDA_GEMMALGORITHMS_H
#define TPRT_LIB_CUDA_GEMMALGORITHMS_H

#include "cuda/Context.h"
#include "tprt/CudaOptions.h"
#include "tprt/GemmChoice.h"

#include <functional>
#include <optional>

namespace tprt {
class GemmChoiceFile;
}

namespace tprt::cuda {

/// The algorithms for products on a device, which all streams share. cuBLASLt
/// proposes several, whose first one isn't always the fastest. They are
/// measured if the choice can be kept, so that two runs give the same bits.
class GemmAlgorithms {
public:
  /// For `mayMeasure`, see chooseGemms.
  GemmAlgorithms(const GemmOptions &options, bool mayMeasure,
                 const Context &context);
  ~GemmAlgorithms();

  struct Measured {
    /// Times by the position of the algorithm, infinite for one that fails or
    /// that there was no time for; empty if nothing could be measured.
    std::vector<double> seconds;
    /// How long the host has waited for the device.
    double spentSeconds = 0;
  };
  /// Begins to measure another algorithm only until it has waited for
  /// `maxSeconds`.
  using Measure = std::function<Measured(double maxSeconds)>;

  /// Chooses an algorithm for a product from the file, or else by measuring,
  /// and notes it in `use`. Without `measure` and without a choice, it is the
  /// first one.
  void choose(GemmUse &use, const Measure &measure);

  /// Writes new choices to the file.
  void keep();

  const std::string &getFile() const { return options.file; }
  std::string getNote();

private:
  void load();
  void addNote(const std::string &text);

  const GemmOptions options;
  const bool mayMeasure;
  const std::string device;
  std::mutex mutex;                     ///< guards the members below
  std::unique_ptr<GemmChoiceFile> file; ///< made by the first product
  std::map<std::string, GemmUse> known; ///< by form
  bool hasNew = false;
  double spentSeconds = 0; ///< by measuring
  std::string note;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_GEMMALGORITHMS_H
