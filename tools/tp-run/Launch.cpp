//===- Launch.cpp - Ranks that are processes ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Launch.h"

#include "Communication.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tprt;

static std::string drawToken() {
  std::string token(minTokenBytes, 0);
  if (::getentropy(token.data(), token.size()) != 0)
    throw executionError(std::string("cannot draw random numbers: ") +
                         std::strerror(errno));
  return token;
}

//===----------------------------------------------------------------------===//
// What the ranks are told of each other
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t maxProcesses = 4096;

/// A message, and the ranks that have it.
struct Message {
  static constexpr int64_t wordBits = 64;
  std::atomic<size_t> hash;   ///< 0: none
  std::atomic<int64_t> first; ///< 1 + the rank that has printed it
  std::atomic<uint64_t> ranks[maxProcesses / wordBits]; ///< the others
  std::atomic<int64_t> failed; ///< 1 + the rank that one of `ranks` names, or 0
  char kind[16];
  char text[240]; ///< its beginning, as the first rank printed it
};

/// State in memory that the launcher and the ranks share.
struct Board {
  static constexpr int running = -1;
  /// By rank, its last status from waitpid, or `running`.
  std::atomic<int> states[maxProcesses];
  Message messages[32];

  /// Whether to print the message, because no other rank has. Ranks that have
  /// it later are recorded.
  bool shouldPrint(int64_t rank, const std::string &kind,
                   const std::string &text);
};

} // namespace

/// The beginning of a message that repeats another rank's.
static const std::regex repeats("^rank ([0-9]{1,4}) failed: ");

/// `text`, printed by `rank`, without the parts that differ between ranks: its
/// number, its device's number, and which rank failed first.
static std::string makeCommon(int64_t rank, const std::string &text) {
  std::regex own("\\b(rank|device) " + std::to_string(rank) + "\\b");
  return std::regex_replace(std::regex_replace(text, repeats, ""), own, "$1");
}

/// The beginning of the first line of `text`, of at most `limit` bytes.
static std::string abbreviate(const std::string &text, size_t limit) {
  std::string line = text.substr(0, text.find('\n'));
  const std::string mark = "…";
  if (line.size() <= limit)
    return line;
  size_t end = limit - mark.size();
  while (end > 0 && (line[end] & 0xc0) == 0x80) // inside of a character
    --end;
  return line.substr(0, end) + mark;
}

bool Board::shouldPrint(int64_t rank, const std::string &kind,
                        const std::string &text) {
  std::string begin = text.substr(0, 4096);
  size_t hash =
      std::hash<std::string>()(kind + ": " + makeCommon(rank, begin)) | 1;
  for (Message &message : messages) {
    size_t found = 0;
    if (message.hash.compare_exchange_strong(found, hash)) {
      message.first = 1 + rank;
      kind.copy(message.kind, sizeof(message.kind) - 1);
      constexpr size_t limit = sizeof(message.text) - 1;
      abbreviate(text, limit).copy(message.text, limit);
      return true;
    }
    if (found != hash)
      continue;
    if (message.first == 1 + rank)
      return true;
    message.ranks[rank / Message::wordBits] |= uint64_t(1)
                                               << rank % Message::wordBits;
    int64_t none = 0;
    if (std::smatch parts; std::regex_search(begin, parts, repeats))
      message.failed.compare_exchange_strong(none, 1 + std::stoll(parts[1]));
    return false;
  }
  return true;
}

/// "rank 3", "ranks 3, 5 and 7", "ranks 3, 5, 7, 8 and 4091 others".
static std::string nameRanks(const std::vector<int64_t> &ranks) {
  constexpr size_t most = 4;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t shown = ranks.size() > most + 1 ? most : ranks.size();
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0                  ? ""
             : i + 1 == ranks.size() ? " and "
                                     : ", ") +
            std::to_string(ranks[i]);
  if (shown < ranks.size())
    text += " and " + std::to_string(ranks.size() - shown) + " others";
  return text;
}

/// The empty board of this job. Ranks that are started again get the same one.
static Board *makeBoard() {
  static void *memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw executionError(std::string("cannot share memory with the ranks: ") +
                         std::strerror(errno));
  auto *board = new (memory) Board{}; // the messages are zeros
  for (std::atomic<int> &state : board->states)
    state = Board::running;
  return board;
}

/// Whether a rank that ends with this exit code has done its work for the
/// others.
static bool isWell(int exitCode) {
  return exitCode == Success || exitCode == Mismatch || exitCode == Interrupted;
}

