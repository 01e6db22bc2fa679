//===- DynamicLibraryTest.cpp - Missing and old libraries -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/DynamicLibrary.h"

#include "TestUtils.h"
#include "cuda/LibraryFolders.h"

#include <dlfcn.h>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::test;
namespace fs = std::filesystem;

TEST(Library, MissingOne) {
  std::string error = errorOf([] {
    Library({"cuBLASLt", {"libnothere.so.13", "libnothere.so.12"}, {12, 4}});
  });
  EXPECT_TRUE(contains(error, "cannot load cuBLASLt (12.4 or newer): "
                              "libnothere.so.13: cannot open"))
      << error;
}

TEST(Library, BrokenOne) {
  TestDirectory directory;
  std::string path = directory.write("libbroken.so", "not an object");
  EXPECT_TRUE(
      contains(errorOf([&] { Library({"the CUDA driver", {path}, {12, 0}}); }),
               "cannot load the CUDA driver (12.0 or newer): " + path + ": "));
}

TEST(Library, TakesTheFirstThatIsThere) {
  Library library({"NCCL", {"libnothere.so.2", "libcuda.so.1"}, {2, 18}});
  int (*function)(unsigned) = nullptr;
  library.find("cuInit", function);
  EXPECT_NE(function, nullptr);
}

TEST(Library, OldOnes) {
  Library library({"NCCL", {"libcuda.so.1"}, {2, 18}});
  library.checkVersion({2, 18});
  library.checkVersion({3, 0});
  std::string file = " (the file is '" + library.getFile() + "')";
  EXPECT_TRUE(contains(file, "/libtprt-fake-cuda.so')"));
  EXPECT_EQ(errorOf([&] { library.checkVersion({2, 17}); }),
            "NCCL has version 2.17, version 2.18 or newer is needed" + file);
  EXPECT_EQ(errorOf([&] { library.checkVersion({1, 99}); }),
            "NCCL has version 1.99, version 2.18 or newer is needed" + file);
  void (*function)() = nullptr;
  EXPECT_EQ(errorOf([&] { library.find("ncclCommNotThere", function); }),
            "NCCL has no function 'ncclCommNotThere': version 2.18 or newer is "
            "needed" +
                file);
}

namespace {

/// An environment variable with another value.
class Variable {
public:
  Variable(const char *name, const std::string &value) : name(name) {
    if (const char *old = std::getenv(name))
      before = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    before ? ::setenv(name, before->c_str(), 1) : ::unsetenv(name);
  }

private:
  const char *name;
  std::optional<std::string> before;
};

/// A folder with libraries as Python's wheels have them.
class Wheels : public testing::Test {
protected:
  /// Copies the fake libraries to `path`. Only a copy is another library.
  std::string add(const std::string &path) {
    fs::path file = directory / path;
    fs::create_directories(file.parent_path());
    Library fake({"the CUDA driver", {"libcuda.so.1"}, {12, 0}});
    fs::copy_file(fs::canonical(fake.getFile()), file);
    return file.string();
  }
  void addPython(const std::string &prefix) {
    fs::create_directories(directory / (prefix + "/bin"));
    std::ofstream(directory / (prefix + "/bin/python3")) << "#!/bin/sh\n";
    fs::permissions(directory / (prefix + "/bin/python3"),
                    fs::perms::owner_all);
  }
  static bool isLoaded(const std::string &path) {
    return ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  }

  TestDirectory directory;
  Variable environment{"VIRTUAL_ENV", ""}, conda{"CONDA_PREFIX", ""};
  Variable home{"HOME", directory / "home"}, path{"PATH", ""};
  Variable toolkit{"CUDA_HOME", ""};
};

constexpr const char *packages = "/lib/python3.12/site-packages/nvidia/";

} // namespace

