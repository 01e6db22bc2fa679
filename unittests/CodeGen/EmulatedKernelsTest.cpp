//===- EmulatedKernelsTest.cpp - Kernels of GPUs, run on the CPU ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles programs for the CPU and for the emulated device, runs both, and
// compares what they compute. A thread of the device is a fiber: those of a
// block run one after the other, each up to its next barrier, in ascending and
// in descending order, so that what needs a barrier and has none differs.
//
//===----------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/Target/Artifact/ArtifactWriter.h"
#include "tprt/abi.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"
#include <dlfcn.h>
#include <random>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::tp;

//===----------------------------------------------------------------------===//
// The emulator
//===----------------------------------------------------------------------===//

// As in --tp-emulate-kernels.
struct tp_emulated_thread {
  uint32_t thread, block, block_size, grid_size;
  void *shared;
};

namespace {

using KernelFunction = void (*)(const tp_emulated_thread *, void *const *);
constexpr size_t kStackBytes = 64 * 1024;

struct Fiber {
  tp_emulated_thread self; // first: the kernel's view of it
  ucontext_t context;
  bool isDone = false;
  uint32_t shuffled = 0;
};

/// What runs at the moment: there is one thread.
struct Device {
  const tprt_device_code *code = nullptr;
  void *kernels = nullptr;
  bool isDescending = false;
  tprt_device_error error{-1, 0, 0, 0};
  int numLaunches = 0;

  ucontext_t main;
  std::vector<Fiber> fibers;
  KernelFunction kernel = nullptr;
  void *const *arguments = nullptr;
} device;

Fiber &getFiber(const tp_emulated_thread *self) {
  return device.fibers[self->thread];
}

void runFiber(unsigned number) {
  Fiber &fiber = device.fibers[number];
  device.kernel(&fiber.self, device.arguments);
  fiber.isDone = true;
  swapcontext(&fiber.context, &device.main);
}

void runBlock(uint32_t block, const tprt_launch_args &args, void *shared) {
  static std::vector<char> stacks(1024 * kStackBytes);
  uint32_t size = args.block[0];
  device.fibers = std::vector<Fiber>(size);
  for (uint32_t i = 0; i < size; ++i) {
    Fiber &fiber = device.fibers[i];
    fiber.self = {i, block, size, args.grid[0], shared};
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks.data() + i * kStackBytes;
    fiber.context.uc_stack.ss_size = kStackBytes;
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(runFiber), 1, i);
  }
  for (size_t numDone = 0; numDone < size;) {
    numDone = 0;
    for (uint32_t i = 0; i < size; ++i) {
      Fiber &fiber = device.fibers[device.isDescending ? size - 1 - i : i];
      swapcontext(&device.main, &fiber.context);
      numDone += fiber.isDone;
    }
    ASSERT_TRUE(numDone == 0 || numDone == size)
        << "some threads wait at a barrier, others have ended";
  }
}

} // namespace