static Fate toFate(int status) {
  if (status == Board::running)
    return {};
  if (WIFSTOPPED(status))
    return {Fate::Stopped, std::string("is stopped by SIG") +
                               ::sigabbrev_np(WSTOPSIG(status))};
  if (WIFSIGNALED(status)) {
    const char *name = ::sigdescr_np(WTERMSIG(status));
    return {Fate::Killed, "was ended by signal " +
                              std::to_string(WTERMSIG(status)) + " (" +
                              (name ? name : "unknown") + ")"};
  }
  return {isWell(WEXITSTATUS(status)) ? Fate::Ended : Fate::Failed,
          "ended with exit code " + std::to_string(WEXITSTATUS(status))};
}

//===----------------------------------------------------------------------===//
// The process that has started the ranks
//===----------------------------------------------------------------------===//

/// The processes of running ranks, else 0, for the signal handler.
static volatile pid_t ranks[maxProcesses];
static volatile std::sig_atomic_t numRanks = 0;
/// The signal that has told this process to end, else 0.
static volatile std::sig_atomic_t endSignal = 0;

/// Passes signals on to the ranks, which end in their own way. After Ctrl-C on
/// a terminal, the ranks have got the signal themselves.
static void passSignalsOn() {
  struct sigaction action = {};
  action.sa_sigaction = [](int signal, siginfo_t *info, void *) {
    endSignal = signal;
    if (info->si_code != SI_KERNEL)
      for (int i = 0; i < numRanks; ++i)
        if (ranks[i] > 0)
          ::kill(ranks[i], signal);
  };
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) // else the ranks ignore it as well
      ::sigaction(signal, &action, nullptr);
  }
}

namespace {

/// Keeps SIGINT and SIGTERM pending while it lives.
class SignalsHeld {
public:
  SignalsHeld() {
    ::sigemptyset(&held);
    for (int signal : {SIGINT, SIGTERM})
      ::sigaddset(&held, signal);
    ::sigprocmask(SIG_BLOCK, &held, &before);
  }
  ~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before, nullptr); }
  SignalsHeld(const SignalsHeld &) = delete;
  SignalsHeld &operator=(const SignalsHeld &) = delete;

  /// One that has come; 0 if none has.
  int getPending() const {
    sigset_t pending;
    ::sigpending(&pending);
    for (int signal : {SIGINT, SIGTERM})
      if (::sigismember(&pending, signal))
        return signal;
    return 0;
  }

private:
  sigset_t held, before;
};

/// How long ranks have to end on their own after one has failed.
constexpr std::chrono::milliseconds endTime(4000);
/// How often this process polls after a failure or while a rank is stopped.
constexpr std::chrono::milliseconds lookTime(20);

class Launcher {
public:
  explicit Launcher(const Options &options)
      : options(options), board(*makeBoard()) {}

  /// Returns a job in a rank, and nullopt in the launcher.
  std::optional<Job> start();
  /// The exit code.
  int wait();

private:
  void note(int64_t rank, int status);
  void reportRepeated();
  void endStopped();
  void endLate();
  void kill(int64_t rank);
  bool isRunning(int64_t rank) const { return ranks[rank] > 0; }
  std::string describe(int64_t rank) const {
    return "rank " + std::to_string(rank) + " " +
           toFate(board.states[rank]).description;
  }

  const Options &options;
  Board &board;
  int exitCode = 0;
  /// Whether a rank was ended by the signal that this process got.
  bool isInterrupted = false;
  /// When the first rank failed.
  std::optional<std::chrono::steady_clock::time_point> failed;
  /// How long ranks have been stopped while this process was running.
  std::chrono::milliseconds stopped{0};
  std::set<int64_t> killed; ///< by this process
  /// The ranks that each signal has ended after the first, which is reported.
  std::map<int, std::vector<int64_t>> signalled;
};

} // namespace

std::optional<Job> Launcher::start() {
  // What arrives meanwhile is for ranks that don't run yet, too.
  SignalsHeld signals;
  Job job;
  job.worldSize = options.processes;
  job.token = drawToken();
  job.listenAtFreePort();
  int listener = std::exchange(job.listener, -1);
  job.getFate = [&board = board](int64_t rank) {
    return toFate(board.states[rank]);
  };
  pid_t launcher = ::getpid();
  for (int64_t rank = 0; rank < job.worldSize; ++rank) {
    pid_t child = ::fork();
    if (child < 0) {
      int error = errno;
      for (int64_t started = 0; started < rank; ++started) {
        ::kill(ranks[started], SIGKILL);
        ::waitpid(ranks[started], nullptr, 0);
      }
      throw executionError("cannot start process " + std::to_string(rank + 1) +
                           " of " + std::to_string(job.worldSize) + ": " +
                           std::strerror(error));
    }
    if (child > 0) {
      ranks[rank] = child;
      continue;
    }
    for (int signal : {SIGINT, SIGTERM}) { // the launcher's, after a restart
      struct sigaction inherited = {};
      ::sigaction(signal, nullptr, &inherited);
      if (inherited.sa_handler != SIG_IGN)
        ::signal(signal, SIG_DFL);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) // the launcher has ended already
      ::_exit(RunFailed);
    // For ps and top.
    ::prctl(PR_SET_NAME, ("tp-run:" + std::to_string(rank)).c_str());
    job.rank = job.localRank = rank;
    shouldReport = [&board = board, rank](const std::string &kind,
                                          const std::string &text) {
      return board.shouldPrint(rank, kind, text);
    };
    if (rank == 0)
      job.listener = listener;
    else
      ::close(listener);
    return job;
  }
  ::close(listener);
  numRanks = job.worldSize;
  passSignalsOn();
  int signal = signals.getPending();
  if (!signal && endSignal) // it came since the last ranks have ended
    signal = SIGTERM;
  if (signal)
    for (int64_t rank = 0; rank < numRanks; ++rank)
      ::kill(ranks[rank], signal);
  return std::nullopt;
}

