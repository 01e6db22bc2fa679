//===- CudaGemm.cpp - Matrix products on a CUDA device --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaGemm.h"

#include "cuda/Epilogue.h"

#include <chrono>
#include <limits>
#include <type_traits>

using namespace tprt;
using namespace tprt::cuda;

Gemm::Gemm(ContextPtr context, Kernels &own, GemmAlgorithms &algorithms,
           bool tf32)
    : context(std::move(context)), own(own), algorithms(algorithms),
      tf32(tf32) {}

Gemm::~Gemm() {
  plans.clear();
  if (handle)
    context->free([&](const Driver &) {
      const Blas &blas = Blas::get();
      blas.check(blas.cublasLtDestroy(handle), "cublasLtDestroy");
    });
}

/// Identifies products that can share a plan.
static std::string getKey(const tprt_gemm_args &args,
                          const GemmOperands &operands) {
  std::string key(reinterpret_cast<const char *>(&args), sizeof(args));
  for (const void *address :
       {operands.a, operands.b, static_cast<const void *>(operands.c),
        operands.addend})
    key += std::to_string(getAlignment(address)) + ' ';
  key.push_back(operands.bias != nullptr);
  key.push_back(operands.addend != nullptr);
  key.push_back(operands.factor != nullptr);
  return key;
}

std::unique_ptr<GemmPlan> Gemm::findPlan(const tprt_gemm_args &args,
                                         const GemmOperands &operands,
                                         GemmForm form) {
  auto plan = std::make_unique<GemmPlan>(handle, args, operands, tf32, form);
  if (form == GemmForm::Fused &&
      plan->getStatus() == CUBLAS_STATUS_NOT_SUPPORTED)
    return nullptr;
  Blas::get().check(plan->getStatus(), "cublasLtMatmulAlgoGetHeuristic");
  return plan;
}

void Gemm::beginRun() {
  for (auto &[key, plan] : plans)
    plan->use.calls = 0;
  for (auto &[key, use] : ownProducts)
    use.calls = 0;
}

std::vector<GemmUse> Gemm::getUses() const {
  std::vector<GemmUse> uses;
  for (const auto &[key, plan] : plans)
    if (plan->use.calls > 0)
      uses.push_back(plan->use);
  for (const auto &[key, use] : ownProducts)
    if (use.calls > 0)
      uses.push_back(use);
  return uses;
}

namespace {

/// An algorithm's calls that are measured one by one.
struct Trial {
  std::shared_ptr<CUevent_st> start, end;
  double seconds = std::numeric_limits<double>::infinity();
  bool isOut = false;
};

} // namespace

/// Waits for the stream's work. Returns false if it doesn't end in time.
static bool waitFor(const Driver &driver, CUstream stream,
                    std::chrono::seconds limit) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  for (;;) {
    CUresult result = driver.cuStreamQuery(stream);
    if (result != CUDA_ERROR_NOT_READY) {
      driver.check(result, "cuStreamQuery");
      return true;
    }
    if (Clock::now() - start > limit)
      return false;
  }
}

/// The bytes from the first element of C to its last.
static int64_t getResultBytes(const tprt_gemm_args &args) {
  int64_t last = (args.batch1 - 1) * args.c_b1 + (args.m - 1) * args.c_row;
  return (last + args.n) * byteWidth(static_cast<Dtype>(args.dtype));
}

