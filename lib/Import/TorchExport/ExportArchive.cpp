//===- ExportArchive.cpp - the records of a PT2 archive -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExportArchive.h"
#include "Import/Aten/TorchArchive.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include <ATen/ops/empty.h>
#include <sstream>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/serialization/import_read.h>

using namespace mlir;
using namespace mlir::tp;

ExportArchive::ExportArchive(StringRef path) : reader(path.str()) {
  if (llvm::sys::fs::file_size(path, fileSize))
    throw ExportError("the file's size is unknown");
  if (reader.hasRecord("archive_version"))
    if (std::string version = readText("archive_version"); version != "0")
      throw ExportError("the archive has version " + version +
                        " of the PT2 format, expected 0");
  if (reader.hasRecord("byteorder") && readText("byteorder") != "little")
    throw ExportError("the archive's numbers are '" + readText("byteorder") +
                      "' endian, expected little");
  llvm::SmallVector<std::string> models;
  for (const std::string &record : reader.getAllRecords()) {
    StringRef name = record;
    if (name.consume_front("models/") && name.consume_back(".json"))
      models.push_back(name.str());
  }
  if (models.empty())
    throw ExportError("the archive has no program: models/*.json is missing "
                      "(a package of AOTInductor has compiled code alone)");
  if (models.size() > 1)
    throw ExportError("the archive has several programs, expected one: '" +
                      llvm::join(models, "', '") + "'");
  model = models.front();
}

std::string ExportArchive::readText(const std::string &record) {
  auto [data, size] = reader.getRecord(record);
  return std::string(static_cast<const char *>(data.get()), size);
}

ExportedProgram ExportArchive::readProgram() {
  std::string record = "models/" + model + ".json";
  llvm::json::Value json = parseRecord(readText(record), record);
  ExportedProgram program = readExportedProgram(JsonNode(json, "program"));
  for (const char *part : {"weights", "constants"}) {
    std::string folder = std::string("data/") + part + "/";
    std::string config = folder + model + "_" + part + "_config.json";
    if (reader.hasRecord(config))
      readConfig(folder, config);
    else if (reader.hasRecord(folder + model + ".pt"))
      readPickled(folder + model + ".pt");
  }
  return program;
}

void ExportArchive::readConfig(const std::string &folder,
                               const std::string &config) {
  llvm::json::Value json = parseRecord(readText(config), config);
  JsonNode(json, config)["config"].forEachMember(
      [&](StringRef name, JsonNode entry) {
        // Objects and subclasses of tensors; a program that needs them lacks
        // them.
        if (entry["use_pickle"].getBool())
          return;
        tensors[name.str()] =
            makeTensor(entry["tensor_meta"],
                       folder + entry["path_name"].getText(), name.str());
      });
}

static std::vector<int64_t> readSizes(JsonNode node) {
  std::vector<int64_t> sizes;
  node.forEach([&](JsonNode element) {
    SymbolicSize size = readSize(element);
    if (!size.expression.empty() || *size.value < 0)
      element.fail("a number ≥ 0");
    sizes.push_back(*size.value);
  });
  return sizes;
}

/// The bytes of a tensor, and those of its storage from its beginning to the
/// tensor's last element; none if they have more than 64 bits.
static std::optional<std::pair<int64_t, int64_t>>
measure(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
        int64_t offset, int64_t elementBytes) {
  int64_t count = 1, last = offset;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    int64_t step;
    if (llvm::MulOverflow(count, size, count) ||
        llvm::MulOverflow(std::max<int64_t>(size - 1, 0), stride, step) ||
        llvm::AddOverflow(last, step, last))
      return std::nullopt;
  }
  int64_t bytes, end;
  if (llvm::MulOverflow(count, elementBytes, bytes) ||
      llvm::AddOverflow(last, int64_t(1), last) ||
      llvm::MulOverflow(last, elementBytes, end))
    return std::nullopt;
  return std::pair{bytes, count == 0 ? 0 : end};
}

