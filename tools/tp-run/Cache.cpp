//===- Cache.cpp - Programs compiled on the way ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Cache.h"

#include "tprt/File.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <nettle/sha2.h>
#include <optional>
#include <sstream>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tprt;
namespace fs = std::filesystem;

namespace {

/// The first signal that was held back, else 0.
volatile std::sig_atomic_t waitingSignal = 0;

/// While an object of this class lives, signals that end the process are held
/// back, so that it can end its child and remove temporary files.
class HeldSignals {
public:
  HeldSignals() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      if (!waitingSignal)
        waitingSignal = signal;
    };
    action.sa_flags = SA_RESTART;
    for (auto &[signal, before] : held) {
      ::sigaction(signal, nullptr, &before);
      if (before.sa_handler != SIG_IGN) // as nohup sets it
        ::sigaction(signal, &action, nullptr);
    }
  }
  HeldSignals(const HeldSignals &) = delete;
  ~HeldSignals() {
    for (auto &[signal, before] : held)
      ::sigaction(signal, &before, nullptr);
    if (int signal = waitingSignal) {
      waitingSignal = 0;
      ::raise(signal);
    }
  }

private:
  struct {
    int signal;
    struct sigaction before;
  } held[4] = {{SIGHUP, {}}, {SIGINT, {}}, {SIGQUIT, {}}, {SIGTERM, {}}};
};

/// A directory that is removed with its contents at the end of the scope, even
/// if a signal ends the process.
class TemporaryDirectory {
public:
  /// `naming` follows the name of `parent` in a message.
  explicit TemporaryDirectory(const fs::path &parent,
                              const std::string &naming = "")
      : path((parent / "tp-run-XXXXXX").string()) {
    if (!::mkdtemp(path.data()))
      throw inputError("cannot create a directory in '" + parent.string() +
                       "'" + naming + ": " + std::strerror(errno));
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path getPath() const { return path; }

private:
  HeldSignals signals; ///< outlives the directory
  std::string path;
};

} // namespace

/// The compiler of the same build or installation, else the first in PATH.
static fs::path findCompiler() {
  std::error_code error;
  fs::path sibling =
      fs::read_symlink("/proc/self/exe", error).parent_path() / "tp-compile";
  if (::access(sibling.c_str(), X_OK) == 0)
    return sibling;
  const char *path = std::getenv("PATH");
  std::istringstream directories(path ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');) {
    fs::path candidate = fs::path(directory) / "tp-compile";
    if (::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return {};
}

/// Empty if the environment names no directory.
static fs::path findCacheDirectory() {
  auto getVariable = [](const char *name) {
    const char *value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path directory = getVariable("TP_CACHE_DIR"); !directory.empty())
    return directory;
  if (fs::path cache = getVariable("XDG_CACHE_HOME"); !cache.empty())
    return cache / "tp-mlir";
  if (fs::path home = getVariable("HOME"); !home.empty())
    return home / ".cache" / "tp-mlir";
  return {};
}

/// Resolves `path` step by step. If anyone but this user or root could redirect
/// it or write there, returns an empty path and sets `problem`.
static fs::path resolveOwn(const fs::path &path, std::string &problem) {
  fs::path whole = fs::absolute(path), done;
  std::deque<fs::path> rest(whole.begin(), whole.end());
  auto fail = [&](const fs::path &at, const std::string &what) {
    problem = (at == path ? "it" : "'" + at.string() + "'") + what;
    return fs::path();
  };
  for (int links = 0; !rest.empty();) {
    fs::path name = rest.front();
    rest.pop_front();
    if (name.empty() || name == ".")
      continue;
    if (name == "..") {
      done = done.parent_path();
      continue;
    }
    fs::path next = done / name; // "/" alone is the root
    struct stat status = {};
    if (::lstat(next.c_str(), &status) != 0)
      return fail(next, std::string(" can't be used: ") + std::strerror(errno));
    if (status.st_uid != ::geteuid() && status.st_uid != 0)
      return fail(next, " belongs to another user");
    if (S_ISLNK(status.st_mode)) {
      std::error_code error;
      fs::path target = fs::read_symlink(next, error);
      if (error)
        return fail(next, " is a link that can't be read");
      if (++links > 40)
        return fail(next, " is one of too many links, which may lead to each "
                          "other");
      rest.insert(rest.begin(), target.begin(), target.end());
      continue;
    }
    if (!S_ISDIR(status.st_mode))
      return fail(next, " is not a directory");
    // In a sticky directory like /tmp, nobody can rename others' files.
    bool isSticky = !rest.empty() && (status.st_mode & S_ISVTX);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) && !isSticky)
      return fail(next, rest.empty()
                            ? " can be written by others (mode 0700 would be "
                              "right)"
                            : " can be written by others, who could put "
                              "another directory there");
    done = next;
  }
  return done;
}