extern "C" {
void tp_emulated_barrier(const tp_emulated_thread *self) {
  swapcontext(&getFiber(self).context, &device.main);
}
uint32_t tp_emulated_shuffle_xor(const tp_emulated_thread *self, uint32_t value,
                                 uint32_t mask) {
  getFiber(self).shuffled = value;
  tp_emulated_barrier(self);
  uint32_t other = device.fibers[self->thread ^ mask].shuffled;
  tp_emulated_barrier(self);
  return other;
}
int32_t tprt_launch(tprt_rank *, int32_t number, const tprt_launch_args *args,
                    void *const *arguments) {
  std::string name = device.code->kernels[number];
  device.kernel =
      reinterpret_cast<KernelFunction>(dlsym(device.kernels, name.c_str()));
  auto *bytes = static_cast<int32_t *>(
      dlsym(device.kernels, (name + "_shared_bytes").c_str()));
  EXPECT_LE(*bytes, 48 * 1024);
  EXPECT_EQ(args->block[0] % 32, 0u);
  EXPECT_LE(args->block[0], 1024u);
  device.arguments = arguments;
  ++device.numLaunches;
  std::unique_ptr<void, decltype(&free)> shared(aligned_alloc(64, *bytes + 64),
                                                free);
  for (uint32_t block = 0; block < args->grid[0]; ++block) {
    memset(shared.get(), 0xCD, *bytes);
    runBlock(block, *args, shared.get());
  }
  return 0;
}
int32_t tprt_fill(tprt_rank *, void *dst, uint64_t pattern, int32_t width,
                  int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    memcpy(static_cast<char *>(dst) + i * width, &pattern, width);
  return 0;
}
void *tprt_error_record(tprt_rank *) { return &device.error; }
void tprt_mark(tprt_rank *, int32_t) {}
/// Two parts, the last one first: their order doesn't matter.
int32_t tprt_parallel(tprt_rank *, tprt_range_function kernel,
                      const uint64_t *arguments, int64_t count, int64_t) {
  kernel(arguments, count / 2, count);
  kernel(arguments, 0, count / 2);
  return 0;
}
int32_t tprt_index_error(tprt_rank *, const char *what, int64_t index,
                         int64_t bound) {
  device.error = {0, 0, index, bound};
  return TPRT_INDEX_OUT_OF_RANGE;
}
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

/// A shared object in memory. The file stays open: dlopen knows it by its
/// number.
void *load(StringRef bytes) {
  int file = memfd_create("object", 0);
  EXPECT_EQ(write(file, bytes.data(), bytes.size()), (ssize_t)bytes.size());
  void *library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(),
                         RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  return library;
}

struct Tensor {
  std::string dtype;
  std::vector<char> bytes; // 64 more, so that it can be aligned

  char *get() {
    auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return reinterpret_cast<char *>((address + 63) / 64 * 64);
  }
  size_t getWidth() const {
    return dtype == "i1" ? 1
                         : std::stoi(dtype.substr(dtype[0] == 'b' ? 2 : 1)) / 8;
  }
  size_t getSize() const { return (bytes.size() - 64) / getWidth(); }

  double at(size_t i) {
    char *p = get() + i * getWidth();
    if (dtype == "f32")
      return llvm::bit_cast<float>(llvm::support::endian::read32le(p));
    if (dtype == "bf16")
      return llvm::bit_cast<float>(uint32_t(llvm::support::endian::read16le(p))
                                   << 16);
    if (dtype == "f64")
      return llvm::bit_cast<double>(llvm::support::endian::read64le(p));
    if (dtype == "i64")
      return static_cast<double>(llvm::support::endian::read64le(p));
    return *p;
  }
};

class Program {
public:
  Program(StringRef text, StringRef target) {
    DialectRegistry registry;
    registerCodeGeneration(registry);
    MLIRContext context(registry);
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    std::string artifact;
    llvm::raw_string_ostream os(artifact);
    CompileOptions options;
    options.target = target.str();
    llvm::Error error = compileToArtifact({{"main", *module}}, options, os);
    EXPECT_FALSE(!!error) << llvm::toString(std::move(error));
    tprt_artifact_header header;
    memcpy(&header, artifact.data(), sizeof(header));
    StringRef body = StringRef(artifact).substr(sizeof(header));
    manifest =
        *llvm::cantFail(llvm::json::parse(body.substr(0, header.manifest_size)))
             .getAsObject();
    description = *manifest.getArray("programs")->front().getAsObject();
    program = load(body.substr(header.manifest_size, header.object_size));
    if (auto *code = static_cast<const tprt_device_code *>(
            dlsym(program, TPRT_DEVICE_CODE_SYMBOL))) {
      EXPECT_EQ(code->num_images, 1);
      EXPECT_EQ(code->images[0].arch, 0);
      device.code = code;
      device.kernels =
          load(StringRef(static_cast<const char *>(code->images[0].data),
                         code->images[0].size));
    }
  }

  /// Runs it on numbers that depend on names and sizes alone; indices are below
  /// `bound`. Returns the outputs.
  std::vector<Tensor> run(int64_t bound) {
    std::vector<Tensor> inputs = makeTensors("inputs", bound),
                        parameters = makeTensors("parameters", bound),
                        outputs = makeTensors("outputs", bound);
    Tensor arena{"i1", std::vector<char>(
                           *description.getInteger("arena_bytes") + 64, 0x7F)};
    auto getPointers = [](std::vector<Tensor> &tensors) {
      std::vector<void *> pointers;
      for (Tensor &tensor : tensors)
        pointers.push_back(tensor.get());
      return pointers;
    };
    device.error = {-1, 0, 0, 0};
    device.numLaunches = 0;
    auto entry =
        reinterpret_cast<tpx_main_fn>(dlsym(program, TPRT_ENTRY_SYMBOL));
    entry(nullptr, 0, getPointers(inputs).data(),
          getPointers(parameters).data(), getPointers(outputs).data(),
          arena.get());
    for (Tensor &parameter : parameters) // what it updates
      outputs.push_back(std::move(parameter));
    return outputs;
  }

private:
  std::vector<Tensor> makeTensors(StringRef kind, int64_t bound) {
    std::vector<Tensor> tensors;
    std::mt19937 random(kind.size());
    // A program lists its parameters by their numbers.
    const llvm::json::Object &holder =
        kind == "parameters" ? manifest : description;
    for (const llvm::json::Value &value : *holder.getArray(kind)) {
      const llvm::json::Object &entry = *value.getAsObject();
      Tensor tensor{entry.getString("dtype")->str(), {}};
      size_t size = 1;
      for (const llvm::json::Value &extent : *entry.getArray("shape"))
        size *= *extent.getAsInteger();
      tensor.bytes.assign(size * tensor.getWidth() + 64, 0x55);
      for (size_t i = 0; kind != "outputs" && i < size; ++i) {
        char *p = tensor.get() + i * tensor.getWidth();
        uint32_t bits = llvm::bit_cast<uint32_t>(
            static_cast<float>(random() % 2001) / 1000 - 1);
        if (tensor.dtype == "f32")
          llvm::support::endian::write32le(p, bits);
        else if (tensor.dtype == "f64")
          llvm::support::endian::write64le(
              p, llvm::bit_cast<uint64_t>(
                     static_cast<double>(llvm::bit_cast<float>(bits))));
        else if (tensor.dtype == "bf16")
          llvm::support::endian::write16le(p, bits >> 16);
        else if (tensor.dtype == "i64")
          llvm::support::endian::write64le(p, random() % bound);
        else
          *p = random() % 2;
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  llvm::json::Object manifest;
  llvm::json::Object description; ///< of the one program
  void *program = nullptr;
};

/// Compares a program on the device with itself on the CPU.
void check(StringRef text, double tolerance = 1e-6, int64_t bound = 4) {
  std::vector<Tensor> expected = Program(text, "").run(bound);
  ASSERT_FALSE(expected.empty());
  Program onDevice(text, "cuda:emulated");
  for (bool isDescending : {false, true}) {
    device.isDescending = isDescending;
    std::vector<Tensor> results = onDevice.run(bound);
    EXPECT_GT(device.numLaunches, 0);
    EXPECT_EQ(device.error.site, -1);
    ASSERT_EQ(results.size(), expected.size());
    for (auto [n, result] : llvm::enumerate(results))
      for (size_t i = 0; i < result.getSize(); ++i) {
        double value = result.at(i), other = expected[n].at(i);
        ASSERT_NEAR(value, other, tolerance * std::max(1.0, std::abs(other)))
            << "element " << i << " of output " << n
            << (isDescending ? ", threads descending" : "");
      }
  }
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

TEST(EmulatedKernels, ElementwiseInVectors) {
  check(
      R"(func.func @main(%x: tensor<6x7x16xf32>, %y: tensor<7x16xf32>) -> tensor<6x7x16xf32> {
    %0 = nn.add %x, %y : (tensor<6x7x16xf32>, tensor<7x16xf32>) -> tensor<6x7x16xf32>
    %1 = nn.gelu %0 : tensor<6x7x16xf32>
    return %1 : tensor<6x7x16xf32>
  })");
}

TEST(EmulatedKernels, ElementwiseOfOddSizes) {
  check(
      R"(func.func @main(%x: tensor<5x3xf32>, %y: tensor<3xf32>) -> tensor<5x3xf32> {
    %0 = nn.mul %x, %y : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32>
    %1 = nn.silu %0 : tensor<5x3xf32>
    return %1 : tensor<5x3xf32>
  })");
}

TEST(EmulatedKernels, Bfloat16) {
  check(
      R"(func.func @main(%x: tensor<12x64xbf16>, %w: tensor<64xbf16>) -> tensor<12x64xbf16> {
    %0 = nn.rms_norm %x weight %w over 1 eps 1.0e-5 : (tensor<12x64xbf16>, tensor<64xbf16>) -> tensor<12x64xbf16>
    %1 = nn.add %0, %x : (tensor<12x64xbf16>, tensor<12x64xbf16>) -> tensor<12x64xbf16>
    return %1 : tensor<12x64xbf16>
  })",
      1e-2);
}

/// Numbers of 64 bits are shuffled in two halves.
TEST(EmulatedKernels, LongNumbers) {
  check(
      R"(func.func @main(%x: tensor<9x300xf64>, %n: tensor<9x300xi64>) -> (tensor<9x300xf64>, tensor<9xi64>, tensor<9xi64>) {
    %0 = nn.softmax %x dim 1 : tensor<9x300xf64>
    %1 = nn.reduce sum %n dims [1] : tensor<9x300xi64> -> tensor<9xi64>
    %2 = nn.reduce min %n dims [1] : tensor<9x300xi64> -> tensor<9xi64>
    return %0, %1, %2 : tensor<9x300xf64>, tensor<9xi64>, tensor<9xi64>
  })",
      1e-12, int64_t(1) << 40);
}