void Launcher::kill(int64_t rank) {
  killed.insert(rank);
  ::kill(ranks[rank], SIGKILL);
}

void Launcher::note(int64_t rank, int status) {
  board.states[rank] = WIFCONTINUED(status) ? Board::running : status;
  if (!WIFEXITED(status) && !WIFSIGNALED(status))
    return;
  ranks[rank] = 0;
  if (WIFSIGNALED(status) && !killed.contains(rank) && !endSignal) {
    auto [others, isFirst] = signalled.try_emplace(WTERMSIG(status));
    if (isFirst)
      report("error", describe(rank));
    else
      others->second.push_back(rank);
  }
  isInterrupted |= WIFSIGNALED(status) && WTERMSIG(status) == endSignal;
  int own = WIFEXITED(status) ? WEXITSTATUS(status) : RunFailed;
  if (!failed && !isWell(own))
    failed = std::chrono::steady_clock::now();
  // The other ranks end as failed runs, perhaps before the rank with the cause,
  // so its exit code replaces theirs.
  if (isWell(exitCode) ? exitCode == Success || !isWell(own)
                       : exitCode == RunFailed && !isWell(own))
    exitCode = own;
}

/// Kills stopped ranks, which can't end on their own, after a failure or when
/// they have been stopped for too long.
void Launcher::endStopped() {
  std::string names;
  for (int64_t rank = 0; rank < options.processes; ++rank)
    if (isRunning(rank) && toFate(board.states[rank]).kind == Fate::Stopped) {
      names += (names.empty() ? "" : "; ") + describe(rank);
      if (failed)
        kill(rank);
    }
  stopped = names.empty() ? std::chrono::milliseconds(0) : stopped + lookTime;
  if (failed || options.timeout == 0 ||
      stopped <= getTimeout(options) + endTime)
    return;
  report("error", names + " for longer than --timeout");
  exitCode = RunFailed;
  failed = std::chrono::steady_clock::now();
  for (int64_t rank = 0; rank < options.processes; ++rank)
    if (isRunning(rank))
      kill(rank);
}

/// Kills ranks that are still running when `endTime` has passed since a
/// failure. A computing rank doesn't see that another one has failed.
void Launcher::endLate() {
  if (!failed || std::chrono::steady_clock::now() - *failed < endTime)
    return;
  std::vector<int64_t> late;
  for (int64_t rank = 0; rank < options.processes; ++rank)
    if (isRunning(rank) && !killed.contains(rank)) {
      late.push_back(rank);
      kill(rank);
    }
  if (!late.empty())
    report("error",
           nameRanks(late) + (late.size() == 1 ? " doesn't end and is killed"
                                               : " don't end and are killed"));
}

/// Reports further ranks with the same messages as those already reported.
void Launcher::reportRepeated() {
  for (const auto &[signal, others] : signalled)
    if (!others.empty())
      report("error", nameRanks(others) +
                          (others.size() == 1 ? " too was ended by signal "
                                              : " too were ended by signal ") +
                          std::to_string(signal));
  for (const Message &message : board.messages) {
    std::vector<int64_t> others;
    for (int64_t rank = 0; rank < options.processes; ++rank)
      if (message.ranks[rank / Message::wordBits] >> rank % Message::wordBits &
          1)
        others.push_back(rank);
    if (others.empty())
      continue;
    std::string text = message.text;
    if (message.failed > 0 && !std::regex_search(text, repeats))
      text = "rank " + std::to_string(message.failed - 1) + " failed: " + text;
    report(message.kind, "the same of " + nameRanks(others) + ": " + text);
  }
}