/// Makes a directory and its missing parents, for this user alone regardless of
/// the umask. Returns an error, or an empty string.
static std::string makeOwnDirectory(const fs::path &directory) {
  std::error_code error;
  fs::path parent = directory.parent_path();
  if (!parent.empty() && parent != directory && !fs::exists(parent, error))
    if (std::string problem = makeOwnDirectory(parent); !problem.empty())
      return problem;
  if (::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST)
    return {};
  return "'" + directory.string() + "' can't be made: " + std::strerror(errno);
}

/// The cache directory, which is created if needed, or empty. Its files are
/// executed, so nobody else may be able to write there or to replace the
/// directory.
static fs::path openCacheDirectory() {
  fs::path directory = findCacheDirectory();
  if (directory.empty())
    return {};
  std::string problem = makeOwnDirectory(directory);
  fs::path resolved;
  if (problem.empty())
    resolved = resolveOwn(directory, problem);
  if (problem.empty() && ::access(resolved.c_str(), W_OK) == 0)
    return resolved;
  if (!problem.empty())
    report("note", "compiled programs aren't cached in '" + directory.string() +
                       "': " + problem);
  return {};
}

/// The same, but only checked once.
static const fs::path &getCacheDirectory() {
  static const fs::path directory = openCacheDirectory();
  return directory;
}

/// SHA-256, in hexadecimal digits.
static std::string hashBytes(std::initializer_list<std::string_view> texts) {
  sha256_ctx context;
  ::sha256_init(&context);
  for (std::string_view text : texts) {
    // Include the sizes, so that different lists never give the same bytes.
    uint64_t size = text.size();
    ::sha256_update(&context, sizeof(size),
                    reinterpret_cast<const uint8_t *>(&size));
    ::sha256_update(&context, text.size(),
                    reinterpret_cast<const uint8_t *>(text.data()));
  }
  uint8_t digest[SHA256_DIGEST_SIZE];
  ::sha256_digest(&context, sizeof(digest), digest);
  std::string hex;
  for (uint8_t byte : digest)
    for (int digit : {byte >> 4, byte & 15})
      hex += "0123456789abcdef"[digit];
  return hex;
}

/// A key that changes with the program's text and with the compiler.
static std::string makeKey(const std::string &path, const fs::path &compiler) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  std::string_view text(reinterpret_cast<const char *>(file->getBytes().data()),
                        file->getBytes().size());
  struct stat status = {};
  ::stat(compiler.c_str(), &status);
  std::string identity = compiler.string() + "|" +
                         std::to_string(status.st_size) + "|" +
                         std::to_string(status.st_mtim.tv_sec) + "." +
                         std::to_string(status.st_mtim.tv_nsec);
  return hashBytes({text, identity});
}

/// Loads the artifact that compile() has just written. Fails if somebody else
/// has replaced it, since everyone may be able to write to the directory for
/// temporary files.
static std::shared_ptr<const Artifact> loadFresh(const fs::path &path) {
  std::shared_ptr<const Artifact> artifact = Artifact::load(path.string());
  if (!artifact->isOwn())
    throw inputError("'" + path.string() +
                     "' may have been replaced since it was compiled: another "
                     "user can write it");
  return artifact;
}

/// Waits for the compiler, and ends it if a signal tells this process to end.
static int waitForCompiler(pid_t child) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds endTime(4); // to remove its own files
  std::optional<Clock::time_point> told;
  std::chrono::milliseconds pause(1);
  int status = 0;
  for (pid_t ended; (ended = ::waitpid(child, &status, WNOHANG)) == 0 ||
                    (ended < 0 && errno == EINTR);) {
    if (waitingSignal && !told) {
      told = Clock::now();
      ::kill(child, SIGTERM);
      ::kill(child, SIGCONT); // it may be stopped
    } else if (told && Clock::now() - *told > endTime) {
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(10));
  }
  return status;
}