/// Rows of one element up to many blocks' worth of them.
class Rows : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Rows, SoftmaxAndNorm) {
  std::string type = "tensor<" + std::to_string(GetParam().first) + "x" +
                     std::to_string(GetParam().second) + "xf32>",
              row = "tensor<" + std::to_string(GetParam().second) + "xf32>";
  check("func.func @main(%x: " + type + ", %w: " + row + ", %b: " + row +
            ") -> (" + type + ", " + type +
            ") {\n"
            "  %0 = nn.softmax %x dim 1 : " +
            type +
            "\n"
            "  %1 = nn.layer_norm %x weight %w bias %b over 1 eps 1.0e-5 : (" +
            type + ", " + row + ", " + row + ") -> " + type +
            "\n"
            "  return %0, %1 : " +
            type + ", " + type + "\n}",
        1e-5);
}

INSTANTIATE_TEST_SUITE_P(EmulatedKernels, Rows,
                         testing::Values(std::pair(3, 1), std::pair(7, 5),
                                         std::pair(130, 16), std::pair(9, 96),
                                         std::pair(5, 257), std::pair(3, 4096),
                                         std::pair(2, 9000)),
                         [](const auto &info) {
                           return std::to_string(info.param.first) + "x" +
                                  std::to_string(info.param.second);
                         });