/// Measures all algorithms in turns, so that disturbances affect all of them.
/// Before each call, the cache is filled with other data, as a program's other
/// ops do. Meanwhile the host enqueues the call. The first turn also loads the
/// algorithms' kernels, by a call that isn't measured.
GemmAlgorithms::Measured Gemm::measure(const GemmPlan &plan,
                                       const tprt_gemm_args &args,
                                       const GemmOperands &operands,
                                       CUstream stream, double maxSeconds) {
  constexpr int maxTurns = 4;
  constexpr double chance = 1.2; // an algorithm that takes longer is out
  constexpr std::chrono::seconds patience(1), patienceBefore(10);
  const Driver &driver = context->getDriver();
  std::shared_ptr<std::byte> flushed, scratch;
  try {
    flushed = allocate(context, context->getCacheBytes());
    if (args.accumulate) // what C had before is needed later
      scratch = allocate(context, getResultBytes(args));
  } catch (const Error &) { // no memory is left
    return {};
  }
  std::vector<Trial> trials(plan.use.numAlgorithms);
  for (Trial &trial : trials)
    trial = {makeEvent(context, /*isTimed=*/true),
             makeEvent(context, /*isTimed=*/true)};
  auto enqueue = [&](size_t algorithm) {
    return plan.run(algorithm, args, operands,
                    scratch ? scratch.get() : operands.c, workspace.get(),
                    stream) == CUBLAS_STATUS_SUCCESS;
  };
  GemmAlgorithms::Measured measured;
  auto wait = [&](std::chrono::seconds limit) {
    auto begin = std::chrono::steady_clock::now();
    bool isDone = waitFor(driver, stream, limit);
    measured.spentSeconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    if (!isDone)
      inUse.insert(inUse.end(), {flushed, scratch});
    return isDone;
  };
  if (!wait(patienceBefore))
    return measured;
  measured.spentSeconds = 0; // that was for earlier work
  auto isOver = [&] { return measured.spentSeconds > maxSeconds; };
  for (int turn = 0; turn < maxTurns && !isOver(); ++turn) {
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < trials.size() && !isOver(); ++i) {
      Trial &trial = trials[i];
      if (turn == 0)
        trial.isOut = !enqueue(i);
      if (trial.isOut)
        continue;
      fill(*context, flushed.get(), 0, 4, context->getCacheBytes() / 4, stream);
      TPRT_CUDA(driver, cuEventRecord, trial.start.get(), stream);
      trial.isOut = !enqueue(i);
      TPRT_CUDA(driver, cuEventRecord, trial.end.get(), stream);
      if (!wait(patience))
        return measured;
      if (trial.isOut) {
        trial.seconds = std::numeric_limits<double>::infinity();
        continue;
      }
      float milliseconds = 0;
      TPRT_CUDA(driver, cuEventElapsedTime, &milliseconds, trial.start.get(),
                trial.end.get());
      trial.seconds = std::min<double>(trial.seconds, milliseconds * 1e-3);
      best = std::min(best, trial.seconds);
    }
    for (Trial &trial : trials)
      trial.isOut |= trial.seconds > chance * best;
  }
  for (const Trial &trial : trials)
    measured.seconds.push_back(trial.seconds);
  return measured;
}

/// What follows the sums of a product that is in C, or of none.
static tprt_kernels::EpilogueArguments getEpilogue(const tprt_gemm_args &args,
                                                   const GemmOperands &operands,
                                                   bool readsC) {
  tprt_kernels::EpilogueArguments epilogue = {};
  epilogue.c = operands.c;
  epilogue.bias = operands.bias;
  epilogue.addend = operands.addend;
  epilogue.factor = operands.factor;
  epilogue.batches = args.batch1;
  epilogue.rows = args.m;
  epilogue.columns = args.n;
  epilogue.rowStride = args.c_row;
  epilogue.batchStride = args.c_b1;
  epilogue.addendRowStride = args.addend_row;
  epilogue.addendBatchStride = args.addend_b1;
  epilogue.factorRowStride = args.factor_row;
  epilogue.factorBatchStride = args.factor_b1;
  epilogue.readsC = readsC;
  epilogue.activation = static_cast<int32_t>(args.activation);
  return epilogue;
}