/// Runs the compiler. Its diagnostics go straight to stderr. It ends with this
/// process, and its output files belong to this user alone.
static void compile(const fs::path &compiler, const std::string &path,
                    const fs::path &artifact) {
  std::string arguments[] = {compiler.string(), path, "-o", artifact.string()};
  char *argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                  arguments[3].data(), nullptr};
  // fork() would call handlers of libraries, one of which waits for a thread
  // that can't continue if memory has run out.
  pid_t parent = ::getpid();
  volatile int error = 0; // the child shares this process's memory
  pid_t child = ::vfork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) // unless the parent has ended already
      ::execv(argv[0], argv);
    error = errno;
    ::_exit(EXIT_FAILURE);
  }
  if (child < 0)
    error = errno;
  int status = child > 0 ? waitForCompiler(child) : 0;
  if (error != 0)
    throw inputError("cannot run '" + compiler.string() +
                     "': " + std::strerror(error));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw inputError("'" + path + "' doesn't compile");
  ::chmod(artifact.c_str(), 0600);
}

/// The cached artifact at `path`, if it is intact and nobody else has put it
/// there.
static std::shared_ptr<const Artifact> loadCached(const fs::path &path) {
  if (!isArtifact(path.string()))
    return nullptr;
  try {
    std::shared_ptr<const Artifact> artifact = Artifact::load(path.string());
    return artifact->isOwn() ? artifact : nullptr;
  } catch (const Error &) {
    return nullptr;
  }
}

/// Compiles the program at `path` in a temporary directory, and loads it. `use`
/// may read the file before it is removed.
static std::shared_ptr<const Artifact>
compileAside(const fs::path &compiler, const std::string &path,
             const std::function<void(const fs::path &)> &use) {
  fs::path folder = "/tmp";
  std::string naming;
  for (const char *name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
    if (const char *value = std::getenv(name); value && *value) {
      folder = value;
      naming = std::string(", which $") + name + " names";
      break;
    }
  TemporaryDirectory directory(folder, naming);
  fs::path artifact = directory.getPath() / "program.tpx";
  compile(compiler, path, artifact);
  std::shared_ptr<const Artifact> program = loadFresh(artifact);
  use(artifact);
  return program;
}

/// Puts a copy of the compiled artifact into the cache. A failure, for instance
/// because of a full disk, is only reported.
static void keepInCache(const fs::path &fresh, const fs::path &place) {
  auto note = [&](const std::string &problem) {
    report("note", "compiled programs aren't cached in '" +
                       place.parent_path().string() + "': " + problem);
  };
  try {
    // Several processes may keep the same program; each renames its own.
    TemporaryDirectory directory(place.parent_path());
    fs::path copy = directory.getPath() / "program.tpx";
    std::error_code error;
    if (fs::copy_file(fresh, copy, error))
      fs::rename(copy, place, error);
    if (error)
      note(error.message());
  } catch (const Error &error) {
    note(error.what());
  }
}

std::shared_ptr<const Artifact> loadProgram(const Options &options) {
  if (options.artifact)
    return options.artifact;
  const std::string &path = options.program;
  MappedFile::open(path); // reports a path that can't be read
  if (isArtifact(path) || fs::path(path).extension() == ".tpx" ||
      !describeTorchFile(path).empty()) // load() says what it is
    return Artifact::load(path);
  fs::path compiler = findCompiler();
  if (compiler.empty())
    throw inputError("'" + path +
                     "' is not an artifact, and there is no 'tp-compile' "
                     "beside tp-run or in PATH to make one");

  fs::path cache = options.noCache ? fs::path() : getCacheDirectory();
  if (cache.empty())
    return compileAside(compiler, path, [](const fs::path &) {});
  std::string key = makeKey(path, compiler);
  fs::path artifact = cache / (key + ".tpx");
  if (std::shared_ptr<const Artifact> cached = loadCached(artifact))
    return cached;
  std::shared_ptr<const Artifact> kept;
  std::shared_ptr<const Artifact> program =
      compileAside(compiler, path, [&](const fs::path &fresh) {
        if (makeKey(path, compiler) != key) // the text has changed since
          return;
        keepInCache(fresh, artifact);
        kept = loadCached(artifact);
      });
  return kept ? kept : program;
}

std::string getGemmFile(const std::string &path, bool useCache) {
  std::error_code error;
  fs::path directory = fs::absolute(path, error).parent_path();
  if (::access(directory.c_str(), W_OK) == 0 ||
      fs::exists(path + ".gemm.json", error) || !useCache ||
      !fs::exists(directory, error)) // for programs that aren't kept
    return {};
  fs::path cache = getCacheDirectory();
  if (cache.empty())
    return {};
  cache /= "gemm";
  ::mkdir(cache.c_str(), 0700);
  return cache / (hashBytes({fs::absolute(path, error).string()}) + ".json");
}
