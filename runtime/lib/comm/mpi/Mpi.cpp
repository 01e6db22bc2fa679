//===- Mpi.cpp - This process as a rank of MPI ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/mpi/Mpi.h"

#include "support/Patience.h"

#include <condition_variable>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace tprt;
using namespace tprt::mpi;
using std::chrono::milliseconds;

//===----------------------------------------------------------------------===//
// Implementations
//===----------------------------------------------------------------------===//

namespace {

struct Implementation {
  const char *name;                ///< for people
  const char *plugin;              ///< the end of its plug-in's name
  const char *variable;            ///< that its launcher sets
  const char *headers, *libraries; ///< Debian's packages
};

/// The first one whose variable is set has started the process.
constexpr Implementation implementations[] = {
    {"Open MPI", "openmpi", "OMPI_COMM_WORLD_RANK", "libopenmpi-dev",
     "libopenmpi3"},
    {"MPICH", "mpich", "PMI_RANK", "libmpich-dev", "libmpich12"},
    {"Open MPI", "openmpi", "PMIX_RANK", "libopenmpi-dev", "libopenmpi3"},
};

} // namespace

static const Implementation *findImplementation() {
  for (const Implementation &each : implementations)
    if (std::getenv(each.variable))
      return &each;
  return nullptr;
}

/// The folder of this library, where its plug-ins are.
static std::filesystem::path getFolder() {
  static const char here = 0;
  Dl_info info = {};
  ::dladdr(&here, &info);
  std::error_code error;
  return std::filesystem::weakly_canonical(info.dli_fname ? info.dli_fname : "",
                                           error)
      .parent_path();
}

/// Loads the plug-in once. Returns null and sets `problem` if it can't be used.
static const Plugin *load(std::string &problem) {
  const Implementation *implementation = findImplementation();
  if (!implementation) {
    problem = "no launcher of MPI has started this process; start it with "
              "mpirun, mpiexec or srun";
    return nullptr;
  }
  std::string name = implementation->name;
  std::string file =
      std::string("libtprt-mpi-") + implementation->plugin + ".so";
  std::filesystem::path path = getFolder() / file;
  if (::access(path.c_str(), F_OK) != 0) {
    problem = "this build of the runtime can't use " + name +
              ", which has started this process: there is no " + file +
              " in '" + path.parent_path().string() + "'; it is built where " +
              name +
              "'s mpi.h is installed (Debian: " + implementation->headers + ")";
    return nullptr;
  }
  // Global, since MPI's own plug-ins use its symbols.
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    problem = "cannot load " + name + ": " + ::dlerror() +
              "; install it (Debian: " + implementation->libraries + ")";
    return nullptr;
  }
  auto *getPlugin =
      reinterpret_cast<GetPlugin *>(::dlsym(library, getPluginSymbol));
  const Plugin *plugin = getPlugin ? getPlugin() : nullptr;
  if (plugin && plugin->version == pluginVersion)
    return plugin;
  problem = "'" + path.string() + "' belongs to another build of the runtime";
  return nullptr;
}

static const Plugin &getPluginOrThrow() {
  std::string problem;
  if (const Plugin *plugin = load(problem))
    return *plugin;
  throw inputError(problem);
}

bool Mpi::isLaunched() { return findImplementation() != nullptr; }

std::string Mpi::explainMissing() {
  std::string problem;
  load(problem);
  return problem;
}

/// "Open MPI v4.1.4" of "Open MPI v4.1.4, package: …", "MPICH 4.0.2" of "MPICH
/// Version:\t4.0.2".
static std::string tidyVersion(std::string text) {
  text = text.substr(0, text.find(','));
  const std::string_view label = "Version:";
  if (size_t at = text.find(label); at != std::string::npos)
    text.erase(at, label.size());
  std::string tidy;
  for (char c : text)
    if (bool isBlank = c == ' ' || c == '\t'; !isBlank)
      tidy += c;
    else if (!tidy.empty() && tidy.back() != ' ')
      tidy += ' ';
  return tidy;
}

