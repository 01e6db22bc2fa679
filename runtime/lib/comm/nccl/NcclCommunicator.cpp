//===- NcclCommunicator.cpp - Ranks on devices of their own ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enqueues what the plans of NcclPlan.h say.
//
// The calls of collectives are on one stream, in the order of the program. This
// is the stream that computes, unless the program starts collectives and waits
// for them later; then it is the one beside it.
//
// Stages of a pipeline send while they receive, so their transfers would hold
// each other up on one stream, or in one communicator, whose calls NCCL
// serializes. Each direction between two ranks, a channel, has a stream and a
// communicator of its own. A transfer then waits for nothing but its two ranks,
// as tp-verify-collectives assumes when it proves that a pipeline ends.
//
//===----------------------------------------------------------------------===//

#include "comm/nccl/NcclCommunicator.h"

#include "comm/nccl/NcclMemory.h"
#include "comm/nccl/NcclPlan.h"
#include "comm/nccl/WatchedCall.h"
#include "cuda/CudaStream.h"

#include <numeric>
#include <set>

using namespace tprt;
using namespace tprt::cuda;

namespace {

/// A call hasn't returned.
class GivenUp final : public Error {
public:
  using Error::Error;
};

/// One direction of transfers: a sender and a receiver, the same for all pairs
/// of the collective.
struct Channel {
  ncclComm_t comm = nullptr;    ///< null: this rank is in none of the pairs
  CudaStream *stream = nullptr; ///< null, too, then
};

class NcclCommunicator final : public Communicator {
public:
  NcclCommunicator(const Manifest &manifest, CudaStream &compute, int64_t rank,
                   Rendezvous &rendezvous, std::chrono::milliseconds timeout);
  ~NcclCommunicator() override;

  int64_t getRank() const override { return rank; }
  int64_t run(int64_t id, const std::byte *src, std::byte *dst) override;
  void start(int64_t id, const std::byte *src, std::byte *dst) override;
  int64_t wait(int64_t id) override;
  Stream *getStream(int64_t id) override { return &getStreamOf(id); }
  std::shared_ptr<std::byte> allocate(int64_t bytes) override;
  bool warmUp(std::byte *arena, int64_t bytes) override;
  std::string getDescription() const override;
  std::string describeActivity() const override;
  void poll() override;
  void agree(const std::string &what, const std::string &value) override {
    agreeByExchange(what, value);
  }
  std::vector<std::string> exchange(const std::string &mine,
                                    size_t limit) override;
  void barrier() override;
  void abort(const std::string &reason) override;
  void finish() override {}

private:
  /// Makes a call that waits for the other ranks. Throws GivenUp if it takes
  /// too long.
  void watch(const char *function, std::function<void()> call);
  void initialize();
  ncclComm_t split(const Groups &groups);
  ncclComm_t getComm(const Groups &groups);
  Channel getChannel(const Groups &pairs);
  void connect();
  void connect(ncclComm_t comm, CudaStream &on, const std::set<int64_t> &sentTo,
               const std::set<int64_t> &receivedFrom);
  /// Where collective `id` runs.
  CudaStream &getStreamOf(int64_t id) const {
    if (manifest.collectives[id].kind != CollectiveKind::Transfer)
      return stream;
    CudaStream *own = channels.at(plans[id].groups).stream;
    return own ? *own : stream;
  }
  /// All that this rank has split from the world's.
  std::vector<ncclComm_t> getSplitComms() const;
  std::string describeStopped() const;
  std::string findObstacle(const std::byte *arena, int64_t bytes);
  std::string registerArena(std::byte *arena, int64_t bytes);
  void enqueue(int64_t id, const std::byte *src, std::byte *dst);
  void exchange(const NcclPlan &plan, int64_t width, const std::byte *src,
                std::byte *dst, CudaStream &on);
  void allGather(const Collective &c, const NcclPlan &plan,
                 const std::byte *src, std::byte *dst);
  void reduceScatter(const Collective &c, const NcclPlan &plan,
                     const std::byte *src, std::byte *dst);

