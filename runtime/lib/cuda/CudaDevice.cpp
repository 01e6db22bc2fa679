//===- CudaDevice.cpp - CUDA devices --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/CudaDevice.h"

#include "cuda/CudaStream.h"

using namespace tprt;
using namespace tprt::cuda;

// The size of a chunk of pinned memory. Two chunks alternate, so that the host
// reads a file while the device copies.
static constexpr int64_t chunkBytes = 8 << 20;

/// The part of `block` whose dense indices along dimension `dim` are in
/// [begin, end).
static Block restrict(const Block &block, size_t dim, int64_t begin,
                      int64_t end) {
  Block part = block;
  part.dims[dim].clear();
  int64_t position = 0; // of the piece in the dense block
  for (const Piece &piece : block.dims[dim]) {
    int64_t first = std::max(begin - position, int64_t(0));
    int64_t last = std::min(end - position, piece.size);
    if (first < last)
      part.dims[dim].push_back({piece.offset + first, last - first});
    position += piece.size;
  }
  return part;
}

/// Calls visit(part, first element in the dense block) for parts of `block`
/// that are contiguous in it and have at most `maxElements` elements.
template <typename Visit>
static void forEachPart(const Block &block, int64_t maxElements, int64_t offset,
                        Visit &visit) {
  Shape shape = block.getShape();
  int64_t count = numElements(shape);
  if (count == 0)
    return;
  if (count <= maxElements)
    return visit(block, offset);
  size_t dim = 0;
  while (shape[dim] == 1)
    ++dim;
  int64_t half = shape[dim] / 2;
  forEachPart(restrict(block, dim, 0, half), maxElements, offset, visit);
  forEachPart(restrict(block, dim, half, shape[dim]), maxElements,
              offset + count / shape[dim] * half, visit);
}

namespace {

/// Copies between the host and the device.
class Transfers {
public:
  explicit Transfers(ContextPtr context)
      : context(std::move(context)), stream(makeStream(this->context)) {
    for (Buffer &buffer : buffers)
      buffer = {allocatePinned(this->context, chunkBytes),
                makeEvent(this->context)};
  }

  CUstream getStream() const { return stream.get(); }

  /// Calls produce(pinned) and copies the `bytes` bytes that it wrote to `dst`.
  template <typename Produce>
  void upload(std::byte *dst, int64_t bytes, Produce produce) {
    const Driver &driver = context->getDriver();
    Buffer &buffer = buffers[next];
    next = 1 - next;
    TPRT_CUDA(driver, cuEventSynchronize, buffer.isFree.get());
    produce(buffer.memory.get());
    TPRT_CUDA(driver, cuMemcpyHtoDAsync, toDevice(dst), buffer.memory.get(),
              bytes, stream.get());
    TPRT_CUDA(driver, cuEventRecord, buffer.isFree.get(), stream.get());
  }

  /// Copies `bytes` bytes at `src` to the host. The result is valid until the
  /// next call.
  const std::byte *download(const std::byte *src, int64_t bytes) {
    TPRT_CUDA(context->getDriver(), cuMemcpyDtoHAsync, buffers[0].memory.get(),
              toDevice(src), bytes, stream.get());
    finish();
    return buffers[0].memory.get();
  }

  void finish() {
    TPRT_CUDA(context->getDriver(), cuStreamSynchronize, stream.get());
  }

private:
  struct Buffer {
    std::shared_ptr<std::byte> memory;
    std::shared_ptr<CUevent_st> isFree; ///< set when the last copy is done
  };

  ContextPtr context;
  std::shared_ptr<CUstream_st> stream;
  Buffer buffers[2];
  size_t next = 0;
};

class CudaDevice final : public Device {
public:
  CudaDevice(const std::vector<const tprt_device_code *> &codes,
             const CudaOptions &options, const GemmOptions &gemm,
             bool mayMeasure)
      : context(std::make_shared<Context>(options.device)),
        state(std::make_shared<DeviceState>(context, codes, options, gemm,
                                            mayMeasure)),
        transfers(context) {}

