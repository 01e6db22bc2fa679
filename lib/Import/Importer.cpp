//===- Importer.cpp - the importers ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Import/Importer.h"

using namespace mlir::tp;

/// Every importer. The folder NAME defines create<NAME>Importer().
#define TP_IMPORTERS(IMPORTER) IMPORTER(TorchScript) IMPORTER(TorchExport)

#define TP_DECLARE(name)                                                       \
  std::unique_ptr<Importer> create##name##Importer(                            \
      llvm::cl::OptionCategory &category);
namespace mlir::tp {
TP_IMPORTERS(TP_DECLARE)
} // namespace mlir::tp

Importer::~Importer() = default;

std::vector<std::unique_ptr<Importer>>
mlir::tp::createImporters(llvm::cl::OptionCategory &category) {
  std::vector<std::unique_ptr<Importer>> importers;
#define TP_CREATE(name) importers.push_back(create##name##Importer(category));
  TP_IMPORTERS(TP_CREATE)
  return importers;
}

const Importer &
mlir::tp::chooseImporter(llvm::ArrayRef<std::unique_ptr<Importer>> importers,
                         llvm::StringRef path) {
  if (importers.size() == 1) // it reports what is wrong with the file
    return *importers.front();
  for (const std::unique_ptr<Importer> &importer : importers)
    if (importer->recognizes(path))
      return *importer;
  return *importers.front();
}
