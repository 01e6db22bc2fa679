//===- CudaAttention.cpp - Attention on a CUDA device ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaAttention.h"

#include "cuda/DecodePlan.h"
#include "support/Division.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt_kernels;

/// Attention, or its gradient, of one form.
struct Attention::Form {
  AttentionUse use;
  // Used if there are few rows.
  std::optional<DecodePlan> decode;
  std::shared_ptr<std::byte> counters;
  // Used if cuDNN computes it.
  DnnCalls calls;
  std::optional<DnnPlan> forward, backward;
  AddedMask mask;                        ///< that is made for it, if any
  int64_t outputBytes = 0, rowBytes = 0; ///< in the workspace, for one call
  int64_t planBytes = 0;
};

Attention::Attention(ContextPtr context, Kernels &own, AttentionLibrary library)
    : context(std::move(context)), own(own), library(library) {}

Attention::~Attention() {
  forms.clear();
  if (handle)
    context->free([&](const Driver &) {
      const Dnn &dnn = Dnn::get();
      dnn.check(dnn.cudnnDestroy(handle), "cudnnDestroy");
    });
}

void Attention::beginRun() {
  for (auto &[key, form] : forms)
    form->use.calls = 0;
}

std::vector<AttentionUse> Attention::getUses() const {
  std::vector<AttentionUse> uses;
  for (const auto &[key, form] : forms)
    if (form->use.calls > 0)
      uses.push_back(form->use);
  return uses;
}

/// Rounds up the size of a part of a workspace.
static int64_t align(int64_t bytes) { return alignTo(bytes, 256); }

static int64_t countElements(const DnnShape &shape) {
  int64_t count = 1;
  for (int64_t size : shape.sizes)
    count *= size;
  return count;
}

/// "bf16, 24 heads, 64 rows, 64 columns, depth 32, width 32, causal".
static std::string describe(const tprt_attention_args &args) {
  int64_t heads = 1;
  for (int64_t size : args.batch)
    heads *= size;
  std::string text(toString(static_cast<Dtype>(args.dtype)));
  for (auto [count, what] :
       {std::pair(heads, " heads"), std::pair(args.rows, " rows"),
        std::pair(args.columns, " columns")})
    text += ", " + std::to_string(count) + what;
  text += ", depth " + std::to_string(args.depth) + ", width " +
          std::to_string(args.width);
  if (args.causal)
    text += ", causal";
  if (args.mask != TPRT_NO_MASK)
    text += args.mask == TPRT_ADDED_MASK ? ", added mask" : ", boolean mask";
  return text;
}

/// Makes the plans, or throws an error that says why there are none.
void Attention::plan(Form &form, const tprt_attention_args &args,
                     DnnStrides strides, bool isAligned, CUstream stream) {
  if (args.mask == TPRT_BOOLEAN_MASK) {
    form.mask = layOutAddedMask(args);
    strides[DnnMask] = &form.mask.strides;
  }
  form.calls = toDnnCalls(args, strides);
  if (!isAligned)
    throw executionError("an operand isn't aligned to 16 bytes");
  const Dnn &dnn = Dnn::get();
  if (!handle) {
    dnn.check(dnn.cudnnCreate(&handle), "cudnnCreate");
    dnn.check(dnn.cudnnSetStream(handle, stream), "cudnnSetStream");
  }
  const DnnAttention &attention = form.calls.attention;
  DnnGraph forward = attention.makeForward();
  forward.finish(handle);
  form.forward.emplace(handle, forward);
  form.planBytes = form.forward->getWorkspaceBytes();
  form.rowBytes = align(countElements(attention.operands.at(DnnStatistics)) *
                        sizeof(float));
  if (strides.contains(DnnGradient)) {
    DnnGraph backward = attention.makeBackward();
    backward.finish(handle);
    form.backward.emplace(handle, backward);
    form.planBytes =
        std::max(form.planBytes, form.backward->getWorkspaceBytes());
    constexpr int64_t elementBytes = 2;
    form.outputBytes =
        align(countElements(attention.operands.at(DnnOutput)) * elementBytes);
  }
  form.use.library = "cuDNN " + dnn.getVersion();
}