TEST(EmulatedKernels, SumsOverRowsOfAMatrix) {
  check(
      R"(func.func @main(%x: tensor<300x70xf32>) -> (tensor<70xf32>, tensor<300xf32>, tensor<f32>) {
    %0 = nn.reduce sum %x dims [0] : tensor<300x70xf32> -> tensor<70xf32>
    %1 = nn.reduce max %x dims [1] : tensor<300x70xf32> -> tensor<300xf32>
    %2 = nn.reduce sum %x dims [0, 1] : tensor<300x70xf32> -> tensor<f32>
    return %0, %1, %2 : tensor<70xf32>, tensor<300xf32>, tensor<f32>
  })",
      1e-4);
}

TEST(EmulatedKernels, SoftmaxOverColumns) {
  check(R"(func.func @main(%x: tensor<40x33xf32>) -> tensor<40x33xf32> {
    %0 = nn.log_softmax %x dim 0 : tensor<40x33xf32>
    return %0 : tensor<40x33xf32>
  })",
        1e-5);
}

/// Threads read what others of the row have written: barriers.
TEST(EmulatedKernels, TransposedRows) {
  check(R"(func.func @main(%x: tensor<1030x4x6xf32>) -> tensor<1030x6x4xf32> {
    %0 = nn.softmax %x dim 2 : tensor<1030x4x6xf32>
    %1 = nn.transpose %0 [0, 2, 1] : tensor<1030x4x6xf32> -> tensor<1030x6x4xf32>
    return %1 : tensor<1030x6x4xf32>
  })");
}

