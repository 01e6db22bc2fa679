//===- Emulator.cpp - Kernels that are code for the host ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Emulator.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <ucontext.h>
#include <vector>

namespace {

enum class State { Ready, AtBarrier, InShuffle, Done };

class Block;

/// A thread of the device. Its stack lives as long as the host's thread that
/// runs it.
struct Fiber {
  tp_emulated_thread self = {}; // first: programs point to it
  Block *block = nullptr;
  State state = State::Done;
  uint32_t value = 0, mask = 0, result = 0; ///< of a shuffle
  ucontext_t context = {};
  jmp_buf resume = {};
  bool isStarted = false;
  std::unique_ptr<char[]> stack;
};

constexpr size_t stackBytes = 64 << 10;
constexpr uint32_t warpSize = 32;

/// The fibers of one thread of the host, which run one block at a time.
class Block {
public:
  void run(tp_emulated_kernel kernel, uint32_t block, uint32_t gridSize,
           uint32_t blockSize, void *shared, void *const *arguments);
  /// From within a fiber: lets others run until the state is Ready again.
  void yield(Fiber &fiber);

private:
  void resume(Fiber &fiber);
  void releaseShuffles(uint32_t blockSize);
  static void serve(unsigned high, unsigned low);

  std::vector<std::unique_ptr<Fiber>> fibers;
  tp_emulated_kernel kernel = nullptr;
  void *const *arguments = nullptr;
  jmp_buf scheduler = {};
};

} // namespace

// ucontext is only used to make contexts, because switching with it costs a
// system call.
void Block::resume(Fiber &fiber) {
  if (_setjmp(scheduler) != 0)
    return;
  if (fiber.isStarted)
    _longjmp(fiber.resume, 1);
  fiber.isStarted = true;
  fiber.stack = std::make_unique<char[]>(stackBytes);
  ::getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stackBytes;
  fiber.context.uc_link = nullptr;
  auto address = reinterpret_cast<uintptr_t>(&fiber);
  ::makecontext(&fiber.context, reinterpret_cast<void (*)()>(serve), 2,
                static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
  ::setcontext(&fiber.context);
}

/// The main function of a fiber, which runs one kernel after the other.
void Block::serve(unsigned high, unsigned low) {
  auto &fiber =
      *reinterpret_cast<Fiber *>(uintptr_t(high) << 32 | uintptr_t(low));
  for (;;) {
    fiber.block->kernel(&fiber.self, fiber.block->arguments);
    fiber.state = State::Done;
    fiber.block->yield(fiber);
  }
}

void Block::yield(Fiber &fiber) {
  if (_setjmp(fiber.resume) == 0)
    _longjmp(scheduler, 1);
}

void Block::releaseShuffles(uint32_t blockSize) {
  for (uint32_t first = 0; first < blockSize; first += warpSize) {
    bool isComplete = true;
    for (uint32_t i = 0; i < warpSize; ++i)
      isComplete &= fibers[first + i]->state == State::InShuffle;
    if (!isComplete)
      continue;
    for (uint32_t i = 0; i < warpSize; ++i) {
      Fiber &fiber = *fibers[first + i];
      fiber.result = fibers[first + (i ^ fiber.mask) % warpSize]->value;
      fiber.state = State::Ready;
    }
  }
}

void Block::run(tp_emulated_kernel kernel, uint32_t block, uint32_t gridSize,
                uint32_t blockSize, void *shared, void *const *arguments) {
  this->kernel = kernel;
  this->arguments = arguments;
  while (fibers.size() < blockSize)
    fibers.push_back(std::make_unique<Fiber>());
  for (uint32_t i = 0; i < blockSize; ++i) {
    fibers[i]->self = {i, block, blockSize, gridSize, shared};
    fibers[i]->block = this;
    fibers[i]->state = State::Ready;
  }
  for (;;) {
    uint32_t numDone = 0, numAtBarrier = 0;
    bool hasRun = false;
    for (uint32_t i = 0; i < blockSize; ++i) {
      if (fibers[i]->state == State::Ready) {
        resume(*fibers[i]);
        hasRun = true;
      }
      numDone += fibers[i]->state == State::Done;
      numAtBarrier += fibers[i]->state == State::AtBarrier;
    }
    if (numDone == blockSize)
      return;
    if (numDone + numAtBarrier == blockSize) {
      for (uint32_t i = 0; i < blockSize; ++i)
        if (fibers[i]->state == State::AtBarrier)
          fibers[i]->state = State::Ready;
      continue;
    }
    if (!hasRun)
      throw std::runtime_error("threads of a block wait at different places");
    releaseShuffles(blockSize);
  }
}

void tp_emulated_barrier(const tp_emulated_thread *self) {
  auto *fiber =
      reinterpret_cast<Fiber *>(const_cast<tp_emulated_thread *>(self));
  fiber->state = State::AtBarrier;
  fiber->block->yield(*fiber);
}

uint32_t tp_emulated_shuffle_xor(const tp_emulated_thread *self, uint32_t value,
                                 uint32_t mask) {
  auto *fiber =
      reinterpret_cast<Fiber *>(const_cast<tp_emulated_thread *>(self));
  fiber->value = value;
  fiber->mask = mask;
  fiber->state = State::InShuffle;
  fiber->block->yield(*fiber);
  return fiber->result;
}

void runEmulated(tp_emulated_kernel kernel, uint32_t gridSize,
                 uint32_t blockSize, uint32_t sharedBytes,
                 void *const *arguments) {
  // Work of all streams runs under one lock, in any thread that waits for it,
  // but fibers stay with the thread that made them.
  thread_local Block block;
  std::unique_ptr<void, decltype(&std::free)> shared(
      std::aligned_alloc(64, (sharedBytes + 64) / 64 * 64), std::free);
  if (!shared)
    throw std::bad_alloc();
  for (uint32_t i = 0; i < gridSize; ++i) {
    std::memset(shared.get(), 0xCD, sharedBytes);
    block.run(kernel, i, gridSize, blockSize, shared.get(), arguments);
  }
}