Attention::Form &Attention::getForm(const tprt_attention_args &args,
                                    const std::string &key,
                                    const DnnStrides &strides, bool isAligned,
                                    CUstream stream) {
  std::string name = key + (isAligned ? '1' : '0');
  if (auto found = forms.find(name); found != forms.end())
    return *found->second;
  auto form = std::make_unique<Form>();
  form->use = {strides.contains(DnnGradient) ? "attention_gradient"
                                             : "attention",
               describe(args), "own", "", 0};
  if (library != AttentionLibrary::CuDnn && isAligned &&
      !strides.contains(DnnGradient))
    form->decode = planDecode(args, *context);
  if (library == AttentionLibrary::Own) {
    form->use.reason = "asked for";
  } else if (form->decode && args.mask != TPRT_NO_MASK) {
    form->use.reason = "few rows with a mask";
  } else {
    try {
      plan(*form, args, strides, isAligned, stream);
      form->decode.reset();
    } catch (const Error &error) {
      if (library == AttentionLibrary::CuDnn)
        throw executionError("cuDNN is asked for, but doesn't compute this " +
                             form->use.op + " (" + form->use.form +
                             "): " + error.what());
      form->forward.reset();
      form->backward.reset();
      form->use.reason = error.what();
    }
  }
  if (form->decode && form->decode->counterBytes > 0) {
    form->counters = allocate(context, form->decode->counterBytes);
    fill(*context, form->counters.get(), 0, 1, form->decode->counterBytes,
         stream);
  }
  return *(forms[name] = std::move(form));
}

/// The bytes of `args` as a key.
template <typename Args>
static std::string getKey(const Args &args) {
  return {reinterpret_cast<const char *>(&args), sizeof(args)};
}

/// Whether operands are aligned to 16 bytes. A boolean mask needn't be.
static bool isAligned(const tprt_attention_args &args,
                      const std::map<int64_t, const void *> &operands) {
  return std::all_of(operands.begin(), operands.end(), [&](auto entry) {
    return (entry.first == DnnMask && args.mask == TPRT_BOOLEAN_MASK) ||
           reinterpret_cast<uintptr_t>(entry.second) % 16 == 0;
  });
}

/// Makes the mask that cuDNN gets at the beginning of `memory`, if it
/// isn't the given one. Returns the rest of it.
std::byte *Attention::makeMask(const Form &form,
                               const tprt_attention_args &args,
                               std::map<int64_t, const void *> &operands,
                               std::byte *memory, CUstream stream) {
  if (form.mask.numRows > 0) {
    addMask(own, {args, form.mask.strides, operands.at(DnnMask), memory},
            form.mask.numRows, stream);
    operands[DnnMask] = memory;
  }
  return memory + align(form.mask.numBytes);
}

/// The operands of one of the calls.
static std::map<int64_t, void *>
offsetBy(const std::map<int64_t, const void *> &operands,
         const std::map<int64_t, int64_t> &offsets) {
  constexpr int64_t elementBytes = 2;
  std::map<int64_t, void *> result;
  for (auto [operand, address] : operands)
    result[operand] =
        reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(address) +
                                 offsets.at(operand) * elementBytes);
  return result;
}

/// Runs `forward`. If a mask hides a whole row, cuDNN's result for it is
/// unspecified. This sets it to 0, and its statistic, too; from that the
/// gradient computes weights of 0.
void Attention::runForward(const Form &form, const tprt_attention_args &args,
                           const std::map<int64_t, void *> &operands,
                           std::byte *workspace, CUstream stream) {
  form.forward->run(handle, operands, workspace);
  if (args.mask == TPRT_NO_MASK)
    return;
  const std::map<int64_t, DnnShape> &shapes = form.calls.attention.operands;
  const DnnShape &output = shapes.at(DnnOutput), &mask = shapes.at(DnnMask);
  HiddenRowsArguments arguments = {};
  arguments.batches = output.sizes[0];
  arguments.heads = output.sizes[1];
  arguments.rows = args.rows;
  arguments.columns = args.columns;
  arguments.width = args.width;
  for (size_t d = 0; d < 4; ++d) {
    arguments.maskStrides[d] = mask.sizes[d] == 1 ? 0 : mask.strides[d];
    arguments.outputStrides[d] = output.strides[d];
  }
  arguments.causal = args.causal;
  arguments.mask = operands.at(DnnMask);
  arguments.output = operands.at(DnnOutput);
  arguments.statistics = static_cast<float *>(operands.at(DnnStatistics));
  clearHiddenRows(own, arguments, static_cast<Dtype>(args.dtype), stream);
}