TEST(EmulatedKernels, NumbersOfARowInMemory) {
  check(
      R"(func.func @main(%x: tensor<30x64xf32>) -> (tensor<30x1xf32>, tensor<30x1xf32>, tensor<30x64xf32>) {
    %0 = nn.reduce max %x dims [1] keepdim : tensor<30x64xf32> -> tensor<30x1xf32>
    %1 = nn.sub %x, %0 : (tensor<30x64xf32>, tensor<30x1xf32>) -> tensor<30x64xf32>
    %2 = nn.exp %1 : tensor<30x64xf32>
    %3 = nn.reduce sum %2 dims [1] keepdim : tensor<30x64xf32> -> tensor<30x1xf32>
    %4 = nn.div %2, %3 : (tensor<30x64xf32>, tensor<30x1xf32>) -> tensor<30x64xf32>
    return %0, %3, %4 : tensor<30x1xf32>, tensor<30x1xf32>, tensor<30x64xf32>
  })");
}

TEST(EmulatedKernels, MovesOfData) {
  check(
      R"(func.func @main(%x: tensor<6x4x10xf32>, %y: tensor<6x3x10xf32>) -> (tensor<10x6x4xf32>, tensor<6x7x10xf32>, tensor<6x4x5xf32>) {
    %0 = nn.transpose %x [2, 0, 1] : tensor<6x4x10xf32> -> tensor<10x6x4xf32>
    %1 = nn.concat %x, %y dim 1 : (tensor<6x4x10xf32>, tensor<6x3x10xf32>) -> tensor<6x7x10xf32>
    %2 = nn.slice %x dim 2 start 1 step 2 : tensor<6x4x10xf32> -> tensor<6x4x5xf32>
    return %0, %1, %2 : tensor<10x6x4xf32>, tensor<6x7x10xf32>, tensor<6x4x5xf32>
  })");
}

/// Whole tiles and parts of them, in vectors or not, with operands that aren't
/// transposed beside.
TEST(EmulatedKernels, Transposes) {
  check(
      R"(func.func @main(%x: tensor<3x96x72xf32>, %y: tensor<3x72x96xf32>, %z: tensor<96xf32>, %o: tensor<75x33xf32>, %p: tensor<75x33xf32>, %w: tensor<8x70xf32>)
      -> (tensor<3x72x96xf32>, tensor<33x75xf32>, tensor<70x8xf32>) {
    %0 = nn.transpose %x [0, 2, 1] : tensor<3x96x72xf32> -> tensor<3x72x96xf32>
    %1 = nn.mul %0, %y : (tensor<3x72x96xf32>, tensor<3x72x96xf32>) -> tensor<3x72x96xf32>
    %2 = nn.add %1, %z : (tensor<3x72x96xf32>, tensor<96xf32>) -> tensor<3x72x96xf32>
    %3 = nn.sub %o, %p : (tensor<75x33xf32>, tensor<75x33xf32>) -> tensor<75x33xf32>
    %4 = nn.transpose %3 [1, 0] : tensor<75x33xf32> -> tensor<33x75xf32>
    %5 = nn.transpose %w [1, 0] : tensor<8x70xf32> -> tensor<70x8xf32>
    return %2, %4, %5 : tensor<3x72x96xf32>, tensor<33x75xf32>, tensor<70x8xf32>
  })");
}