//===----------------------------------------------------------------------===//
// The thread that starts and ends MPI
//===----------------------------------------------------------------------===//

/// MPI_Finalize must be called by the thread that has called MPI_Init. The
/// thread owns this object too, so that it may be left behind in a call that
/// doesn't return.
class Mpi::Thread {
public:
  using Work = std::function<int()>;

  /// Ends with the result.
  static std::shared_ptr<Thread> make() {
    auto made = std::make_shared<Thread>();
    std::thread([made] { made->serve(); }).detach();
    return {made.get(), [made](Thread *) { made->stop(); }};
  }

  /// Returns what `work` returns; nullopt if it goes on after `limit`.
  std::optional<int> run(Work next, milliseconds limit) {
    std::unique_lock lock(mutex);
    work = std::move(next);
    result.reset();
    changed.notify_all();
    Patience patience(limit);
    while (!changed.wait_for(lock, milliseconds(20),
                             [this] { return result.has_value(); }))
      if (patience.isOver())
        return std::nullopt;
    return result;
  }

private:
  void stop() {
    std::lock_guard lock(mutex);
    isOver = true;
    changed.notify_all();
  }
  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return isOver || work; });
      if (!work)
        return;
      Work current = std::exchange(work, nullptr);
      lock.unlock();
      int code = current();
      lock.lock();
      result = code;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  Work work;
  std::optional<int> result;
  bool isOver = false;
};

//===----------------------------------------------------------------------===//
// Mpi
//===----------------------------------------------------------------------===//

static std::mutex currentMutex;
static std::weak_ptr<Mpi> current;

std::shared_ptr<Mpi> Mpi::start(milliseconds timeout) {
  std::lock_guard lock(currentMutex);
  if (std::shared_ptr<Mpi> mpi = current.lock())
    return mpi;
  std::shared_ptr<Mpi> mpi(new Mpi(timeout));
  current = mpi;
  return mpi;
}

std::shared_ptr<Mpi> Mpi::get() {
  std::lock_guard lock(currentMutex);
  return current.lock();
}

Mpi::Mpi(milliseconds timeout) : plugin(getPluginOrThrow()), timeout(timeout) {
  int isInitialized = 0;
  char text[256] = "";
  plugin.isInitialized(&isInitialized, text, sizeof(text));
  version = tidyVersion(text);
  if (isInitialized)
    throw inputError(version + " has been started before in this process, "
                               "which it can be only once");
  // The thread may outlive this object.
  struct Start {
    int rank = 0, worldSize = 0, numLocal = 0, isThreadSafe = 0;
    Handle world = 0;
  };
  auto start = std::make_shared<Start>();
  thread = Thread::make();
  std::optional<int> code = thread->run(
      [start, &plugin = plugin] {
        int code = plugin.initialize(&start->rank, &start->worldSize,
                                     &start->numLocal, &start->isThreadSafe);
        return code == 0 ? plugin.duplicateWorld(&start->world) : code;
      },
      timeout);
  if (!code)
    throw executionError("MPI_Init hasn't returned for " +
                         formatTimeout(timeout) +
                         ": other ranks haven't called it");
  check(*code, "MPI_Init_thread");
  if (!start->isThreadSafe)
    throw inputError(version + " doesn't support MPI_THREAD_SERIALIZED, which "
                               "the runtime needs");
  rank = start->rank;
  worldSize = start->worldSize;
  numLocal = start->numLocal;
  world = start->world;
}

Mpi::~Mpi() {
  if (!isGivenUp && std::uncaught_exceptions() == 0)
    thread->run([&plugin = plugin] { return plugin.finalize(); }, timeout);
}

void Mpi::check(int code, const char *function) const {
  if (code == 0)
    return;
  char text[512] = "";
  plugin.describeError(code, text, sizeof(text));
  throw executionError(std::string(function) + ": " + text);
}

void Mpi::giveUp() { isGivenUp = true; }