at::Tensor ExportArchive::makeTensor(JsonNode meta, const std::string &record,
                                     const std::string &name) {
  at::ScalarType type = readScalarType(meta["dtype"]);
  if (meta["layout"].getInteger() != 7)
    meta["layout"].fail("7, a strided tensor");
  std::vector<int64_t> sizes = readSizes(meta["sizes"]);
  std::vector<int64_t> strides = readSizes(meta["strides"]);
  SymbolicSize offset = readSize(meta["storage_offset"]);
  if (!offset.expression.empty() || *offset.value < 0)
    meta["storage_offset"].fail("a number ≥ 0");
  if (strides.size() != sizes.size())
    meta["strides"].fail("as many numbers as there are sizes");
  auto extent = measure(sizes, strides, *offset.value, c10::elementSize(type));
  bool requiresGrad =
      meta["requires_grad"].getBool() && at::isFloatingType(type);
  if (extent && meta["device"]["type"].getText() == "meta") {
    auto options = at::TensorOptions(type).device(at::kMeta);
    at::Tensor tensor = at::empty(
        {extent->second / static_cast<int64_t>(c10::elementSize(type))},
        options);
    return tensor.as_strided_(sizes, strides, *offset.value)
        .set_requires_grad(requiresGrad);
  }
  if (!reader.hasRecord(record))
    throw ExportError("the archive has no record '" + record +
                      "', the data of '" + name + "'");
  int64_t recordSize = reader.getRecordSize(record);
  if (!extent || extent->second > recordSize)
    throw ExportError(
        "'" + name + "' needs " +
        (extent ? std::to_string(extent->second) : "more than 2^63") +
        " bytes of '" + record + "', which has " + std::to_string(recordSize));
  // Expanded dimensions repeat data.
  if (uint64_t(extent->first) > fileSize + kMaxArchiveGrowth)
    throw ExportError("'" + name + "' has " + std::to_string(extent->first) +
                      " bytes, too many for an archive of " +
                      std::to_string(fileSize));
  auto storage = storages.find(record);
  if (storage == storages.end()) {
    auto [data, size] = reader.getRecord(record);
    storage =
        storages
            .emplace(record, at::Storage(at::Storage::use_byte_size_t(), size,
                                         std::move(data), nullptr, false))
            .first;
  }
  at::Tensor tensor = at::empty({0}, type);
  tensor.set_(storage->second, *offset.value, sizes, strides);
  return tensor.set_requires_grad(requiresGrad);
}

/// The function that makes a parameter, which the LibTorch of PyTorch 2.8 takes
/// for the name of a class. Its objects hold the tensor.
static c10::StrongTypePtr resolveParameter(const c10::QualifiedName &name) {
  if (name.qualifiedName() != "torch._utils._rebuild_parameter")
    throw ExportError("a weight is of the type '" + name.qualifiedName() +
                      "', expected a tensor");
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  auto type = c10::ClassType::create(c10::QualifiedName("__torch__.Parameter"),
                                     unit, /*is_module=*/false);
  type->addAttribute("data", c10::TensorType::get());
  return {unit, type};
}

/// `given` are the arguments of that function: the tensor, whether it requires a
/// gradient, and hooks.
static c10::intrusive_ptr<c10::ivalue::Object>
makeParameter(const c10::StrongTypePtr &type, const c10::IValue &given) {
  auto object = c10::ivalue::Object::create(type, /*numSlots=*/1);
  if (given.isTuple() && given.toTupleRef().elements().size() >= 2) {
    const auto &arguments = given.toTupleRef().elements();
    if (arguments[0].isTensor() && arguments[1].isBool()) {
      at::Tensor data = arguments[0].toTensor();
      if (at::isFloatingType(data.scalar_type()))
        data.set_requires_grad(arguments[1].toBool());
      object->setSlot(0, data);
    }
  }
  return object;
}

/// PyTorch 2.8 stores a dictionary of tensors, written by torch.save.
void ExportArchive::readPickled(const std::string &record) {
  std::string text = readText(record);
  if (text.empty())
    return;
  std::istringstream stream(text);
  caffe2::serialize::PyTorchStreamReader inner(&stream);
  if (std::string why = describeGrowth(inner, text.size()); !why.empty())
    throw ExportError("'" + record + "': " + why);
  c10::IValue value = torch::jit::readArchiveAndTensors(
      "data", /*pickle_prefix=*/"", /*tensor_prefix=*/"", resolveParameter,
      makeParameter, /*device=*/std::nullopt, inner);
  if (!value.isGenericDict())
    throw ExportError("'" + record + "' has a value of type " +
                      value.type()->annotation_str() +
                      ", expected a dictionary of tensors");
  for (const auto &entry : value.toGenericDict()) {
    c10::IValue held = entry.value();
    if (held.isObject())
      held = held.toObjectRef().getSlot(0);
    if (entry.key().isString() && held.isTensor())
      tensors[entry.key().toStringRef()] = held.toTensor();
  }
}

at::Tensor ExportArchive::getTensor(const std::string &name) {
  auto it = tensors.find(name);
  if (it == tensors.end())
    throw ExportError("the archive has no data for '" + name +
                      "'; subclasses of tensors aren't supported");
  return it->second;
}