void Gemm::runBatch(const tprt_gemm_args &args, const GemmOperands &operands,
                    CUstream stream, bool mayWait) {
  auto dtype = static_cast<Dtype>(args.dtype);
  std::string key = getKey(args, operands);
  if (rowProducts.add(args, operands, stream)) {
    auto [found, isNew] = ownProducts.try_emplace(key);
    if (isNew)
      found->second = {
          .form =
              describeProduct(args, operands, /*tf32=*/false, GemmForm::Fused),
          .library = "own",
          .epilogue = hasEpilogue(args, operands) ? "fused" : "none"};
    ++found->second.calls;
    return;
  }
  flush(stream);
  if (args.k <= 0) { // the sums are zero
    if (!args.accumulate || hasEpilogue(args, operands))
      applyEpilogue(own, getEpilogue(args, operands, args.accumulate), dtype,
                    stream);
    return;
  }
  const Blas &blas = Blas::get();
  // Chooses an algorithm, and keeps the plan.
  auto keep = [&](std::unique_ptr<GemmPlan> made) {
    auto measureThis = [&](double maxSeconds) {
      return measure(*made, args, operands, stream, maxSeconds);
    };
    algorithms.choose(made->use,
                      mayWait ? GemmAlgorithms::Measure(measureThis) : nullptr);
    return plans.insert_or_assign(key, std::move(made)).first->second.get();
  };
  GemmPlan *plan = nullptr;
  auto run = [&] {
    return plan->run(plan->use.algorithm, args, operands, operands.c,
                     workspace.get(), stream);
  };
  if (auto found = plans.find(key); found != plans.end()) {
    plan = found->second.get();
  } else {
    std::unique_ptr<GemmPlan> made;
    if (hasEpilogue(args, operands) && canFuse(args, operands))
      made = findPlan(args, operands, GemmForm::Fused);
    plan = keep(made ? std::move(made)
                     : findPlan(args, operands, GemmForm::Plain));
  }
  cublasStatus_t status = run();
  if (status == CUBLAS_STATUS_NOT_SUPPORTED &&
      plan->getForm() == GemmForm::Fused) {
    plan = keep(findPlan(args, operands, GemmForm::Plain));
    status = run();
  }
  blas.check(status, "cublasLtMatmul");
  ++plan->use.calls;
  if (plan->getForm() == GemmForm::Plain && hasEpilogue(args, operands))
    applyEpilogue(own, getEpilogue(args, operands, /*readsC=*/true), dtype,
                  stream);
}

void Gemm::run(const tprt_gemm_args &args, const GemmOperands &given,
               CUstream stream, bool mayWait) {
  if (args.dtype < TPRT_F32 || args.dtype > TPRT_BF16)
    throw executionError("tprt_gemm: dtype is not f32, f64, f16 or bf16");
  if (args.activation < TPRT_NO_ACTIVATION || args.activation > TPRT_SILU)
    throw executionError("tprt_gemm: activation is " +
                         std::to_string(args.activation) + ", expected " +
                         std::to_string(TPRT_NO_ACTIVATION) + " to " +
                         std::to_string(TPRT_SILU));
  if (args.accumulate && given.addend)
    throw executionError(
        "tprt_gemm: a product that accumulates can't have an addend");
  if (args.m <= 0 || args.n <= 0 || args.batch0 <= 0 || args.batch1 <= 0)
    return;
  if (!handle && args.k > 0) {
    const Blas &blas = Blas::get();
    blas.check(blas.cublasLtCreate(&handle), "cublasLtCreate");
    workspace = allocate(context, gemmWorkspaceBytes);
  }
  // Merge the two batch dimensions if that is possible for all operands.
  // Otherwise, make one call for each index of the outer one.
  tprt_gemm_args batch = args;
  GemmOperands operands = given;
  batch.batch0 = 1;
  batch.a_b0 = batch.b_b0 = batch.c_b0 = batch.addend_b0 = batch.factor_b0 = 0;
  int64_t calls = args.batch0;
  if (args.batch1 == 1) {
    batch.batch1 = args.batch0;
    batch.a_b1 = args.a_b0;
    batch.b_b1 = args.b_b0;
    batch.c_b1 = args.c_b0;
    batch.addend_b1 = args.addend_b0;
    batch.factor_b1 = args.factor_b0;
    calls = 1;
  } else if (args.a_b0 == args.batch1 * args.a_b1 &&
             args.b_b0 == args.batch1 * args.b_b1 &&
             args.c_b0 == args.batch1 * args.c_b1 &&
             (!given.addend ||
              args.addend_b0 == args.batch1 * args.addend_b1) &&
             (!given.factor ||
              args.factor_b0 == args.batch1 * args.factor_b1)) {
    batch.batch1 *= args.batch0;
    calls = 1;
  }
  int64_t width = byteWidth(static_cast<Dtype>(args.dtype));
  auto advance = [&](auto *&data, int64_t elements) {
    if (data)
      data = reinterpret_cast<std::remove_reference_t<decltype(data)>>(
          reinterpret_cast<uintptr_t>(data) + elements * width);
  };
  for (int64_t i = 0; i < calls; ++i) {
    runBatch(batch, operands, stream, mayWait);
    advance(operands.a, args.a_b0);
    advance(operands.b, args.b_b0);
    advance(operands.c, args.c_b0);
    advance(operands.addend, args.addend_b0);
    advance(operands.factor, args.factor_b0);
  }
}