  bool sharesHostMemory() const override { return false; }
  std::shared_ptr<std::byte> allocate(int64_t bytes) override {
    return cuda::allocate(context, bytes);
  }
  void write(const Tensor &tensor, const Block &block, Dtype dtype,
             std::byte *dst) override;
  void fill(Dtype dtype, double value, std::byte *dst, int64_t count) override;
  void read(const std::byte *src, Dtype dtype, const Shape &shape,
            const Block &block, std::byte *dst) override;
  DeviceStream *getStream(int64_t rank) override;
  void dropStreams() override;

private:
  ContextPtr context;
  std::shared_ptr<DeviceState> state;
  std::mutex mutex; ///< guards the members below
  Transfers transfers;
  std::map<int64_t, std::unique_ptr<CudaStream>> streams; ///< by rank
};

} // namespace

void CudaDevice::write(const Tensor &tensor, const Block &block, Dtype dtype,
                       std::byte *dst) {
  // Only f32 is rounded part by part.
  if (tensor.dtype != dtype &&
      (tensor.dtype != Dtype::F32 || dtype == Dtype::F64))
    return write(convertFloats(tensor, dtype), block, dtype, dst);
  std::lock_guard<std::mutex> lock(mutex);
  context->makeCurrent();
  int64_t width = byteWidth(dtype), sourceWidth = byteWidth(tensor.dtype);
  std::vector<float> unrounded;
  auto visit = [&](const Block &part, int64_t offset) {
    int64_t count = numElements(part.getShape());
    transfers.upload(
        dst + offset * width, count * width, [&](std::byte *pinned) {
          if (tensor.dtype == dtype)
            return readBlock(tensor.shape, part, width, tensor.data.get(),
                             pinned);
          unrounded.resize(count);
          readBlock(tensor.shape, part, sourceWidth, tensor.data.get(),
                    reinterpret_cast<std::byte *>(unrounded.data()));
          convertFromF32(dtype, unrounded.data(), pinned, count);
        });
  };
  forEachPart(block, chunkBytes / width, 0, visit);
  transfers.finish();
}

void CudaDevice::fill(Dtype dtype, double value, std::byte *dst,
                      int64_t count) {
  std::lock_guard<std::mutex> lock(mutex);
  context->makeCurrent();
  uint64_t pattern = 0;
  fillElements(dtype, value, reinterpret_cast<std::byte *>(&pattern), 1);
  cuda::fill(*context, dst, pattern, byteWidth(dtype), count,
             transfers.getStream());
  transfers.finish();
}

void CudaDevice::read(const std::byte *src, Dtype dtype, const Shape &shape,
                      const Block &block, std::byte *dst) {
  std::lock_guard<std::mutex> lock(mutex);
  context->makeCurrent();
  int64_t width = byteWidth(dtype);
  auto visit = [&](const Block &part, int64_t offset) {
    writeBlock(shape, part, width,
               transfers.download(src + offset * width,
                                  numElements(part.getShape()) * width),
               dst);
  };
  forEachPart(block, chunkBytes / width, 0, visit);
}

DeviceStream *CudaDevice::getStream(int64_t rank) {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<CudaStream> &stream = streams[rank];
  if (!stream)
    stream = std::make_unique<CudaStream>(state);
  return stream.get();
}

void CudaDevice::dropStreams() {
  std::lock_guard<std::mutex> lock(mutex);
  streams.clear();
}

void cuda::checkProducts() { Blas::get(); }

std::shared_ptr<Device>
cuda::makeDevice(const std::vector<const tprt_device_code *> &codes,
                 const CudaOptions &options, const GemmOptions &gemm,
                 bool mayMeasure) {
  return std::make_shared<CudaDevice>(codes, options, gemm, mayMeasure);
}