void Attention::run(const AttentionArguments &arguments, CUstream stream) {
  const tprt_attention_args &args = arguments.args;
  checkAttention(args);
  DnnStrides strides = {{DnnQuery, &args.query},
                        {DnnKey, &args.key},
                        {DnnValue, &args.value},
                        {DnnOutput, &args.output}};
  std::map<int64_t, const void *> operands = {{DnnQuery, arguments.query},
                                              {DnnKey, arguments.key},
                                              {DnnValue, arguments.value},
                                              {DnnOutput, arguments.output}};
  if (args.mask != TPRT_NO_MASK) {
    strides[DnnMask] = &args.mask_strides;
    operands[DnnMask] = arguments.mask;
  }
  Form &form =
      getForm(args, getKey(args), strides, isAligned(args, operands), stream);
  ++form.use.calls;
  if (form.decode) {
    DecodeArguments decode = form.decode->arguments;
    decode.query = arguments.query;
    decode.key = arguments.key;
    decode.value = arguments.value;
    decode.mask = arguments.mask;
    decode.output = arguments.output;
    decode.counters = reinterpret_cast<uint32_t *>(form.counters.get());
    decode.partials = reinterpret_cast<float *>(
        workspace.get(context, form.decode->partialBytes));
    return cuda::decode(own, *form.decode, decode, stream);
  }
  if (!form.forward)
    return attend(own, arguments, stream);
  std::byte *memory = workspace.get(
      context, align(form.mask.numBytes) + form.rowBytes + form.planBytes);
  memory = makeMask(form, args, operands, memory, stream);
  for (const std::map<int64_t, int64_t> &offsets : form.calls.offsets) {
    std::map<int64_t, void *> call = offsetBy(operands, offsets);
    call[DnnStatistics] = memory;
    runForward(form, args, call, memory + form.rowBytes, stream);
  }
}

void Attention::runGradient(const AttentionGradientArguments &arguments,
                            CUstream stream) {
  const tprt_attention_gradient_args &all = arguments.args;
  const tprt_attention_args &args = all.attention;
  checkAttention(args);
  DnnStrides strides = {{DnnQuery, &args.query},
                        {DnnKey, &args.key},
                        {DnnValue, &args.value},
                        {DnnGradient, &args.output},
                        {DnnQueryGradient, &all.query_gradient},
                        {DnnKeyGradient, &all.key_gradient},
                        {DnnValueGradient, &all.value_gradient}};
  std::map<int64_t, const void *> operands = {
      {DnnQuery, arguments.query},
      {DnnKey, arguments.key},
      {DnnValue, arguments.value},
      {DnnGradient, arguments.gradient},
      {DnnQueryGradient, arguments.queryGradient},
      {DnnKeyGradient, arguments.keyGradient},
      {DnnValueGradient, arguments.valueGradient}};
  if (args.mask != TPRT_NO_MASK) {
    strides[DnnMask] = &args.mask_strides;
    operands[DnnMask] = arguments.mask;
  }
  Form &form =
      getForm(args, getKey(all), strides, isAligned(args, operands), stream);
  ++form.use.calls;
  if (!form.backward) {
    AttentionGradientArguments copy = arguments;
    copy.statistics = workspace.get(context, getStatisticsBytes(args));
    return attendBackwards(own, copy, stream);
  }
  // The output and its statistics aren't kept from forward: they are computed
  // again.
  std::byte *memory =
      workspace.get(context, align(form.mask.numBytes) + form.outputBytes +
                                 2 * form.rowBytes + form.planBytes);
  memory = makeMask(form, args, operands, memory, stream);
  std::byte *statistics = memory + form.outputBytes;
  std::byte *rowSums = statistics + form.rowBytes;
  std::byte *rest = rowSums + form.rowBytes;
  for (const std::map<int64_t, int64_t> &offsets : form.calls.offsets) {
    std::map<int64_t, void *> call = offsetBy(operands, offsets);
    call[DnnOutput] = memory;
    call[DnnStatistics] = statistics;
    std::map<int64_t, void *> forward = call;
    for (int64_t unread :
         {DnnGradient, DnnQueryGradient, DnnKeyGradient, DnnValueGradient})
      forward.erase(unread);
    runForward(form, args, forward, rest, stream);
    call[DnnRowSums] = rowSums;
    form.backward->run(handle, call, rest);
  }
}