  const Nccl &nccl = Nccl::get();
  const Manifest &manifest;
  CudaStream &compute;
  CudaStream &stream;        ///< of collectives that aren't transfers
  std::vector<Event *> ends; ///< of collectives on other streams, by id
  const int64_t rank;
  Rendezvous &rendezvous;
  const std::chrono::milliseconds timeout;
  /// The collective that the device has reached last, or -1. The device writes
  /// it itself.
  std::shared_ptr<std::byte> reached;
  ncclComm_t world = nullptr;
  /// One for each distinct list of groups, split from the world's.
  std::map<Groups, ncclComm_t> comms;
  std::map<Groups, Channel> channels; ///< by their pairs
  size_t numOwnChannels = 0;          ///< those that this rank is in
  std::vector<NcclPlan> plans;        ///< by collective
  /// The addresses of the first run's operands and results, until it has ended.
  std::vector<const std::byte *> addresses;
  bool isWarm = false;
  std::vector<std::unique_ptr<Registration>> registrations;
  std::string buffers = "plain buffers"; ///< of the arena, for people
  std::string allocationProblem;         ///< why the arena isn't NCCL's memory
  bool isAborted = false;
};

} // namespace

#define TPRT_NCCL(function, comm, ...)                                         \
  nccl.check(nccl.function(__VA_ARGS__), #function, comm)

NcclCommunicator::NcclCommunicator(const Manifest &manifest,
                                   CudaStream &compute, int64_t rank,
                                   Rendezvous &rendezvous,
                                   std::chrono::milliseconds timeout)
    : manifest(manifest), compute(compute),
      stream(std::any_of(
                 manifest.collectives.begin(), manifest.collectives.end(),
                 [](const Collective &c) {
                   return c.isStarted && c.kind != CollectiveKind::Transfer;
                 })
                 ? compute.getCommunication()
                 : compute),
      ends(manifest.collectives.size()), rank(rank), rendezvous(rendezvous),
      timeout(timeout) {
  stream.getContext()->makeCurrent();
  reached = allocatePinned(stream.getContext(), sizeof(int32_t));
  std::memset(reached.get(), 0xff, sizeof(int32_t));
  plans.resize(manifest.collectives.size());
  try {
    initialize();
    // In the same order everywhere: splitting is collective itself.
    for (size_t i = 0; i < plans.size(); ++i) {
      plans[i] = makeNcclPlan(manifest, i, rank);
      plans[i].comm = manifest.collectives[i].kind == CollectiveKind::Transfer
                          ? getChannel(plans[i].groups).comm
                          : getComm(plans[i].groups);
    }
    connect();
  } catch (const AbortedError &) { // the others know
    abort("");
    throw;
  } catch (const std::exception &error) {
    abort("rank " + std::to_string(rank) + " failed: " + error.what());
    throw;
  }
  rendezvous.setActivity([this] { return describeActivity(); });
}

NcclCommunicator::~NcclCommunicator() {
  rendezvous.setActivity(nullptr);
  if (isAborted)
    return;
  registrations.clear();
  for (ncclComm_t comm : getSplitComms())
    nccl.ncclCommDestroy(comm);
  if (world)
    nccl.ncclCommDestroy(world);
}

void NcclCommunicator::watch(const char *function, std::function<void()> call) {
  ContextPtr context = stream.getContext();
  Patience waited(timeout);
  runWatched(
      [context, call = std::move(call)] {
        context->makeCurrent();
        call();
      },
      [&] {
        try {
          rendezvous.poll();
          if (waited.isOver())
            throw GivenUp(ErrorKind::Execution,
                          std::string(function) + " hasn't returned for " +
                              formatTimeout(timeout) + describeStopped());
        } catch (...) {
          context->abandon(); // the call goes on, and uses the device
          throw;
        }
      });
}

void NcclCommunicator::initialize() {
  ncclUniqueId id = {};
  if (rank == 0)
    TPRT_NCCL(ncclGetUniqueId, nullptr, &id);
  std::string bytes(id.internal, sizeof(id.internal));
  bytes = rendezvous.exchange(bytes, sizeof(id.internal))[0];
  if (bytes.size() != sizeof(id.internal))
    throw executionError("rank 0 has another version of the runtime");
  std::memcpy(id.internal, bytes.data(), sizeof(id.internal));
  auto made = std::make_shared<ncclComm_t>();
  watch("ncclCommInitRank",
        [&nccl = nccl, made, size = static_cast<int>(manifest.worldSize), id,
         rank = static_cast<int>(rank)] {
          TPRT_NCCL(ncclCommInitRank, nullptr, made.get(), size, id, rank);
        });
  world = *made;
}

/// A new communicator of this rank's group, null if it is in none of them. A
/// member's rank in it is its position in the group.
ncclComm_t NcclCommunicator::split(const Groups &groups) {
  int color = NCCL_SPLIT_NOCOLOR, key = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t p = 0; p < groups[g].size(); ++p)
      if (groups[g][p] == rank) {
        color = g;
        key = p;
      }
  auto made = std::make_shared<ncclComm_t>();
  watch("ncclCommSplit", [&nccl = nccl, made, world = world, color, key] {
    TPRT_NCCL(ncclCommSplit, world, world, color, key, made.get(), nullptr);
  });
  return *made;
}

