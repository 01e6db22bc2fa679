//===- CudaStream.cpp - One rank's stream on a CUDA device ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaStream.h"

#include "cuda/Reduction.h"
#include "support/Patience.h"

#include <cassert>
#include <thread>

using namespace tprt;
using namespace tprt::cuda;

ProgramKernels::ProgramKernels(const ContextPtr &context,
                               const tprt_device_code &code)
    : code(code) {
  if (code.num_kernels > 0)
    module = std::make_unique<Module>(context, findImages(code, *context));
  for (int32_t i = 0; i < code.num_kernels; ++i)
    kernels.push_back(&module->getKernel(code.kernels[i]));
}

DeviceState::DeviceState(ContextPtr context,
                         const std::vector<const tprt_device_code *> &codes,
                         const CudaOptions &options, const GemmOptions &gemm,
                         bool mayMeasure)
    : context(std::move(context)), options(options), own(this->context),
      algorithms(gemm, mayMeasure, *this->context) {
  if (options.attention == AttentionLibrary::CuDnn)
    Dnn::get(); // throws now if it is missing
  for (const tprt_device_code *code : codes)
    programs.emplace_back(this->context, *code);
}

Graph::Graph(ContextPtr context, CUgraph graph) : context(std::move(context)) {
  const Driver &driver = this->context->getDriver();
  CUresult result = driver.cuGraphInstantiate(&executable, graph, 0);
  driver.cuGraphDestroy(graph);
  driver.check(result, "cuGraphInstantiate");
}

Graph::~Graph() {
  context->free([&](const Driver &driver) {
    TPRT_CUDA(driver, cuGraphExecDestroy, executable);
  });
}

CudaStream::CudaStream(std::shared_ptr<DeviceState> state)
    : state(std::move(state)), program(&this->state->programs.front()),
      stream(makeStream(getContext())),
      errorRecord(allocate(getContext(), sizeof(tprt_device_error))),
      reported(allocatePinned(getContext(), sizeof(tprt_device_error))),
      products(getContext(), this->state->own, this->state->algorithms,
               this->state->options.tf32),
      attentions(getContext(), this->state->own,
                 this->state->options.attention) {}

CudaStream::~CudaStream() {
  if (isCaptured) // a run has failed
    state->isCapturing = false;
  // Running work still uses the memory that is freed next. If that work fails,
  // its run says so.
  getContext()->free(
      [&](const Driver &driver) { driver.cuStreamSynchronize(stream.get()); });
}

//===----------------------------------------------------------------------===//
// What collectives consist of
//===----------------------------------------------------------------------===//

void CudaStream::copy(void *dst, const void *src, int64_t bytes) {
  auto lock = state->lockCapture();
  if (bytes > 0)
    TPRT_CUDA(getDriver(), cuMemcpyDtoDAsync, toDevice(dst), toDevice(src),
              bytes, get());
}

void CudaStream::copy(const StridedCopy &strided, int64_t elementBytes,
                      const std::byte *src, std::byte *dst) {
  auto lock = state->lockCapture();
  constexpr int64_t maxPitch = INT32_MAX; // of all devices
  strided.forEachStrip([&](int64_t a, int64_t b, int64_t length, int64_t count,
                           int64_t strideA, int64_t strideB) {
    const std::byte *from = src + a * elementBytes;
    std::byte *to = dst + b * elementBytes;
    int64_t pitchA = strideA * elementBytes, pitchB = strideB * elementBytes;
    if (count == 1 || std::max(pitchA, pitchB) > maxPitch) {
      for (int64_t i = 0; i < count; ++i)
        copy(to + i * pitchB, from + i * pitchA, length * elementBytes);
      return;
    }
    CUDA_MEMCPY2D rows = {};
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.srcDevice = toDevice(from);
    rows.dstDevice = toDevice(to);
    rows.srcPitch = pitchA;
    rows.dstPitch = pitchB;
    rows.WidthInBytes = length * elementBytes;
    rows.Height = count;
    TPRT_CUDA(getDriver(), cuMemcpy2DAsync, &rows, get());
  });
}

