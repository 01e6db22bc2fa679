//===- TorchOps.cpp - Execution of ops on meta tensors and data -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchOps.h"
#include "TorchArchive.h"
#include "TorchComposite.h"
#include "TorchDivision.h"
#include "TorchMetaKernels.h"
#include "TorchRepeats.h"
#include "TorchSchema.h"
#include "llvm/ADT/ScopeExit.h"
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>

using namespace mlir;
using namespace mlir::tp;

/// The limit for the elements of all large lists and strings together.
static constexpr int64_t kMaxElements = int64_t(1) << 26;

/// The limit for the ops that a composite op consists of.
static constexpr int64_t kMaxParts = int64_t(1) << 16;

OpRunner::OpRunner(ImportBuilder &b, TensorTable &table)
    : b(b), table(table), handlers(makeAtenTable()) {
  addMetaKernels();
}

void OpRunner::enterModule(const std::string &fqn, Block *body) {
  fqns.push_back(fqn);
  table.enterModule(fqn, body);
}

void OpRunner::leaveModule() {
  table.leaveModule();
  fqns.pop_back();
}

void OpRunner::problem(ImportProblem::Kind kind, StringRef place,
                       const llvm::Twine &text) {
  std::string whole =
      composite.empty() ? "" : ", as a part of '" + composite + "'";
  ImportProblem problem{kind, text.str() + whole, currentFqn(), place.str()};
  if (!llvm::is_contained(problems, problem))
    problems.push_back(std::move(problem));
}

bool OpRunner::hasRoom(StringRef place, double count) {
  if (numElements + count <= kMaxElements)
    return true;
  problem(ImportProblem::Failed, place,
          "the lists and strings of the model have more than " +
              llvm::Twine(kMaxElements) + " elements");
  return false;
}

/// The name without its namespace.
static StringRef shortName(const TorchOp &op) {
  return StringRef(op.name).split("::").second;
}

/// The module and the source line of an op.
static Location makeLocation(MLIRContext *context, StringRef fqn,
                             StringRef place) {
  auto [file, line] = place.rsplit(':');
  unsigned number = 0;
  Location source = UnknownLoc::get(context);
  if (!line.getAsInteger(10, number))
    source = FileLineColLoc::get(context, file, number, 0);
  return NameLoc::get(StringAttr::get(context, fqn), source);
}

/// Replaces devices: those in archives are of the machine that wrote them.
static void setDevices(std::vector<c10::IValue> &inputs, c10::DeviceType type) {
  for (c10::IValue &input : inputs)
    if (input.isDevice())
      input = c10::Device(type);
}

/// An upper bound for the elements that PyTorch adds to a list, or of a list or
/// string that it makes by repetition; 0 for ops that do neither.
static double countRepeated(StringRef kind,
                            llvm::ArrayRef<c10::IValue> inputs) {
  auto getSize = [](const c10::IValue &value) -> double {
    return value.isString() ? value.toStringRef().size()
           : value.isList() ? value.toListRef().size()
                            : 0;
  };
  kind.consume_back("_"); // in place
  if (kind == "extend" || kind == "add")
    return inputs.size() > 1 && inputs[0].isList() ? getSize(inputs[1]) : 0;
  if (kind == "replace" && inputs.size() > 2)
    return (getSize(inputs[0]) + 1) * (getSize(inputs[2]) + 1);
  if (kind == "join" && inputs.size() > 1 && inputs[1].isList()) {
    double count = 0;
    for (const c10::IValue &part : inputs[1].toListRef())
      count += getSize(part) + getSize(inputs[0]);
    return count;
  }
  if (!llvm::is_contained(
          {"mul", "ljust", "rjust", "center", "zfill", "expandtabs"}, kind))
    return 0;
  double size = 0, times = 0;
  for (const c10::IValue &input : inputs) {
    size = std::max(size, getSize(input));
    if (input.isInt())
      times = std::max<double>(times, input.toInt());
  }
  bool isRepeated = llvm::any_of(inputs, [](const c10::IValue &input) {
    return input.isString() || input.isList();
  });
  return isRepeated ? std::max(size, 1.0) * times : 0;
}

/// Whether PyTorch failed because it has no meta kernel in C++ for an op, and
/// not because of the arguments. Its fused attention on the CPU takes a mask
/// beside is_causal, and the ops that compute attention elsewhere don't.
static bool lacksMetaKernel(const std::exception &exception) {
  StringRef text = exception.what();
  return dynamic_cast<const c10::NotImplementedError *>(&exception) ||
         text.contains("'Meta' backend") || text.contains("meta tensor") ||
         text.contains("attn_mask should not be set when is_causal");
}

