//===- TorchComposite.cpp - ops that consist of other ops -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's dispatcher asks the kernels of modes before those of devices. While
// a composite op runs, a mode is on whose kernel passes each op on to the
// importer. The mode is TESTING_ONLY_GenericMode, for which PyTorch has no
// kernels of its own.
//
//===----------------------------------------------------------------------===//

#include "TorchComposite.h"
#include "llvm/Support/SaveAndRestore.h"
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

using namespace mlir::tp;
using c10::DispatchKey;
using c10::DispatchKeySet;

static constexpr DispatchKey kMode = DispatchKey::TESTING_ONLY_GenericMode;

/// Who gets the parts of the composite op that runs.
static thread_local PartRunner *partRunner = nullptr;

/// The calling thread's keys, with the mode on or off. Autograd's kernels are
/// left out: gradients are the business of the compiler.
static c10::impl::LocalDispatchKeySet getKeys(bool isOn) {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.included_ =
      isOn ? keys.included_.add(kMode) : keys.included_.remove(kMode);
  keys.excluded_ =
      keys.excluded_ | c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  return keys;
}

/// The mode's kernel for all ops.
static void passOn(const c10::OperatorHandle &op, DispatchKeySet,
                   c10::Stack *stack) {
  c10::impl::ForceDispatchKeyGuard guard(getKeys(/*isOn=*/false));
  c10::Stack values = torch::jit::pop(*stack, op.schema().arguments().size());
  (*partRunner)(op, values);
  for (c10::IValue &value : values)
    stack->push_back(std::move(value));
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&passOn>());
}

static c10::OperatorHandle findHandle(const c10::FunctionSchema &schema) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      schema.name().c_str(), schema.overload_name().c_str());
}

bool mlir::tp::isComposite(const c10::FunctionSchema &schema) {
  auto handle = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  // Kernels for gradients don't check their arguments; models don't call them.
  if (!handle || llvm::StringRef(schema.name()).ends_with("_backward"))
    return false;
  // An op with a kernel for meta tensors isn't computed by other ops there.
  if (handle->hasKernelForDispatchKey(DispatchKey::Meta))
    return false;
  if (handle->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
    return true;
  // Kernels of the other kind may also draw numbers.
  return !handle->hasTag(at::Tag::nondeterministic_seeded) &&
         (handle->hasKernelForDispatchKey(
              DispatchKey::CompositeExplicitAutograd) ||
          handle->hasKernelForDispatchKey(
              DispatchKey::CompositeExplicitAutogradNonFunctional));
}

void mlir::tp::runComposite(const c10::FunctionSchema &schema,
                            c10::Stack &stack, PartRunner runPart) {
  llvm::SaveAndRestore runner(partRunner, &runPart);
  c10::impl::ForceDispatchKeyGuard guard(getKeys(/*isOn=*/true));
  findHandle(schema).redispatchBoxed(DispatchKeySet(DispatchKey::Meta), &stack);
}
