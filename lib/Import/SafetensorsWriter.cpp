//===- SafetensorsWriter.cpp - write a safetensors file -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format: eight bytes of header length, a JSON header (name → dtype, shape,
// offsets from the end of the header), and the data without holes.
//
//===----------------------------------------------------------------------===//

#include "tp/Import/SafetensorsWriter.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

using namespace mlir;
using namespace mlir::tp;

static constexpr uint64_t kDataAlignment = 64;

static std::string buildHeader(llvm::ArrayRef<const WeightTensor *> tensors) {
  std::string header;
  llvm::raw_string_ostream stream(header);
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attributeObject("__metadata__",
                         [&] { json.attribute("format", "pt"); });
    uint64_t offset = 0;
    for (const WeightTensor *tensor : tensors)
      json.attributeObject(tensor->name, [&] {
        json.attribute("dtype", tensor->dtype);
        json.attributeArray("shape", [&] {
          for (int64_t size : tensor->shape)
            json.value(size);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(offset);
          json.value(offset += tensor->bytes);
        });
      });
  });
  constexpr uint64_t lengthField = 8;
  uint64_t size = lengthField + header.size();
  header.append(llvm::alignTo(size, kDataAlignment) - size, ' ');
  return header;
}

void mlir::tp::writeSafetensors(llvm::raw_ostream &os,
                                llvm::ArrayRef<WeightTensor> tensors) {
  auto order =
      llvm::map_to_vector(tensors, [](const WeightTensor &t) { return &t; });
  llvm::sort(order, [](const WeightTensor *a, const WeightTensor *b) {
    return std::tie(b->elementBytes, a->name) <
           std::tie(a->elementBytes, b->name);
  });
  std::string header = buildHeader(order);
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  os.write(length, sizeof(length));
  os << header;
  for (const WeightTensor *tensor : order) {
    try {
      os.write(tensor->load().get(), tensor->bytes);
    } catch (const std::bad_alloc &) {
      // The caller is compiled without exceptions.
      llvm::report_bad_alloc_error("no memory for a weight");
    }
  }
}