/// Whether a tensor among the values has no elements, and the others are small.
/// Meta kernels that look at the first slice refuse some of these, which PyTorch
/// computes.
static bool areSmallAndEmpty(llvm::ArrayRef<c10::IValue> values) {
  constexpr int64_t kMaxElements = 1 << 20;
  bool isEmpty = false, isSmall = true;
  for (const c10::IValue &value : values)
    forEachTensor(value, [&](const at::Tensor &tensor) {
      isEmpty |= tensor.numel() == 0;
      isSmall &= tensor.numel() <= kMaxElements;
    });
  return isEmpty && isSmall;
}

/// Whether a value has tensors without a strided storage, which the importer
/// doesn't support.
static bool hasOpaqueTensors(llvm::ArrayRef<c10::IValue> values) {
  bool found = false;
  for (const c10::IValue &value : values)
    forEachTensor(value, [&](const at::Tensor &tensor) {
      found |= tensor.layout() != at::kStrided || tensor.is_nested() ||
               tensor.is_quantized();
    });
  return found;
}

/// PyTorch's error, and the operands' shapes.
static std::string describeFailure(const TorchOp &op,
                                   llvm::ArrayRef<c10::IValue> inputs,
                                   const std::exception &exception) {
  std::string shapes;
  for (const c10::IValue &input : inputs)
    forEachTensor(input, [&](const at::Tensor &tensor) {
      shapes += shapes.empty() ? "" : ", ";
      shapes += c10::str(tensor.sizes(), " ", tensor.scalar_type());
    });
  return op.name + ": " + describeException(exception) +
         " (operands: " + shapes + ")";
}

/// Runs a view as a copy if the elements lie differently in memory than in the
/// run that was exported: that of the fast kernels of attention isn't the one
/// of their meta kernel.
bool OpRunner::viewAsCopy(const TorchOp &op, llvm::ArrayRef<c10::IValue> inputs,
                          c10::Stack &stack) {
  if (op.name != "aten::view" || inputs.size() != 2 || !inputs[0].isTensor() ||
      !inputs[1].isIntList())
    return false;
  at::Tensor self = inputs[0].toTensor();
  try {
    at::Tensor copy = self.reshape(inputs[1].toIntVector());
    table.refuseWrites(self, copy);
    stack = {copy};
    return true;
  } catch (const c10::Error &) { // the sizes don't fit
    return false;
  }
}

/// Numbers that PyTorch has wrapped become tensors of the host, which is how
/// PyTorch's frontend passes them beside meta tensors. A process with Python has
/// meta kernels in Python, for which their values are read; no value counts.
static void keepNumbersOnHost(c10::Stack &stack) {
  auto isNumber = [](const at::Tensor &tensor) {
    return tensor.defined() &&
           tensor.unsafeGetTensorImpl()->is_wrapped_number();
  };
  bool hasOthers = false;
  for (const c10::IValue &input : stack)
    forEachTensor(input, [&](const at::Tensor &tensor) {
      hasOthers |= tensor.defined() && !isNumber(tensor);
    });
  if (!hasOthers)
    return;
  for (c10::IValue &input : stack)
    input = mapTensors(input, [&](const at::Tensor &tensor) {
      if (!isNumber(tensor) || !tensor.is_meta())
        return tensor;
      at::Tensor number = at::full(
          {}, 1, tensor.options().device(at::kCPU).requires_grad(false));
      number.unsafeGetTensorImpl()->set_wrapped_number(true);
      return number;
    });
}

bool OpRunner::runOnMeta(const TorchOp &op, c10::Stack &stack) {
  std::vector<c10::IValue> inputs = stack;
  try {
    setDevices(stack, c10::kMeta);
    keepNumbersOnHost(stack);
    op.execute(stack);
    if (hasOpaqueTensors(stack))
      return reportOpaque(op);
    return true;
  } catch (const std::exception &exception) {
    if (viewAsCopy(op, inputs, stack))
      return true;
    if (!lacksMetaKernel(exception) && !areSmallAndEmpty(inputs)) {
      problem(ImportProblem::Failed, op.place,
              describeFailure(op, inputs, exception));
      return false;
    }
  }
  // Without a meta kernel, run on simple data of the same shape: zeros are
  // valid indices everywhere, and ones are valid divisors.
  for (int value : {0, 1}) {
    stack.clear();
    for (const c10::IValue &input : inputs)
      stack.push_back(mapTensors(input, [&](const at::Tensor &tensor) {
        std::vector<int64_t> sizes = tensor.sizes().vec();
        for (auto [size, stride] : llvm::zip_equal(sizes, tensor.strides()))
          if (stride == 0 && size > 1) // expanded
            size = 1;
        return at::full(sizes, value,
                        tensor.options().device(at::kCPU).requires_grad(false))
            .expand(tensor.sizes());
      }));
    setDevices(stack, c10::kCPU);
    try {
      op.execute(stack);
    } catch (const std::exception &exception) {
      if (value == 0)
        continue;
      problem(ImportProblem::Failed, op.place,
              op.name + ": " + describeException(exception));
      return false;
    }
    break;
  }
  if (hasOpaqueTensors(stack))
    return reportOpaque(op);
  for (c10::IValue &output : stack)
    output = mapTensors(output, makeMeta);
  if (isInPlace(*op.schema))
    stack = {inputs[0]};
  return true;
}