ncclComm_t NcclCommunicator::getComm(const Groups &groups) {
  auto [entry, isNew] = comms.try_emplace(groups);
  if (!isNew)
    return entry->second;
  std::vector<int64_t> everyone(manifest.worldSize);
  std::iota(everyone.begin(), everyone.end(), 0);
  return entry->second = groups == Groups{everyone} ? world : split(groups);
}

Channel NcclCommunicator::getChannel(const Groups &pairs) {
  auto [entry, isNew] = channels.try_emplace(pairs);
  if (isNew) {
    entry->second.comm = split(pairs);
    // The first stream beside the compute stream is that of collectives. A rank
    // has none for the channels of others.
    if (entry->second.comm)
      entry->second.stream = &compute.getCommunication(++numOwnChannels);
  }
  return entry->second;
}

std::vector<ncclComm_t> NcclCommunicator::getSplitComms() const {
  std::vector<ncclComm_t> all;
  for (const auto &[groups, comm] : comms)
    if (comm && comm != world)
      all.push_back(comm);
  for (const auto &[pairs, channel] : channels)
    if (channel.comm)
      all.push_back(channel.comm);
  return all;
}

/// Connects the members of each communicator, and the ranks that send boxes to
/// each other. Connection failures then show up here, and no run has to connect
/// while it is captured.
void NcclCommunicator::connect() {
  std::map<ncclComm_t, std::set<int64_t>> sentTo, receivedFrom;
  for (const NcclPlan &plan : plans) {
    if (!plan.sendsBoxes)
      continue;
    for (const Box &box : plan.sent)
      if (box.peer != plan.position)
        sentTo[plan.comm].insert(box.peer);
    for (const Box &box : plan.received)
      if (box.peer != plan.position)
        receivedFrom[plan.comm].insert(box.peer);
  }
  compute.beginRun();
  // In the same order everywhere.
  for (auto &[groups, comm] : comms)
    if (comm) {
      std::byte *scratch = stream.getStaging(sizeof(float));
      stream.fill(scratch, 0, 1, sizeof(float));
      TPRT_NCCL(ncclAllReduce, comm, scratch, scratch, 1, ncclFloat32, ncclSum,
                comm, stream.get());
      connect(comm, stream, sentTo[comm], receivedFrom[comm]);
    }
  for (auto &[pairs, channel] : channels)
    if (channel.comm)
      connect(channel.comm, *channel.stream, sentTo[channel.comm],
              receivedFrom[channel.comm]);
  compute.endRun();
  compute.finish([&](std::chrono::steady_clock::duration waited) {
    poll();
    if (timeout.count() > 0 && waited > timeout)
      throw executionError("the ranks don't connect by NCCL" +
                           describeStopped());
  });
}

/// The compute stream waits for it.
void NcclCommunicator::connect(ncclComm_t comm, CudaStream &on,
                               const std::set<int64_t> &sentTo,
                               const std::set<int64_t> &receivedFrom) {
  std::byte *scratch = on.getStaging(2);
  std::byte *received = scratch + 1;
  on.fill(scratch, 0, 1, 2);
  TPRT_NCCL(ncclGroupStart, comm);
  for (int64_t peer : sentTo)
    TPRT_NCCL(ncclSend, comm, scratch, 1, ncclUint8, static_cast<int>(peer),
              comm, on.get());
  for (int64_t peer : receivedFrom)
    TPRT_NCCL(ncclRecv, comm, received, 1, ncclUint8, static_cast<int>(peer),
              comm, on.get());
  TPRT_NCCL(ncclGroupEnd, comm);
  if (&on != &compute)
    compute.waitFor(on.announce());
}

