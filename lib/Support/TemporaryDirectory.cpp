//===- TemporaryDirectory.cpp - Directories removed after use -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/TemporaryDirectory.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace mlir::tp;
namespace fs = llvm::sys::fs;

/// The variable that names the system's directory for temporary files, or an
/// empty string. Unlike LLVM's system_temp_directory, ignores variables that
/// are empty.
static StringRef getNamingVariable() {
  for (const char *name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
    if (const char *value = std::getenv(name); value && *value)
      return name;
  return "";
}

static StringRef getTemporaryFolder() {
  StringRef name = getNamingVariable();
  return name.empty() ? "/tmp" : std::getenv(name.data());
}

std::string tp::describeTemporaryFolder() {
  std::string text = ("'" + getTemporaryFolder() + "'").str();
  StringRef name = getNamingVariable();
  return name.empty() ? text : text + ", which $" + name.str() + " names";
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

static constexpr int kSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// The first signal that came while there were directories; 0 if none did.
static std::atomic<int> waitingSignal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a handler sets it");

namespace {
/// The signals' handlers before the first directory was created.
struct Signals {
  std::mutex mutex;
  int64_t numDirectories = 0;
  struct sigaction before[std::size(kSignals)];
};
} // namespace

static Signals &getSignals() {
  static Signals signals;
  return signals;
}

static void holdSignals() {
  Signals &signals = getSignals();
  std::lock_guard lock(signals.mutex);
  if (signals.numDirectories++ > 0)
    return;
  waitingSignal = 0;
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    if (!waitingSignal)
      waitingSignal = signal;
  };
  action.sa_flags = SA_RESTART;
  for (auto [signal, before] : llvm::zip(kSignals, signals.before)) {
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) // nohup ignores SIGHUP
      ::sigaction(signal, &action, nullptr);
  }
}

static void releaseSignals() {
  Signals &signals = getSignals();
  int signal = 0;
  {
    std::lock_guard lock(signals.mutex);
    if (--signals.numDirectories > 0)
      return;
    for (auto [signal, before] : llvm::zip(kSignals, signals.before))
      ::sigaction(signal, &before, nullptr);
    signal = waitingSignal;
  }
  if (signal)
    ::raise(signal);
}

//===----------------------------------------------------------------------===//
// The directory
//===----------------------------------------------------------------------===//

TemporaryDirectory::~TemporaryDirectory() {
  if (path.empty())
    return;
  fs::remove_directories(path);
  releaseSignals();
}

llvm::Error TemporaryDirectory::create(StringRef prefix) {
  llvm::SmallString<128> name(getTemporaryFolder());
  llvm::sys::path::append(name, prefix + "-XXXXXX");
  holdSignals();
  // Unlike createUniqueDirectory, makes a directory that only this user can
  // write to.
  if (!::mkdtemp(const_cast<char *>(name.c_str()))) {
    std::string why = llvm::sys::StrError();
    releaseSignals();
    return llvm::createStringError("can't make a temporary directory in " +
                                   describeTemporaryFolder() + ": " + why);
  }
  path = name;
  return llvm::Error::success();
}

std::string TemporaryDirectory::getFile(const llvm::Twine &name) const {
  return (path + "/" + name).str();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Waits for a process; a signal to this process kills it. The result is -1,
/// with errno, if waiting fails.
static int waitFor(pid_t child, int &status) {
  std::chrono::milliseconds pause(1);
  pid_t ended;
  while ((ended = ::waitpid(child, &status, WNOHANG)) == 0 ||
         (ended < 0 && errno == EINTR)) {
    if (waitingSignal)
      ::kill(child, SIGKILL);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(10));
  }
  return ended < 0 ? -1 : 0;
}

/// Runs a program and returns why it failed; empty if it succeeded.
static std::string execute(ArrayRef<StringRef> arguments,
                           const std::string &logPath) {
  SmallVector<std::string> words = llvm::map_to_vector(
      arguments, [](StringRef argument) { return argument.str(); });
  SmallVector<char *> argv =
      llvm::map_to_vector(words, [](std::string &word) { return word.data(); });
  argv.push_back(nullptr);
  // Keeps an LLVM program that crashes from starting a symbolizer, which leaves
  // files.
  std::string noSymbols = "LLVM_DISABLE_SYMBOLIZATION=1";
  SmallVector<char *> variables = {noSymbols.data()};
  for (char **variable = environ; *variable; ++variable)
    variables.push_back(*variable);
  variables.push_back(nullptr);
  // LLVM's ExecuteAndWait isn't used, because its programs outlive this process
  // if it is killed.
  pid_t parent = ::getpid();
  volatile int error = 0; // the child shares this process's memory
  pid_t child = ::vfork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = ::open("/dev/null", O_RDONLY);
    int log = ::open(logPath.c_str(), O_WRONLY | O_APPEND);
    if (null >= 0 && log >= 0 && ::dup2(null, STDIN_FILENO) >= 0 &&
        ::dup2(log, STDOUT_FILENO) >= 0 && ::dup2(log, STDERR_FILENO) >= 0 &&
        ::getppid() == parent) // false if it has ended before prctl
      ::execve(argv[0], argv.data(), variables.data());
    error = errno;
    ::_exit(EXIT_FAILURE);
  }
  if (child < 0)
    error = errno;
  int status = 0;
  if (child > 0 && waitFor(child, status) != 0 && error == 0)
    return "can't wait for it: " + llvm::sys::StrError();
  if (error != 0)
    return "can't run it: " + llvm::sys::StrError(error);
  if (WIFSIGNALED(status)) {
    const char *name = ::sigabbrev_np(WTERMSIG(status));
    return "it was ended by " + // real-time signals have no name
           (name ? std::string("SIG") + name
                 : "signal " + std::to_string(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0)
    return "";
  auto log = llvm::MemoryBuffer::getFile(logPath);
  std::string printed = log ? (*log)->getBuffer().trim().str() : "";
  if (printed.empty())
    printed = "exit code " + std::to_string(WEXITSTATUS(status));
  if (auto space = fs::disk_space(logPath); space && space->available == 0)
    printed += " (the disk is full)";
  return printed;
}

llvm::Error TemporaryDirectory::run(ArrayRef<StringRef> arguments) const {
  std::string logPath = getFile("log");
  int log = ::open(logPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                   S_IRUSR | S_IWUSR);
  if (log < 0)
    return llvm::createStringError("can't write '" + logPath +
                                   "': " + llvm::sys::StrError());
  ::close(log); // the program opens it again
  std::string problem = execute(arguments, logPath);
  if (problem.empty())
    return llvm::Error::success();
  return llvm::createStringError("'" + arguments.front() + "' failed in '" +
                                 path + "': " + problem);
}