void CudaStream::reduce(Reduction reduction, Dtype dtype,
                        const std::vector<const std::byte *> &operands,
                        const std::vector<std::byte *> &dsts, int64_t count) {
  auto lock = state->lockCapture();
  if (count > 0)
    cuda::reduce(state->own, reduction, dtype, operands, dsts, count, get());
}

std::byte *CudaStream::getStaging(int64_t bytes) {
  return staging.get(getContext(), bytes);
}

static CUevent toEvent(Event *event) {
  return reinterpret_cast<CUevent>(event);
}

Event *CudaStream::announce() {
  auto lock = state->lockCapture();
  if (numAnnounced == events.size())
    events.push_back(makeEvent(getContext()));
  CUevent event = events[numAnnounced++].get();
  TPRT_CUDA(getDriver(), cuEventRecord, event, get());
  return reinterpret_cast<Event *>(event);
}

void CudaStream::waitFor(Event *event) {
  auto lock = state->lockCapture();
  TPRT_CUDA(getDriver(), cuStreamWaitEvent, get(), toEvent(event), 0);
}

CUstream CudaStream::get() {
  if (products.holdsProducts()) {
    auto lock = state->lockCapture();
    products.flush(stream.get());
  }
  return stream.get();
}

//===----------------------------------------------------------------------===//
// What programs call
//===----------------------------------------------------------------------===//

void CudaStream::launch(int32_t kernel, const tprt_launch_args &args,
                        void *const *arguments) {
  auto lock = state->lockCapture();
  int32_t count = program->kernels.size();
  if (kernel < 0 || kernel >= count)
    throw executionError("the program launches kernel " +
                         std::to_string(kernel) + ", but it has " +
                         std::to_string(count));
  program->kernels[kernel]->launch(args, arguments, get());
}

void CudaStream::gemm(const tprt_gemm_args &args,
                      const GemmOperands &operands) {
  auto lock = state->lockCapture();
  // Not get(): the product may join those that are held.
  products.run(args, operands, stream.get(), /*mayWait=*/!state->isCapturing);
}

void CudaStream::attention(const tprt_attention_args &args, const void *query,
                           const void *key, const void *value, const void *mask,
                           void *output) {
  auto lock = state->lockCapture();
  attentions.run({args, query, key, value, mask, output}, get());
}

void CudaStream::attentionGradient(const tprt_attention_gradient_args &args,
                                   const void *query, const void *key,
                                   const void *value, const void *mask,
                                   const void *gradient, void *queryGradient,
                                   void *keyGradient, void *valueGradient) {
  auto lock = state->lockCapture();
  attentions.runGradient({args, query, key, value, mask, gradient,
                          queryGradient, keyGradient, valueGradient,
                          /*statistics=*/nullptr},
                         get());
}

void CudaStream::fill(void *dst, uint64_t pattern, int32_t width,
                      int64_t count) {
  auto lock = state->lockCapture();
  cuda::fill(*getContext(), dst, pattern, width, count, get());
}

GemmUses CudaStream::getGemmUses() const {
  return {products.getUses(), state->algorithms.getFile(),
          state->algorithms.getNote()};
}

tprt_device_error *CudaStream::getErrorRecord() {
  return reinterpret_cast<tprt_device_error *>(errorRecord.get());
}

