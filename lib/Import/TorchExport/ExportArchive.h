//===- ExportArchive.h - the records of a PT2 archive -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format is PyTorch's PT2 archive: models/<name>.json is the program,
// data/weights and data/constants hold the bytes of storages, and a JSON file
// in each says which part of a storage a tensor is.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_TORCHEXPORT_EXPORTARCHIVE_H
#define TP_LIB_IMPORT_TORCHEXPORT_EXPORTARCHIVE_H

#include "ExportedProgram.h"
#include <ATen/core/Tensor.h>
#include <caffe2/serialize/inline_container.h>

namespace mlir::tp {

/// Throws ExportErrors, and LibTorch's exceptions for a damaged file.
class ExportArchive {
public:
  explicit ExportArchive(StringRef path);

  ExportedProgram readProgram();

  /// The parameter, buffer or constant of this name. Tensors that share a
  /// storage in the program share it here. A tensor of a model that was built
  /// on the meta device is a meta tensor, with a storage of its own.
  at::Tensor getTensor(const std::string &name);

private:
  std::string readText(const std::string &record);
  void readConfig(const std::string &folder, const std::string &config);
  void readPickled(const std::string &record);
  at::Tensor makeTensor(JsonNode meta, const std::string &record,
                        const std::string &name);

  caffe2::serialize::PyTorchStreamReader reader;
  uint64_t fileSize;
  std::string model;
  std::map<std::string, at::Storage> storages;
  std::map<std::string, at::Tensor> tensors;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_EXPORTARCHIVE_H