TEST_F(Wheels, OfTheEnvironmentInUse) {
  std::string file =
      add("venv" + std::string(packages) + "cu13/lib/libtprtwheel.so.13");
  auto load = [] {
    return Library({"cuBLASLt", {"libtprtwheel.so.13"}, {12, 0}});
  };
  std::string error = errorOf(load);
  EXPECT_TRUE(contains(error, "libtprtwheel.so.13: cannot open shared object"));
  Variable venv("VIRTUAL_ENV", directory / "venv");
  Library library = load();
  EXPECT_EQ(library.getFile(), file);
  EXPECT_EQ(getLoadedLibraries().back(), file);
  int (*function)(unsigned) = nullptr;
  library.find("cuInit", function);
}

TEST_F(Wheels, OfThePythonInPath) {
  std::string own = add("python" + std::string(packages) + "nccl/lib/liba.so"),
              linked = add("base" + std::string(packages) + "nccl/lib/liba.so"),
              user = add("home/.local" + std::string(packages) + "x/lib/b.so"),
              debian = add("base/lib/python3/dist-packages/nvidia/y/lib/c.so"),
              other = add("other" + std::string(packages) + "z/lib/d.so");
  addPython("base");
  addPython("other");
  fs::create_directories(directory / "python/bin");
  fs::create_symlink(directory / "base/bin/python3",
                     directory / "python/bin/python3");
  Variable path("PATH", "relative:" + (directory / "nothing") + ":" +
                            (directory / "python/bin") + ":" +
                            (directory / "other/bin"));
  std::vector<std::string> folders = findLibraryFolders(), expected;
  for (const std::string &file : {own, linked, debian, user})
    expected.push_back(fs::path(file).parent_path().string());
  ASSERT_GE(folders.size(), expected.size());
  folders.resize(expected.size());
  EXPECT_EQ(folders, expected);
}

TEST_F(Wheels, ToolkitsComeAfterThem) {
  add("venv" + std::string(packages) + "cu13/lib/libtprttoolkit.so.1");
  std::string second = add("toolkit/lib64/libtprttoolkit.so.2");
  add("venv" + std::string(packages) + "cu13/lib/libtprttoolkit.so.3");
  Variable venv("VIRTUAL_ENV", directory / "venv"),
      toolkit("CUDA_HOME", directory / "toolkit");
  auto load = [](std::string_view file) {
    return Library({"NCCL", {file}, {2, 18}}).getFile();
  };
  EXPECT_TRUE(contains(load("libtprttoolkit.so.1"), "/venv/"));
  EXPECT_EQ(load("libtprttoolkit.so.2"), second);
  // What isn't a library is named.
  directory.write("toolkit/lib64/libtprttoolkit.so.4", "not an object");
  EXPECT_TRUE(contains(
      errorOf([&] { load("libtprttoolkit.so.4"); }),
      "; " + (directory / "toolkit/lib64/libtprttoolkit.so.4") + ": "));
}

TEST_F(Wheels, CompanionsAreLoadedToo) {
  std::string folder = "venv" + std::string(packages);
  add(folder + "cudnn/lib/libtprtdnn.so.9");
  std::string nvrtc = add(folder + "cuda_nvrtc/lib/libtprtnvrtc.so.13"),
              part = add(folder + "cuda_nvrtc/lib/libtprtpart.so.13.2");
  Variable venv("VIRTUAL_ENV", directory / "venv");
  Library({"cuDNN",
           {"libtprtdnn.so.9"},
           {9, 0},
           {"libtprtnvrtc.so.13", "libtprtpart.so.13.*", "libnothere.so.1"}});
  EXPECT_TRUE(isLoaded(nvrtc));
  EXPECT_TRUE(isLoaded(part));
}

/// A library that the linker finds but can't load isn't replaced by another.
TEST_F(Wheels, DoNotHideABrokenLibrary) {
  add("venv" + std::string(packages) + "cu13/lib/libtprtbroken.so.1");
  Variable venv("VIRTUAL_ENV", directory / "venv");
  std::string broken = directory.write("libtprtbroken.so.1", "not an object");
  EXPECT_TRUE(contains(errorOf([&] {
                         Library(
                             {"NCCL", {broken, "libtprtbroken.so.1"}, {2, 18}});
                       }),
                       broken + ": "));
}