int Launcher::wait() {
  auto isAnyStopped = [&] { return stopped.count() > 0; };
  int64_t left = options.processes;
  while (left > 0) {
    int status = 0;
    bool isTimed = failed || isAnyStopped();
    pid_t child = ::waitpid(-1, &status,
                            WUNTRACED | WCONTINUED | (isTimed ? WNOHANG : 0));
    if (child > 0) {
      auto found = std::find(ranks, ranks + options.processes, child);
      if (found == ranks + options.processes)
        continue;
      note(found - ranks, status);
      left -= *found == 0;
    } else if (child == 0) {
      std::this_thread::sleep_for(lookTime);
    } else if (errno != EINTR) {
      throw executionError(std::string("cannot wait for the ranks: ") +
                           std::strerror(errno));
    }
    endStopped();
    endLate();
  }
  reportRepeated();
  if (isInterrupted && exitCode == RunFailed) { // so is this process
    ::signal(endSignal, SIG_DFL);
    ::raise(endSignal);
  }
  return exitCode;
}

void restartWithOneThread(char **argv) {
  // fork() waits for the threads that OpenBLAS starts when it is loaded. If one
  // of them gets no memory, that takes forever.
  const char *variable = "OPENBLAS_NUM_THREADS";
  const char *value = std::getenv(variable);
  if (value && value == std::string_view("1"))
    return;
  std::error_code error;
  std::string program = std::filesystem::read_symlink("/proc/self/exe", error);
  ::setenv(variable, "1", /*overwrite=*/1);
  if (!error)
    ::execv(program.c_str(), argv); // on failure, go on with this process
}

std::variant<int, Job> startProcesses(const Options &options) {
  // Report problems that all ranks have only once.
  Options ofRank = options;
  ofRank.job.emplace().worldSize = options.processes;
  const Manifest &manifest = options.artifact->getManifest();
  checkChecksums(options, chooseBackend(ofRank, manifest).first);
  checkNumProcesses(manifest, *ofRank.job);
  for (int64_t restarts = 0;; ++restarts) {
    Launcher launcher(options);
    if (std::optional<Job> job = launcher.start())
      return *job;
    int exitCode = launcher.wait();
    if (exitCode != RunFailed || endSignal ||
        restarts == options.training.numRestarts)
      return exitCode;
    report("note", "starting all ranks again (" + std::to_string(restarts + 1) +
                       " of " + std::to_string(options.training.numRestarts) +
                       ")");
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// A rank's contribution: its counts, then its shards in the manifest's order.
static std::string pack(int64_t rank, const RunResult &result) {
  const std::vector<CollectiveCount> &counts = result.counts[rank];
  std::string bytes(reinterpret_cast<const char *>(counts.data()),
                    counts.size() * sizeof(CollectiveCount));
  for (const TensorInfo &output : result.choice.program->outputs) {
    const Tensor &block = result.blocks[rank].at(output.name);
    bytes.append(reinterpret_cast<const char *>(block.data.get()),
                 block.getNumBytes());
  }
  return bytes;
}

/// The size of that in bytes.
static size_t getPackedBytes(const Manifest &manifest, const Program &program,
                             int64_t rank) {
  size_t bytes = manifest.collectives.size() * sizeof(CollectiveCount);
  for (const TensorInfo &output : program.outputs)
    bytes += output.getShardBytes(rank);
  return bytes;
}

void gatherResult(const Manifest &manifest, const Job &job,
                  Connection &connection, RunResult &result) {
  const Program &program = *result.choice.program;
  size_t limit = 0;
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank)
    limit = std::max(limit, getPackedBytes(manifest, program, rank));
  std::vector<std::string> all =
      connection.gather(pack(job.rank, result), limit);
  if (job.rank > 0)
    return;
  std::vector<std::shared_ptr<std::byte>> wholes;
  for (const TensorInfo &output : program.outputs) {
    Tensor whole{output.dtype, output.shape, nullptr};
    wholes.push_back(allocateAligned(whole.getNumBytes()));
    whole.data = wholes.back();
    result.outputs[output.name] = whole;
  }
  result.blocks.resize(manifest.worldSize);
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    if (all[rank].size() != getPackedBytes(manifest, program, rank))
      throw executionError("rank " + std::to_string(rank) +
                           " has results of another program");
    const char *at = all[rank].data();
    std::vector<CollectiveCount> &counts = result.counts[rank];
    counts.resize(manifest.collectives.size());
    std::memcpy(counts.data(), at, counts.size() * sizeof(CollectiveCount));
    at += counts.size() * sizeof(CollectiveCount);
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const TensorInfo &output = program.outputs[i];
      int64_t bytes = output.getShardBytes(rank);
      std::shared_ptr<std::byte> block = allocateAligned(bytes);
      std::memcpy(block.get(), at, bytes);
      at += bytes;
      writeBlock(output.shape, output.shards[rank], byteWidth(output.dtype),
                 block.get(), wholes[i].get());
      result.blocks[rank][output.name] = {
          output.dtype, output.shards[rank].getShape(), block};
    }
  }
  result.outputs = cutOutputs(result.choice, std::move(result.outputs));
}