/// Copies boxes between operand or result and staging.
static void copyBoxes(CudaStream &on, const std::vector<Box> &boxes,
                      int64_t width, const std::byte *src, std::byte *dst,
                      bool isSent) {
  for (const Box &box : boxes)
    on.copy(box.strided, width, isSent ? src : src + box.offset,
            isSent ? dst + box.offset : dst);
}

/// Runs a collective by boxes. The whole operand is read before the result is
/// written.
void NcclCommunicator::exchange(const NcclPlan &plan, int64_t width,
                                const std::byte *src, std::byte *dst,
                                CudaStream &on) {
  std::byte *sent = on.getStaging(plan.sentBytes + plan.receivedBytes);
  std::byte *received = sent + plan.sentBytes;
  copyBoxes(on, plan.sent, width, src, sent, /*isSent=*/true);
  // The boxes that this rank sends to itself are the same on both sides, in the
  // same order.
  std::vector<const Box *> own;
  TPRT_NCCL(ncclGroupStart, plan.comm);
  for (const Box &box : plan.sent) {
    if (box.peer == plan.position)
      own.push_back(&box);
    else
      TPRT_NCCL(ncclSend, plan.comm, sent + box.offset, box.bytes, ncclUint8,
                static_cast<int>(box.peer), plan.comm, on.get());
  }
  auto next = own.begin();
  std::vector<std::pair<const Box *, const Box *>> kept;
  for (const Box &box : plan.received) {
    if (box.peer == plan.position)
      kept.emplace_back(&box, *next++);
    else
      TPRT_NCCL(ncclRecv, plan.comm, received + box.offset, box.bytes,
                ncclUint8, static_cast<int>(box.peer), plan.comm, on.get());
  }
  TPRT_NCCL(ncclGroupEnd, plan.comm);
  for (auto [to, from] : kept)
    on.copy(received + to->offset, sent + from->offset, to->bytes);
  copyBoxes(on, plan.received, width, received, dst, /*isSent=*/false);
}

void NcclCommunicator::allGather(const Collective &c, const NcclPlan &plan,
                                 const std::byte *src, std::byte *dst) {
  int64_t width = byteWidth(c.dtype);
  if (!plan.isEven)
    return exchange(plan, width, src, dst, stream);
  std::byte *gathered =
      plan.isDense ? dst : stream.getStaging(plan.receivedBytes);
  TPRT_NCCL(ncclAllGather, plan.comm, src, gathered,
            plan.operandElements * width, ncclUint8, plan.comm, stream.get());
  if (!plan.isDense)
    copyBoxes(stream, plan.received, width, gathered, dst, /*isSent=*/false);
}

void NcclCommunicator::reduceScatter(const Collective &c, const NcclPlan &plan,
                                     const std::byte *src, std::byte *dst) {
  int64_t width = byteWidth(c.dtype);
  const std::byte *blocks = src;
  if (!plan.isDense) {
    std::byte *staging = stream.getStaging(plan.sentBytes);
    copyBoxes(stream, plan.sent, width, src, staging, /*isSent=*/true);
    blocks = staging;
  }
  if (plan.isEven) {
    TPRT_NCCL(ncclReduceScatter, plan.comm, blocks, dst, plan.resultElements,
              *toNccl(c.dtype), toNccl(c.reduction), plan.comm, stream.get());
    return;
  }
  TPRT_NCCL(ncclGroupStart, plan.comm);
  for (const Box &box : plan.sent)
    TPRT_NCCL(ncclReduce, plan.comm, blocks + box.offset, dst,
              box.bytes / width, *toNccl(c.dtype), toNccl(c.reduction),
              static_cast<int>(box.peer), plan.comm, stream.get());
  TPRT_NCCL(ncclGroupEnd, plan.comm);
}

