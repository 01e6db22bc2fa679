//===- Cache.cpp - Programs compiled on the way --------------------------===//

#include "Cache.h"

#include "tprt/File.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tprt;
namespace fs = std::filesystem;

extern char **environ;

namespace {

/// A directory that is gone, with its contents, at the end of the scope.
class TemporaryDirectory {
public:
  explicit TemporaryDirectory(const fs::path &parent)
      : path((parent / "tp-run-XXXXXX").string()) {
    if (!::mkdtemp(path.data()))
      throw inputError("cannot create a directory in '" + parent.string() +
                       "': " + std::strerror(errno));
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path getPath() const { return path; }

private:
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

/// Empty when the environment names no place.
static fs::path getCacheDirectory() {
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

/// 64-bit FNV-1a, continued from `hash`.
static uint64_t hashBytes(std::string_view bytes,
                          uint64_t hash = 0xcbf29ce484222325) {
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// Changes with the program's text and with the compiler.
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
  char key[64];
  std::snprintf(key, sizeof(key), "%016llx-%llx-%016llx",
                static_cast<unsigned long long>(hashBytes(text)),
                static_cast<unsigned long long>(text.size()),
                static_cast<unsigned long long>(hashBytes(identity)));
  return key;
}

/// Its diagnostics go straight to stderr.
static void compile(const fs::path &compiler, const std::string &path,
                    const fs::path &artifact) {
  std::string arguments[] = {compiler.string(), path, "-o", artifact.string()};
  char *argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                  arguments[3].data(), nullptr};
  pid_t child = 0;
  int error =
      ::posix_spawn(&child, compiler.c_str(), nullptr, nullptr, argv, environ);
  if (error != 0)
    throw inputError("cannot run '" + compiler.string() +
                     "': " + std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw inputError("'" + path + "' doesn't compile");
}

/// The artifact of this key, if an intact one is there.
static std::shared_ptr<const Artifact> loadCached(const fs::path &artifact) {
  if (!isArtifact(artifact.string()))
    return nullptr;
  try {
    return Artifact::load(artifact.string());
  } catch (const Error &) {
    return nullptr;
  }
}

std::shared_ptr<const Artifact> loadProgram(const std::string &path,
                                            bool useCache) {
  MappedFile::open(path); // says what is wrong with a path that can't be read
  if (isArtifact(path) || fs::path(path).extension() == ".tpx" ||
      !describeTorchFile(path).empty()) // load says what it is
    return Artifact::load(path);
  fs::path compiler = findCompiler();
  if (compiler.empty())
    throw inputError("'" + path +
                     "' is not an artifact, and there is no 'tp-compile' "
                     "beside tp-run or in PATH to make one");

  fs::path cache = useCache ? getCacheDirectory() : fs::path();
  std::error_code error;
  if (!cache.empty())
    fs::create_directories(cache, error);
  if (cache.empty() || error || ::access(cache.c_str(), W_OK) != 0) {
    TemporaryDirectory directory(fs::temp_directory_path());
    fs::path artifact = directory.getPath() / "program.tpx";
    compile(compiler, path, artifact);
    return Artifact::load(artifact.string());
  }
  fs::path artifact = cache / (makeKey(path, compiler) + ".tpx");
  if (std::shared_ptr<const Artifact> cached = loadCached(artifact))
    return cached;
  // Several processes may compile the same program; each renames its own.
  TemporaryDirectory directory(cache);
  fs::path fresh = directory.getPath() / "program.tpx";
  compile(compiler, path, fresh);
  fs::rename(fresh, artifact, error);
  return Artifact::load(error ? fresh.string() : artifact.string());
}

std::string getGemmFile(const std::string &path, bool useCache) {
  std::error_code error;
  fs::path directory = fs::absolute(path, error).parent_path();
  fs::path cache = useCache ? getCacheDirectory() / "gemm" : fs::path();
  if (::access(directory.c_str(), W_OK) == 0 ||
      fs::exists(path + ".gemm.json", error) || !cache.is_absolute())
    return {};
  fs::create_directories(cache, error);
  char key[32];
  std::snprintf(key, sizeof(key), "%016llx.json",
                static_cast<unsigned long long>(
                    hashBytes(fs::absolute(path, error).string())));
  return (cache / key).string();
}
