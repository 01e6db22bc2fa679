//===- TorchScriptFuzzer.cpp - Any source as a TorchScript model ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text is the source of a module, as in
//
//     # x=2x4xf32 n=3xi64
//     def forward(self, x: Tensor, n: Tensor):
//         return self.child.forward(x)[n]
//     # child
//     def forward(self, x: Tensor):
//         return x @ self.w
//
// The first line says what the inputs are. What LibTorch's compiler accepts is
// imported and verifies, or is refused with an error.
//
// Archives aren't fuzzed: LibTorch's readers of them aren't hardened.
//
//===----------------------------------------------------------------------===//

#include "Import/Aten/TorchArchive.h"
#include "Import/TorchScript/TorchModule.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Logging.h>
#include <csetjmp>
#include <csignal>
#include <string>

using namespace mlir;
using namespace mlir::tp;
namespace jit = torch::jit;

//===----------------------------------------------------------------------===//
// What is LibTorch's
//===----------------------------------------------------------------------===//

namespace {
constexpr size_t kMaxTensorBytes = size_t(64) << 20;
constexpr const char *kNoMemory = "the fuzzer's limit of a tensor's size";

/// A model may compute constants of any size; here there is little memory.
struct LimitedAllocator : at::Allocator {
  at::DataPtr allocate(size_t size) override {
    TORCH_CHECK(size <= kMaxTensorBytes, kNoMemory);
    return inner->allocate(size);
  }
  at::DeleterFnPtr raw_deleter() const override { return inner->raw_deleter(); }
  void copy_data(void *to, const void *from, size_t size) const override {
    default_copy_data(to, from, size);
  }
  at::Allocator *inner = c10::GetDefaultCPUAllocator();
};
} // namespace

// LibTorch's compiler evaluates divisions of literals, also by 0.
static sigjmp_buf compiling;
static volatile sig_atomic_t isCompiling = 0;

static void onDivision(int) {
  if (isCompiling)
    siglongjmp(compiling, 1);
  abort();
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  static LimitedAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/255);
  // Most inputs are refused; finding the symbols of a stack takes long.
  c10::SetStackTraceFetcher([]() -> std::string { return ""; });
  return 0;
}

/// LibTorch keeps what it interns, and a compilation that ends by a signal is
/// left as it is.
extern "C" const char *__asan_default_options() { return "detect_leaks=0"; }

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

static void registerTensors(jit::Module &module, const at::Tensor &shared) {
  auto range = [](at::IntArrayRef shape) {
    return at::arange(shape[0] * (shape.size() > 1 ? shape[1] : 1), at::kFloat)
        .reshape(shape);
  };
  module.register_parameter("w", range({4, 4}), /*is_buffer=*/false);
  module.register_parameter("b", range({4}), /*is_buffer=*/false);
  module.register_parameter("e", shared, /*is_buffer=*/false);
  module.register_buffer("n", at::arange(3, at::kLong));
  module.register_buffer("m", at::ones({4, 4}, at::kBool).tril());
  module.register_buffer("u", at::ones({4}, at::kByte));
  module.register_buffer("h", at::ones({4}, at::kHalf));
  module.register_buffer("z", at::zeros({0, 4}));
  module.register_buffer("s", at::ones({}));
  module.register_buffer("c", at::ones({4}, at::kComplexFloat));
  module.register_buffer("wide", at::zeros({1}).expand({int64_t(1) << 33}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_attribute("size", c10::IntType::get(), int64_t(4));
}

static std::optional<jit::Module> compile(StringRef root, StringRef child) {
  struct sigaction action = {}, previous;
  action.sa_handler = onDivision;
  sigaction(SIGFPE, &action, &previous);
  std::optional<jit::Module> result;
  if (sigsetjmp(compiling, /*savemask=*/1) == 0) {
    isCompiling = 1;
    try {
      auto unit = std::make_shared<jit::CompilationUnit>();
      at::Tensor shared = at::ones({5, 4}).cumsum(0);
      jit::Module inner("__torch__.Child", unit), outer("__torch__.Root", unit);
      registerTensors(inner, shared);
      registerTensors(outer, shared);
      inner.define(child.empty()
                       ? "def forward(self, x):\n    return x + self.b\n"
                       : child.str());
      outer.register_module("child", inner);
      outer.define(root.str());
      result = outer;
    } catch (const std::exception &) { // what LibTorch refuses
    }
  }
  isCompiling = 0;
  sigaction(SIGFPE, &previous, nullptr);
  return result;
}

/// Whether a loop may be long: as many steps as are allowed take too long here.
/// A `while` mutates into one without end.
static bool isLong(StringRef source) {
  for (StringRef line : llvm::split(source, '\n')) {
    if (line.contains("while"))
      return true;
    if (!line.contains("range"))
      continue;
    for (; !line.empty(); line = line.drop_front()) {
      StringRef digits = line.take_while(llvm::isDigit);
      if (digits.size() > 3)
        return true;
      line = line.drop_front(digits.size());
      if (line.empty())
        break;
    }
  }
  return false;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  auto [header, source] = text.split('\n');
  // LibTorch's parser calls itself for each level, for which the stack must
  // suffice.
  if (!header.consume_front("#") || source.contains('\0') || isLong(source) ||
      source.contains("((((((((((") || source.contains("[[[[[[[[[["))
    return -1;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::vector<InputSpec> inputs;
  SmallVector<StringRef> specs;
  header.split(specs, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef spec : specs) {
    auto input = parseInputSpec(&context, spec);
    if (!input) {
      llvm::consumeError(input.takeError());
      return -1;
    }
    inputs.push_back(*input);
  }
  auto [root, child] = source.split("# child\n");
  auto module = compile(root, child);
  if (!module)
    return -1;
  std::string message;
  try {
    auto model = importTorchModule(&context, *module, "model", inputs,
                                   llvm::nulls(), ForwardSignatures());
    if (model) {
      if (failed(verify(*model->module)))
        abort();
      model->module->print(llvm::nulls());
      // A larger one ends the process.
      if (llvm::all_of(model->weights, [](const WeightTensor &weight) {
            return weight.bytes <= kMaxTensorBytes;
          }))
        writeSafetensors(llvm::nulls(), model->weights);
      return 0;
    }
    message = llvm::toString(model.takeError());
  } catch (const c10::Error &error) {
    if (StringRef(error.what()).contains(kNoMemory))
      return 0;
    llvm::errs() << text << "\n" << describeException(error) << "\n";
    abort();
  }
  if (!StringRef(message).contains("the imported IR is invalid") &&
      !StringRef(message).contains("internal error"))
    return 0;
  llvm::errs() << text << "\n" << message << "\n";
  abort();
}