void NcclCommunicator::enqueue(int64_t id, const std::byte *src,
                               std::byte *dst) {
  const Collective &c = manifest.collectives[id];
  const NcclPlan &plan = plans[id];
  if (!isWarm)
    addresses.insert(addresses.end(), {src, dst});
  CudaStream &on = getStreamOf(id);
  on.fill(reached.get(), id, sizeof(int32_t), 1);
  switch (c.kind) {
  case CollectiveKind::AllReduce:
    if (plan.resultElements > 0)
      TPRT_NCCL(ncclAllReduce, plan.comm, src, dst, plan.resultElements,
                *toNccl(c.dtype), toNccl(c.reduction), plan.comm, on.get());
    break;
  case CollectiveKind::Broadcast:
    TPRT_NCCL(ncclBroadcast, plan.comm, src, dst,
              plan.resultElements * byteWidth(c.dtype), ncclUint8,
              static_cast<int>(c.root), plan.comm, on.get());
    break;
  case CollectiveKind::AllGather:
    allGather(c, plan, src, dst);
    break;
  case CollectiveKind::ReduceScatter:
    reduceScatter(c, plan, src, dst);
    break;
  default:
    exchange(plan, byteWidth(c.dtype), src, dst, on);
  }
}

int64_t NcclCommunicator::run(int64_t id, const std::byte *src,
                              std::byte *dst) {
  start(id, src, dst);
  return wait(id);
}

void NcclCommunicator::start(int64_t id, const std::byte *src, std::byte *dst) {
  if (!plans[id].isMember)
    throw executionError("rank " + std::to_string(rank) +
                         " is in no group of " +
                         describeCollective(manifest, id));
  if (!plans[id].comm) // neither sends nor receives
    return;
  CudaStream &on = getStreamOf(id);
  if (&on == &compute)
    return enqueue(id, src, dst);
  on.waitFor(compute.announce());
  enqueue(id, src, dst);
  ends[id] = on.announce();
}

int64_t NcclCommunicator::wait(int64_t id) {
  if (plans[id].comm && &getStreamOf(id) != &compute)
    compute.waitFor(ends[id]);
  return plans[id].countedBytes;
}

std::shared_ptr<std::byte> NcclCommunicator::allocate(int64_t bytes) {
  try {
    return allocateForNccl(stream.getContext(), bytes);
  } catch (const Error &error) {
    allocationProblem = error.what();
    return nullptr;
  }
}

/// What a rank tells the others about a failure begins with this.
static constexpr char failureMark = '!';

/// The first rank's failure among what the ranks have told; empty if there is
/// none.
static std::string findFailure(const std::vector<std::string> &all) {
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].starts_with(failureMark))
      return "rank " + std::to_string(rank) + ": " + all[rank].substr(1);
  return "";
}

/// A message of limited length for the other ranks.
static std::string makeFailure(const std::string &problem) {
  return failureMark + makePrintable(problem, 1000, 1);
}

/// Why the arena can't be registered: some rank's isn't NCCL's memory, or the
/// ranks' collectives use different offsets of their arenas. Empty if it can.
std::string NcclCommunicator::findObstacle(const std::byte *arena,
                                           int64_t bytes) {
  std::string offsets = std::to_string(bytes);
  for (const std::byte *address : addresses)
    offsets += address >= arena && address < arena + bytes
                   ? " " + std::to_string(address - arena)
                   : " -";
  // Others may have other collectives, but not many more.
  size_t limit = 2 * offsets.size() + 4096;
  if (!allocationProblem.empty())
    offsets = makeFailure(allocationProblem);
  std::vector<std::string> all = rendezvous.exchange(offsets, limit);
  std::string failure = findFailure(all);
  bool isShared =
      std::all_of(all.begin(), all.end(),
                  [&](const std::string &other) { return other == offsets; });
  return failure.empty() && !isShared ? "the ranks' offsets differ" : failure;
}

