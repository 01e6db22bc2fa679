//===- FakeNcclCollectives.cpp - libnccl's collectives and messages -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FakeNccl.h"

#include "tprt/Dtype.h"

#include <array>
#include <cstring>
#include <vector>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;
namespace fs = std::filesystem;

namespace {

struct Operation {
  enum Kind { AllReduce, AllGather, ReduceScatter, Reduce, Broadcast } kind;
  const void *send;
  void *receive;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int root;
};

struct PointToPoint {
  bool isSend;
  void *data;
  size_t bytes;
  int peer;
};

} // namespace

static size_t getWidth(ncclDataType_t type) {
  switch (type) {
  case ncclFloat64:
  case ncclInt64:
    return 8;
  case ncclFloat32:
  case ncclInt32:
    return 4;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  default:
    return 1;
  }
}

/// The offset of an address in the communicator's symmetric memory; -1 if it is
/// elsewhere.
static int64_t getOffset(const ncclComm &comm, const void *address) {
  auto *at = static_cast<const char *>(address);
  for (ncclWindow_t window : comm.windows)
    if (at >= window->memory && at < window->memory + window->bytes)
      return at - window->memory;
  return -1;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

template <typename T, typename Acc>
static void combine(ncclRedOp_t reduction, void *acc, const void *operand,
                    size_t count) {
  auto *left = static_cast<T *>(acc);
  auto *right = static_cast<const T *>(operand);
  for (size_t i = 0; i < count; ++i) {
    Acc a = castElement<Acc>(left[i]), b = castElement<Acc>(right[i]);
    left[i] = castElement<T>(reduction == ncclMax    ? (a > b ? a : b)
                             : reduction == ncclMin  ? (a < b ? a : b)
                             : reduction == ncclProd ? Acc(a * b)
                                                     : Acc(a + b));
  }
}

template <typename T, typename Acc>
static void divide(void *data, int divisor, size_t count) {
  auto *elements = static_cast<T *>(data);
  for (size_t i = 0; i < count; ++i)
    elements[i] = castElement<T>(
        Acc(castElement<Acc>(elements[i]) / static_cast<Acc>(divisor)));
}

/// Calls f(element, accumulator) with zeros of the types that `type` stands
/// for.
template <typename F>
static void dispatch(ncclDataType_t type, F f) {
  switch (type) {
  case ncclFloat32:
    return f(float(), float());
  case ncclFloat64:
    return f(double(), double());
  case ncclFloat16:
    return f(Half(), float());
  case ncclBfloat16:
    return f(BFloat16(), float());
  case ncclInt64:
    return f(int64_t(), int64_t());
  case ncclInt32:
    return f(int32_t(), int32_t());
  case ncclInt8:
    return f(int8_t(), int8_t());
  default:
    return f(uint8_t(), uint8_t());
  }
}

/// Reduces `count` elements from `first` on of all operands, in order.
static std::string reduceOperands(const Operation &operation,
                                  const std::vector<std::string> &operands,
                                  size_t first, size_t count) {
  size_t width = getWidth(operation.type);
  std::string acc = operands[0].substr(first * width, count * width);
  dispatch(operation.type, [&](auto element, auto accumulator) {
    using T = decltype(element);
    using Acc = decltype(accumulator);
    for (size_t r = 1; r < operands.size(); ++r)
      combine<T, Acc>(operation.reduction, acc.data(),
                      operands[r].data() + first * width, count);
    if (operation.reduction == ncclAvg)
      divide<T, Acc>(acc.data(), operands.size(), count);
  });
  return acc;
}

/// The number of elements that a rank contributes.
static size_t getSendCount(const Operation &operation, const ncclComm &comm) {
  return operation.kind == Operation::ReduceScatter
             ? operation.count * comm.numRanks
             : operation.count;
}

/// The offsets of an operation's operand and result in symmetric memory.
using Offsets = std::array<int64_t, 2>;
static Offsets getOffsets(const ncclComm &comm, const Operation &operation) {
  return {getOffset(comm, operation.send), getOffset(comm, operation.receive)};
}

/// `planned` are the offsets when the operation was enqueued.
static bool runCollective(ncclComm &comm, const Operation &operation,
                          const Offsets &planned, bool &isPosted) {
  size_t width = getWidth(operation.type);
  size_t bytes = getSendCount(operation, comm) * width;
  if (!isPosted) {
    if (bytes > 0 && !checkMemory(operation.send, bytes))
      return true;
    if (getOffsets(comm, operation) != planned) {
      complain("memory was registered or deregistered after a collective that "
               "uses it was captured");
      return true;
    }
    std::string posted(reinterpret_cast<const char *>(planned.data()),
                       sizeof(planned));
    posted.append(static_cast<const char *>(operation.send), bytes);
    writeFile(getPath(comm, "collective", comm.numDone, comm.rank),
              posted.data(), posted.size());
    isPosted = true;
  }
  std::vector<std::string> operands;
  for (int rank = 0; rank < comm.numRanks; ++rank) {
    fs::path path = getPath(comm, "collective", comm.numDone, rank);
    if (!fs::exists(path))
      return false;
    std::string posted = readFile(path);
    if (std::memcmp(posted.data(), planned.data(), sizeof(planned)) != 0) {
      complain("ranks use different offsets of symmetric memory");
      return true;
    }
    operands.push_back(posted.substr(sizeof(planned)));
  }
  std::string result;
  switch (operation.kind) {
  case Operation::AllGather:
    for (const std::string &operand : operands)
      result += operand;
    break;
  case Operation::Broadcast:
    result = operands[operation.root];
    break;
  case Operation::ReduceScatter:
    result = reduceOperands(operation, operands, comm.rank * operation.count,
                            operation.count);
    break;
  case Operation::Reduce:
    if (comm.rank == operation.root)
      result = reduceOperands(operation, operands, 0, operation.count);
    break;
  case Operation::AllReduce:
    result = reduceOperands(operation, operands, 0, operation.count);
  }
  if (!result.empty() && checkMemory(operation.receive, result.size()))
    std::memcpy(operation.receive, result.data(), result.size());
  // All ranks have arrived here, so all are done with the previous collective.
  if (comm.numDone > 0)
    fs::remove(getPath(comm, "collective", comm.numDone - 1, comm.rank));
  ++comm.numDone;
  isPosted = false; // a graph runs it again
  return true;
}

namespace {
/// The operations that ncclGroupEnd enqueues together.
struct Group {
  int depth = 0;
  ncclComm_t comm = nullptr;
  CUstream stream = nullptr;
  std::vector<PointToPoint> messages;
};
} // namespace

static thread_local Group group;

static ncclResult_t add(const char *function, const Operation &operation,
                        ncclComm_t comm, CUstream stream) {
  Lock lock(getMutex());
  if (int32_t status = note(function, std::to_string(operation.count) + " " +
                                          comm->name + " " + describe(stream)))
    return status;
  enqueue(stream, [comm, operation, planned = getOffsets(*comm, operation),
                   isPosted = false]() mutable {
    return runCollective(*comm, operation, planned, isPosted);
  });
  return ncclSuccess;
}

EXPORT ncclAllReduce(const void *send, void *receive, size_t count,
                     ncclDataType_t type, ncclRedOp_t reduction,
                     ncclComm_t comm, CUstream stream) {
  return add("ncclAllReduce",
             {Operation::AllReduce, send, receive, count, type, reduction, 0},
             comm, stream);
}
EXPORT ncclAllGather(const void *send, void *receive, size_t count,
                     ncclDataType_t type, ncclComm_t comm, CUstream stream) {
  return add("ncclAllGather",
             {Operation::AllGather, send, receive, count, type, ncclSum, 0},
             comm, stream);
}
EXPORT ncclReduceScatter(const void *send, void *receive, size_t count,
                         ncclDataType_t type, ncclRedOp_t reduction,
                         ncclComm_t comm, CUstream stream) {
  return add(
      "ncclReduceScatter",
      {Operation::ReduceScatter, send, receive, count, type, reduction, 0},
      comm, stream);
}
EXPORT ncclReduce(const void *send, void *receive, size_t count,
                  ncclDataType_t type, ncclRedOp_t reduction, int root,
                  ncclComm_t comm, CUstream stream) {
  return add("ncclReduce",
             {Operation::Reduce, send, receive, count, type, reduction, root},
             comm, stream);
}
EXPORT ncclBroadcast(const void *send, void *receive, size_t count,
                     ncclDataType_t type, int root, ncclComm_t comm,
                     CUstream stream) {
  return add("ncclBroadcast",
             {Operation::Broadcast, send, receive, count, type, ncclSum, root},
             comm, stream);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static fs::path getMessagePath(const ncclComm &comm, int from, int to,
                               size_t number) {
  return getPath(comm, "message." + std::to_string(from), number, to);
}

namespace {
/// How far the messages of a group have come.
struct Progress {
  bool isPosted = false;
  size_t numReceived = 0; ///< the sends among them are passed over
  std::vector<fs::path> sent;
};
} // namespace

/// Runs all sends of a group, then its receives. As NCCL may, it holds the
/// stream until the others have received what was sent.
static bool runMessages(ncclComm &comm,
                        const std::vector<PointToPoint> &messages,
                        Progress &progress) {
  auto &[isPosted, numDone, sent] = progress;
  if (!isPosted)
    for (const PointToPoint &message : messages)
      if (message.isSend && checkMemory(message.data, message.bytes)) {
        sent.push_back(getMessagePath(comm, comm.rank, message.peer,
                                      comm.numSent[message.peer]++));
        writeFile(sent.back(), message.data, message.bytes);
      }
  isPosted = true;
  for (; numDone < messages.size(); ++numDone) {
    const PointToPoint &message = messages[numDone];
    if (message.isSend)
      continue;
    size_t &number = comm.numReceived[message.peer];
    fs::path path = getMessagePath(comm, message.peer, comm.rank, number);
    if (!fs::exists(path))
      return false;
    std::string bytes = readFile(path);
    fs::remove(path);
    ++number;
    if (bytes.size() != message.bytes)
      setFailed(700);
    else if (checkMemory(message.data, bytes.size()))
      std::memcpy(message.data, bytes.data(), bytes.size());
  }
  for (; !sent.empty(); sent.pop_back())
    if (fs::exists(sent.back()))
      return false;
  progress = {}; // a graph runs it again
  return true;
}

static ncclResult_t addMessage(const char *function,
                               const PointToPoint &message, ncclComm_t comm,
                               CUstream stream) {
  Lock lock(getMutex());
  if (int32_t status =
          note(function, std::to_string(message.bytes) + " " +
                             std::to_string(message.peer) + " " + comm->name))
    return status;
  // Outside of a group, two ranks that both send first would wait forever.
  if (group.depth == 0 || message.peer == comm->rank)
    return InvalidUsage;
  group.comm = comm;
  group.stream = stream;
  group.messages.push_back(message);
  return ncclSuccess;
}

EXPORT ncclSend(const void *data, size_t count, ncclDataType_t type, int peer,
                ncclComm_t comm, CUstream stream) {
  return addMessage(
      "ncclSend",
      {true, const_cast<void *>(data), count * getWidth(type), peer}, comm,
      stream);
}
EXPORT ncclRecv(void *data, size_t count, ncclDataType_t type, int peer,
                ncclComm_t comm, CUstream stream) {
  return addMessage("ncclRecv", {false, data, count * getWidth(type), peer},
                    comm, stream);
}

EXPORT ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

EXPORT ncclGroupEnd() {
  Lock lock(getMutex());
  if (--group.depth > 0)
    return ncclSuccess;
  if (!group.messages.empty())
    enqueue(group.stream, [comm = group.comm, messages = group.messages,
                           progress = Progress()]() mutable {
      return runMessages(*comm, messages, progress);
    });
  group = Group();
  return ncclSuccess;
}