bool OpRunner::reportOpaque(const TorchOp &op) {
  problem(ImportProblem::UnsupportedOp, op.place,
          "unsupported op '" + c10::toString(*op.schema) +
              "': its result is sparse, nested or quantized");
  return false;
}

/// Replaces tensors by those with the values after all writes so far.
bool OpRunner::resolveTensors(const TorchOp &op,
                              std::vector<c10::IValue> &inputs) {
  std::string why;
  for (c10::IValue &input : inputs)
    input = mapTensors(input, [&](const at::Tensor &tensor) {
      at::Tensor now = table.current(tensor, why);
      return now.defined() ? now : tensor;
    });
  if (!why.empty())
    problem(ImportProblem::UnsupportedOp, op.place,
            op.name +
                " reads a view that was written through another tensor, "
                "and the importer can't update it: " +
                why);
  return why.empty();
}

/// Tracing turns Python's numbers into 0-d tensors. In type promotion they must
/// stay as weak as numbers: int tensor + 1.5 has the default float type.
static void wrapNumbers(const TorchOp &op, std::vector<c10::IValue> &inputs) {
  if (op.literals.none())
    return;
  // With one operand there is nothing to promote, and the result of a
  // conversion is a tensor.
  if (llvm::count_if(inputs,
                     [](const c10::IValue &v) { return v.isTensor(); }) < 2)
    return;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!op.literals.test(i) || !input.isTensor() ||
        !input.toTensor().defined() || input.toTensor().dim() != 0)
      continue;
    at::Tensor number = input.toTensor().clone();
    if (number.scalar_type() != at::kDouble &&
        number.scalar_type() != at::kLong)
      continue;
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    input = number;
  }
}

void OpRunner::poison(llvm::ArrayRef<c10::IValue> outputs) {
  for (const c10::IValue &output : outputs)
    forEachTensor(output, [&](const at::Tensor &tensor) {
      if (tensor.is_meta())
        table.trackPoison(tensor);
    });
}

/// Runs ops on numbers, lists, shapes and constants: PyTorch itself computes
/// the result.
OpRunner::Results OpRunner::runOnData(const TorchOp &op, c10::Stack stack) {
  StringRef kind = shortName(op);
  double repeated = countRepeated(kind, stack);
  if (!hasRoom(op.place, repeated))
    return std::nullopt;
  // A list that grows isn't new, so count its elements here.
  if (kind.ends_with("_") || kind == "extend")
    countElements(static_cast<int64_t>(repeated));
  if (std::string why = checkDivision(kind, stack); !why.empty()) {
    problem(ImportProblem::Failed, op.place, op.name + ": " + why);
    return std::nullopt;
  }
  try {
    setDevices(stack, c10::kCPU);
    // The parts of a composite op may write what others have computed.
    if (mayShareRepeats && composite.empty())
      runSharingRepeats(op, stack);
    else
      op.execute(stack);
    if (op.schema && separatesResults(baseName(*op.schema)))
      for (c10::IValue &output : stack)
        output = mapTensors(
            output, [](const at::Tensor &tensor) { return tensor.clone(); });
    if (!hasOpaqueTensors(stack))
      return stack;
    reportOpaque(op);
  } catch (const std::exception &exception) {
    problem(ImportProblem::Failed, op.place,
            op.name + ": " + describeException(exception));
  }
  return std::nullopt;
}

/// The data of the constants for which meta tensors stand.
c10::Stack OpRunner::unwrapConstants(c10::Stack values) {
  for (c10::IValue &value : values)
    value = mapTensors(value, [&](const at::Tensor &tensor) {
      TrackedTensor *tracked = table.find(tensor);
      return tracked && tracked->isConstant() ? tracked->data : tensor;
    });
  return values;
}

namespace {
/// Ends the kernel of a composite op, a part of which has a problem or unknown
/// results.
struct PartFailed : std::exception {};
} // namespace