CudaStream &CudaStream::getCommunication(size_t index) {
  while (communication.size() <= index)
    communication.push_back(std::make_unique<CudaStream>(state));
  return *communication[index];
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

void CudaStream::beginRun() {
  getContext()->makeCurrent();
  numAnnounced = 0;
  for (auto &beside : communication)
    beside->numAnnounced = 0;
  attentions.beginRun();
  products.beginRun();
  if (reportsErrors())
    fill(&getErrorRecord()->site, ~uint64_t(0), sizeof(int32_t), 1);
}

void CudaStream::endRun() {
  auto lock = state->lockCapture();
  get(); // a captured run ends here
  if (!reportsErrors())
    return;
  TPRT_CUDA(getDriver(), cuMemcpyDtoHAsync, reported.get(),
            toDevice(getErrorRecord()), sizeof(tprt_device_error), get());
}

void CudaStream::dropOutgrown() {
  staging.dropOutgrown();
  attentions.dropOutgrown();
  for (auto &beside : communication)
    beside->dropOutgrown();
}

void CudaStream::finish(const Poll &poll) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now(), last = start;
  Patience waited;
  // Poll without sleeping while a run is short.
  constexpr std::chrono::milliseconds patience(10), pollInterval(1);
  for (;;) {
    CUresult result = getDriver().cuStreamQuery(get());
    if (result == CUDA_SUCCESS)
      break;
    if (result != CUDA_ERROR_NOT_READY)
      throw executionError(getContext()->getName() +
                           " failed: " + getDriver().describe(result));
    Clock::time_point now = Clock::now();
    if (now - last < pollInterval)
      continue;
    last = now;
    try {
      poll(waited.getWaited());
    } catch (...) {
      getContext()->abandon();
      throw;
    }
    if (now - start > patience)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  dropOutgrown();
  state->algorithms.keep();
  reportIndex();
  getContext()->reportFrees();
}

void CudaStream::reportIndex() const {
  if (!reportsErrors())
    return;
  tprt_device_error error;
  std::memcpy(&error, reported.get(), sizeof(error));
  if (error.site == -1)
    return;
  std::string what = error.site >= 0 && error.site < program->code.num_sites
                         ? program->code.sites[error.site]
                         : "unknown site " + std::to_string(error.site);
  throw executionError(what + ": index " + std::to_string(error.index) +
                       " is out of range [0, " + std::to_string(error.bound) +
                       ")");
}

void CudaStream::beginTiming() {
  getContext()->makeCurrent();
  numMarks = 0;
  markTime(*this);
  TPRT_CUDA(getDriver(), cuEventSynchronize, marks.front().get());
  startTime = std::chrono::duration_cast<std::chrono::nanoseconds>(
                  std::chrono::steady_clock::now().time_since_epoch())
                  .count();
}

int64_t CudaStream::markTime(Stream &on) {
  if (numMarks == marks.size())
    marks.push_back(makeEvent(getContext(), /*isTimed=*/true));
  TPRT_CUDA(getDriver(), cuEventRecord, marks[numMarks].get(),
            static_cast<CudaStream &>(on).get());
  return numMarks++;
}

int64_t CudaStream::getTime(int64_t mark) {
  TPRT_CUDA(getDriver(), cuEventSynchronize, marks[mark].get());
  float milliseconds = 0;
  TPRT_CUDA(getDriver(), cuEventElapsedTime, &milliseconds, marks.front().get(),
            marks[mark].get());
  return startTime + static_cast<int64_t>(milliseconds * 1e6);
}

void CudaStream::beginCapture() {
  getContext()->makeCurrent();
  state->isCapturing = isCaptured = true;
  // Relaxed, because other ranks' threads go on with calls that can't be
  // captured, such as allocations.
  TPRT_CUDA(getDriver(), cuStreamBeginCapture, stream.get(),
            CU_STREAM_CAPTURE_MODE_RELAXED);
}

std::shared_ptr<void> CudaStream::endCapture() {
  assert(!products.holdsProducts() && "endRun() enqueues them");
  CUgraph graph = nullptr;
  state->isCapturing = isCaptured = false;
  TPRT_CUDA(getDriver(), cuStreamEndCapture, stream.get(), &graph);
  return std::make_shared<Graph>(getContext(), graph);
}

void CudaStream::replay(void *graph) {
  getContext()->makeCurrent();
  TPRT_CUDA(getDriver(), cuGraphLaunch, static_cast<Graph *>(graph)->get(),
            get());
}