TEST(EmulatedKernels, TransposesOfOtherTypes) {
  check(
      R"(func.func @main(%x: tensor<136x80xbf16>, %y: tensor<80x136xf32>, %d: tensor<40x37xf64>, %n: tensor<66x24xi64>, %b: tensor<16x24xi1>)
      -> (tensor<80x136xf32>, tensor<37x40xf64>, tensor<24x66xi64>, tensor<24x16xi1>) {
    %0 = nn.transpose %x [1, 0] : tensor<136x80xbf16> -> tensor<80x136xbf16>
    %1 = nn.cast %0 : tensor<80x136xbf16> -> tensor<80x136xf32>
    %2 = nn.add %1, %y : (tensor<80x136xf32>, tensor<80x136xf32>) -> tensor<80x136xf32>
    %3 = nn.transpose %d [1, 0] : tensor<40x37xf64> -> tensor<37x40xf64>
    %4 = nn.transpose %n [1, 0] : tensor<66x24xi64> -> tensor<24x66xi64>
    %5 = nn.transpose %b [1, 0] : tensor<16x24xi1> -> tensor<24x16xi1>
    return %2, %3, %4, %5 : tensor<80x136xf32>, tensor<37x40xf64>, tensor<24x66xi64>, tensor<24x16xi1>
  })");
}

TEST(EmulatedKernels, Lookups) {
  check(
      R"(func.func @main(%ids: tensor<3x5xi64>, %rows: tensor<3x5x20xf32>) -> (tensor<3x5x20xf32>, tensor<9x20xf32>) {
    %table = nn.parameter "table" : tensor<9x20xf32>
    %0 = nn.embedding %ids, %table : (tensor<3x5xi64>, tensor<9x20xf32>) -> tensor<3x5x20xf32>
    %1 = nn.scatter_add_rows %ids, %rows : (tensor<3x5xi64>, tensor<3x5x20xf32>) -> tensor<9x20xf32>
    return %0, %1 : tensor<3x5x20xf32>, tensor<9x20xf32>
  })");
}

/// Rows that none, one and many indices have, in each type, as a gradient of an
/// embedding has them.
TEST(EmulatedKernels, ScatteredSums) {
  check(
      R"(func.func @main(%ids: tensor<2x150xi64>, %rows: tensor<2x150x36xf32>, %one: tensor<1xi64>, %row: tensor<1x5xf32>, %narrow: tensor<2x150x16xbf16>)
      -> (tensor<40x36xf32>, tensor<70x5xf32>, tensor<300x16xbf16>) {
    %0 = nn.scatter_add_rows %ids, %rows : (tensor<2x150xi64>, tensor<2x150x36xf32>) -> tensor<40x36xf32>
    %1 = nn.scatter_add_rows %one, %row : (tensor<1xi64>, tensor<1x5xf32>) -> tensor<70x5xf32>
    %2 = nn.scatter_add_rows %ids, %narrow : (tensor<2x150xi64>, tensor<2x150x16xbf16>) -> tensor<300x16xbf16>
    return %0, %1, %2 : tensor<40x36xf32>, tensor<70x5xf32>, tensor<300x16xbf16>
  })",
      1e-6, 23);
}

TEST(EmulatedKernels, Losses) {
  check(
      R"(func.func @main(%x: tensor<20x37xf32>, %t: tensor<20xi64>) -> (tensor<f32>, tensor<20xi64>) {
    %0 = nn.cross_entropy mean %x, %t ignore 2 smoothing 0.1 : (tensor<20x37xf32>, tensor<20xi64>) -> tensor<f32>
    %1 = nn.argmax %x dim 1 : tensor<20x37xf32> -> tensor<20xi64>
    return %0, %1 : tensor<f32>, tensor<20xi64>
  })",
      1e-5, 37);
}

TEST(EmulatedKernels, IndexOutOfRange) {
  Program program(
      R"(func.func @main(%ids: tensor<3x5xi64>) -> tensor<3x5x20xf32> {
    %table = nn.parameter "table" : tensor<9x20xf32>
    %0 = nn.embedding %ids, %table {tp.fqn = "words"} : (tensor<3x5xi64>, tensor<9x20xf32>) -> tensor<3x5x20xf32>
    return %0 : tensor<3x5x20xf32>
  })",
      "cuda:emulated");
  program.run(1000);
  ASSERT_EQ(device.error.site, 0);
  EXPECT_STREQ(device.code->sites[0], "words: embedding of input 'arg0'");
  EXPECT_GE(device.error.index, 9);
  EXPECT_LT(device.error.index, 1000);
  EXPECT_EQ(device.error.bound, 9);
}

} // namespace