/// Registers the arena on all ranks, or, if any of them can't, on none.
/// Returns why, or nothing.
std::string NcclCommunicator::registerArena(std::byte *arena, int64_t bytes) {
  std::string outcome = "window buffers";
  try {
    for (auto &[groups, comm] : comms) { // in the same order everywhere
      if (!comm)
        continue;
      auto made = std::make_shared<std::unique_ptr<Registration>>();
      watch(nccl.canShare ? "ncclCommWindowRegister" : "ncclCommRegister",
            [made, comm = comm, arena, bytes] {
              *made = std::make_unique<Registration>(comm, arena, bytes);
            });
      registrations.push_back(std::move(*made));
      if (!registrations.back()->isWindow())
        outcome = "registered buffers";
    }
  } catch (const AbortedError &) {
    throw;
  } catch (const GivenUp &) {
    throw;
  } catch (const Error &error) {
    outcome = makeFailure(error.what());
  }
  std::vector<std::string> all = rendezvous.exchange(outcome, 4096);
  std::string failure = findFailure(all);
  if (!failure.empty())
    registrations.clear();
  // A window that some ranks don't have is used by none: "registered …" is less
  // than "window …".
  buffers = *std::min_element(all.begin(), all.end());
  return failure;
}

bool NcclCommunicator::warmUp(std::byte *arena, int64_t bytes) {
  if (isWarm)
    return true;
  isWarm = true;
  if (!nccl.canRegister || bytes == 0)
    return true;
  // The offsets of programs that haven't run yet aren't known.
  if (manifest.programs.size() > 1) {
    buffers = "plain buffers (there are several programs)";
    return true;
  }
  std::string problem = findObstacle(arena, bytes);
  addresses = {};
  if (problem.empty())
    problem = registerArena(arena, bytes);
  if (!problem.empty()) {
    buffers = "plain buffers (" + problem + ")";
    return true;
  }
  return false; // NCCL must first run once uncaptured in this memory
}

std::string NcclCommunicator::getDescription() const {
  return "NCCL " + nccl.getVersionString() + ", " + buffers;
}

/// "; rank 1 is stopped by …", or empty.
std::string NcclCommunicator::describeStopped() const {
  std::string stopped = rendezvous.describeStopped();
  return stopped.empty() ? "" : "; " + stopped;
}

/// "In or after", because work after a collective isn't tracked.
std::string NcclCommunicator::describeActivity() const {
  int32_t id = *reinterpret_cast<volatile int32_t *>(reached.get());
  if (id < 0 || static_cast<size_t>(id) >= manifest.collectives.size())
    return "rank " + std::to_string(rank) + " is before its first collective" +
           describeStopped();
  return "rank " + std::to_string(rank) + " is in or after " +
         describeCollective(manifest, id) + describeStopped();
}

std::vector<std::string> NcclCommunicator::exchange(const std::string &mine,
                                                    size_t limit) {
  try {
    return rendezvous.exchange(mine, limit);
  } catch (...) {
    abort("");
    throw;
  }
}

void NcclCommunicator::barrier() { exchange("", 0); }

void NcclCommunicator::poll() {
  try {
    rendezvous.poll();
    std::vector<ncclComm_t> all = getSplitComms();
    all.push_back(world);
    for (ncclComm_t comm : all) {
      ncclResult_t error = ncclSuccess;
      if (nccl.ncclCommGetAsyncError(comm, &error) == ncclSuccess)
        nccl.check(error, "a collective", comm);
    }
  } catch (...) {
    abort("");
    throw;
  }
}

/// Without a reason: the others know already.
void NcclCommunicator::abort(const std::string &reason) {
  if (!reason.empty())
    rendezvous.abort(reason);
  if (isAborted)
    return;
  isAborted = true;
  for (std::unique_ptr<Registration> &registration : registrations)
    registration->forget();
  // Ends their kernels, and frees them.
  for (ncclComm_t comm : getSplitComms())
    nccl.ncclCommAbort(comm);
  if (world)
    nccl.ncclCommAbort(world);
}

std::unique_ptr<Communicator>
cuda::makeNcclCommunicator(const Manifest &manifest,
                           const CommunicatorOptions &options, int64_t rank,
                           int64_t worldSize, Rendezvous &rendezvous) {
  if (worldSize != manifest.worldSize)
    throw inputError("the program has " + std::to_string(manifest.worldSize) +
                     " ranks, but there are " + std::to_string(worldSize) +
                     " processes");
  auto *stream =
      options.device
          ? dynamic_cast<CudaStream *>(options.device->getStream(rank))
          : nullptr;
  if (!stream)
    throw inputError("NCCL is for programs for CUDA devices, and this one is "
                     "for the host");
  return std::make_unique<NcclCommunicator>(manifest, *stream, rank, rendezvous,
                                            options.timeout);
}