/// One op that the kernel of `whole` calls. The kernel expects tensors of one
/// device, so it gets meta tensors for constants as well.
void OpRunner::runPart(const TorchOp &whole, const c10::OperatorHandle &handle,
                       c10::Stack &stack) {
  if (++numParts > kMaxParts) {
    std::string name = std::exchange(composite, "");
    problem(ImportProblem::Failed, whole.place,
            "'" + name + "' consists of more than " + llvm::Twine(kMaxParts) +
                " ops; it needs shorter operands");
    throw PartFailed();
  }
  stack = unwrapConstants(std::move(stack));
  TorchOp part;
  part.name = handle.schema().name();
  part.schema = &handle.schema();
  part.execute = [&](c10::Stack &stack) { handle.callBoxed(stack); };
  part.isRandom = isRandom(handle.schema(), stack);
  part.place = whole.place;
  size_t before = problems.size();
  Results results = run(part, stack);
  if (!results || problems.size() > before)
    throw PartFailed();
  stack = std::move(*results);
  for (c10::IValue &result : stack)
    result = mapTensors(result, [&](const at::Tensor &tensor) {
      return tensor.is_meta() ? tensor : table.standIn(tensor);
    });
}

/// Whether each result comes from an op that the importer has seen.
bool OpRunner::areTracked(llvm::ArrayRef<c10::IValue> results) {
  bool isTracked = true;
  for (const c10::IValue &result : results)
    forEachTensor(result, [&](const at::Tensor &tensor) {
      isTracked &= !tensor.is_meta() || table.find(tensor);
    });
  return isTracked;
}

/// Results without values, for an op that has been reported. Nothing more is
/// reported if PyTorch can't run it.
OpRunner::Results OpRunner::runUnsupported(const TorchOp &op,
                                           c10::Stack stack) {
  size_t before = problems.size();
  bool done = runOnMeta(op, stack);
  problems.resize(before);
  if (!done)
    return std::nullopt;
  poison(stack);
  return stack;
}

/// A random result that nothing uses is no problem: models draw which layers to
/// skip in training, but also in evaluation. Only its shape is computed, because
/// numbers that are drawn here would become constants of the program. Ops that
/// write in place, and ops whose results aren't tensors, are always an error.
OpRunner::Results OpRunner::runRandom(const TorchOp &op, c10::Stack stack) {
  std::string text = "unsupported op '" + c10::toString(*op.schema) +
                     "': its result is random";
  auto toMeta = [](const at::Tensor &tensor) {
    return tensor.is_meta() ? tensor : makeMeta(tensor);
  };
  for (auto [argument, input] :
       llvm::zip_equal(op.schema->arguments(), stack)) {
    input = mapTensors(input, toMeta);
    if (input.isNone() && argument.name() == "device")
      input = c10::Device(c10::kMeta);
  }
  Results results = op.schema->is_mutable()
                        ? std::nullopt
                        : runUnsupported(op, std::move(stack));
  bool hasTensors = false;
  if (results)
    for (c10::IValue &result : *results)
      result = mapTensors(result, [&](const at::Tensor &tensor) {
        hasTensors = true;
        at::Tensor meta = toMeta(tensor);
        table.trackPoison(meta).missing = text + ", and is used";
        return meta;
      });
  if (hasTensors)
    return results;
  problem(ImportProblem::UnsupportedOp, op.place, text);
  return std::nullopt;
}

OpRunner::Results OpRunner::runParts(const TorchOp &op, c10::Stack stack) {
  bool isOutermost = composite.empty();
  if (isOutermost) {
    composite = op.name;
    numParts = 0;
  }
  auto leave = llvm::make_scope_exit([&] {
    if (isOutermost)
      composite.clear();
  });
  std::vector<c10::IValue> inputs = stack;
  try {
    setDevices(stack, c10::kMeta);
    runComposite(*op.schema, stack,
                 [&](const c10::OperatorHandle &handle, c10::Stack &stack) {
                   runPart(op, handle, stack);
                 });
    if (areTracked(stack))
      return unwrapConstants(std::move(stack));
    problem(ImportProblem::UnsupportedOp, op.place,
            "unsupported op '" + c10::toString(*op.schema) +
                "': no handler imports it, and PyTorch doesn't compute it by "
                "other ops alone");
  } catch (const PartFailed &) {
  } catch (const std::exception &exception) {
    problem(ImportProblem::Failed, op.place,
            describeFailure(op, inputs, exception));
  }
  return runUnsupported(op, std::move(inputs));
}

/// What to do about an op of another library.
static std::string adviseOnCustomOp(StringRef name) {
  auto [library, op] = name.split("::");
  if (op.empty() || library == "aten" || library == "prim")
    return "";
  return (", which isn't PyTorch's: replace it by PyTorch's ops, as "
          "program.run_decompositions({torch.ops." +
          library + "." + op + ".default: function}) does")
      .str();
}

bool OpRunner::isKnown(const c10::FunctionSchema &schema) const {
  return handlers.count(baseName(schema)) || isComposite(schema);
}

OpRunner::Results OpRunner::run(const TorchOp &op,
                                std::vector<c10::IValue> inputs) {
  const c10::FunctionSchema *schema = op.schema;
  if (!op.execute) {
    problem(ImportProblem::UnsupportedOp, op.place,
            "unsupported op '" + op.name + "'" + adviseOnCustomOp(op.name));
    return std::nullopt;
  }
  bool computes = computesTensors(schema);
  if ((computes || readsData(op.name)) && !resolveTensors(op, inputs))
    return std::nullopt;
  if (computes)
    wrapNumbers(op, inputs);
  bool onModelData = false, poisoned = false;
  for (const c10::IValue &input : inputs)
    forEachTensor(input, [&](const at::Tensor &tensor) {
      onModelData |= tensor.is_meta();
      if (tensor.is_meta()) {
        TrackedTensor *tracked = table.find(tensor);
        poisoned |= !tracked || tracked->poisoned;
        if (tracked && !tracked->missing.empty())
          problem(ImportProblem::UnsupportedOp, op.place, tracked->missing);
      }
    });

  if (onModelData && readsData(op.name)) {
    if (!poisoned)
      problem(ImportProblem::DataDependent, op.place,
              "data-dependent control flow: " + op.name +
                  " needs the value of a tensor, which only a run knows");
    return std::nullopt;
  }
  if (op.name == "prim::device" && onModelData)
    return std::vector<c10::IValue>{c10::Device(c10::kCPU)};
  if (schema && onModelData && StringRef(op.name).contains("nested_tensor")) {
    problem(ImportProblem::UnsupportedOp, op.place,
            "unsupported op '" + op.name +
                "': PyTorch's fast path for nn.TransformerEncoder packs a "
                "padded batch by it; make the encoder with "
                "enable_nested_tensor=False, or, for a model that is traced, "
                "call torch.backends.mha.set_fastpath_enabled(False) before "
                "that");
    return std::nullopt;
  }
  c10::Stack stack = inputs;
  if (computes && onModelData && usesShapeAlone(baseName(*schema))) {
    at::Tensor self = inputs[0].toTensor();
    stack[0] =
        at::empty_strided(self.sizes(), self.strides(),
                          self.options().device(at::kCPU).requires_grad(false));
    onModelData = llvm::any_of(llvm::ArrayRef(stack), [](const c10::IValue &v) {
      return v.isTensor() && v.toTensor().is_meta();
    });
  }
  if (schema && op.isRandom) {
    if (!isKnown(*schema))
      return runRandom(op, std::move(stack));
    // Dropout and attention with dropout: the handler deals with randomness, so
    // the op isn't folded.
    onModelData = true;
  }

  if (!onModelData || !computes)
    return runOnData(op, std::move(stack));

  if (hasDataDependentShape(baseName(*schema))) {
    problem(ImportProblem::DataDependent, op.place,
            "the shape of the result of '" + c10::toString(*schema) +
                "' depends on the data");
    return std::nullopt;
  }
  if (isInPlace(*schema) && inputs[0].isTensor() &&
      !inputs[0].toTensor().is_meta()) {
    table.promote(inputs[0].toTensor());
    if (!resolveTensors(op, inputs))
      return std::nullopt;
  }
  for (c10::IValue &input : inputs)
    input = mapTensors(input, [&](const at::Tensor &tensor) {
      return tensor.is_meta() ? tensor : table.standIn(tensor);
    });
  stack = inputs;
  b.setLoc(makeLocation(b.getContext(), currentFqn(), op.place));
  if (!handlers.count(baseName(*schema)) && isComposite(*schema))
    return runParts(op, std::move(stack));
  if (!handlers.count(baseName(*schema))) {
    check(op);
    return runUnsupported(op, std::move(stack));
  }
  if (!runOnMeta(op, stack))
    return std::nullopt;
  if (separatesResults(baseName(*schema)))
    for (c10::IValue &output : stack)
      output = mapTensors(output, makeMeta);
  Emission emission = poisoned ? Emission::Failed : emit(op, inputs, stack);
  if (emission == Emission::Decomposed)
    return runParts(op, std::move(inputs));
  if (emission == Emission::Failed)
    poison(stack);
  return stack;
}
