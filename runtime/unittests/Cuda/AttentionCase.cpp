//===- AttentionCase.cpp - Attention on a device and on the host ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionCase.h"

using namespace tprt;
using namespace tprt::test;

static constexpr int64_t numSequences = 2;

/// Of `heads` heads in groups; in each, heads have `perHead` of their own or
/// share one.
static tprt_attention_strides makeStrides(const AttentionCase &c, int64_t rows,
                                          int64_t columns, bool isShared) {
  int64_t heads = c.keyHeads * (isShared ? 1 : c.group);
  tprt_attention_strides strides = {};
  strides.col = 1;
  strides.row = c.isHeadMajor ? columns : heads * columns;
  int64_t head = c.isHeadMajor ? rows * columns : columns;
  strides.batch[5] = heads * rows * columns;
  strides.batch[6] = head * (isShared ? 1 : c.group);
  strides.batch[7] = isShared ? 0 : head;
  return strides;
}

tprt_attention_gradient_args AttentionCase::makeArgs() const {
  tprt_attention_gradient_args all = {};
  tprt_attention_args &args = all.attention;
  args.dtype = static_cast<int32_t>(dtype);
  args.mask = mask;
  args.scale = 0.5;
  args.causal = causal;
  args.rows = rows;
  args.columns = columns;
  args.depth = depth;
  args.width = width;
  std::fill(std::begin(args.batch), std::end(args.batch), 1);
  args.batch[5] = numSequences;
  args.batch[6] = keyHeads;
  args.batch[7] = group;
  args.query = makeStrides(*this, rows, depth, false);
  args.key = makeStrides(*this, columns, depth, true);
  args.value = makeStrides(*this, columns, width, true);
  args.output = makeStrides(*this, rows, width, false);
  int64_t maskRows = maskPerRow ? rows : 1;
  int64_t maskHeads = maskPerHead ? keyHeads * group : 1;
  args.mask_strides.batch[5] = maskHeads * maskRows * columns;
  if (maskPerHead) {
    args.mask_strides.batch[6] = group * maskRows * columns;
    args.mask_strides.batch[7] = maskRows * columns;
  }
  args.mask_strides.row = maskPerRow ? columns : 0;
  args.mask_strides.col = 1;
  all.query_gradient = args.query;
  all.key_gradient = makeStrides(*this, columns, depth, false);
  all.value_gradient = makeStrides(*this, columns, width, false);
  return all;
}

AttentionOperand::AttentionOperand(Device &device, Dtype dtype, int64_t count,
                                   std::mt19937 &generator)
    : host(allocateAligned(count * 8)),
      data(device.allocate(count * byteWidth(dtype))), dtype(dtype),
      count(count) {
  for (int64_t i = 0; i < count; ++i) {
    float value = static_cast<int>(generator() % 17) / 4.0f - 2;
    if (dtype == Dtype::F32)
      reinterpret_cast<float *>(host.get())[i] = value;
    else if (dtype == Dtype::F64)
      reinterpret_cast<double *>(host.get())[i] = value;
    else if (dtype == Dtype::I1)
      reinterpret_cast<uint8_t *>(host.get())[i] = value > 0;
    else
      convertFromF32(dtype, &value, host.get() + 2 * i, 1);
  }
  device.write({dtype, {count}, host}, makeBox({0}, {count}), dtype,
               data.get());
}

void AttentionOperand::hideRows(Device &device, int64_t columns, int64_t offset,
                                float lowest) {
  for (int64_t i = offset; i < count; ++i) {
    bool isHidden = (i - offset) / columns % 3 == 1 || i % 7 == 0;
    if (!isHidden)
      continue;
    if (dtype == Dtype::I1)
      reinterpret_cast<uint8_t *>(host.get())[i] = 0;
    else if (dtype == Dtype::F32)
      reinterpret_cast<float *>(host.get())[i] = lowest;
    else if (dtype == Dtype::F64)
      reinterpret_cast<double *>(host.get())[i] = lowest;
    else
      convertFromF32(dtype, &lowest, host.get() + 2 * i, 1);
  }
  device.write({dtype, {count}, host}, makeBox({0}, {count}), dtype,
               data.get());
}

void AttentionOperand::expectNear(Device &device, double tolerance,
                                  const char *what) const {
  auto read = allocateAligned(count * 8);
  device.read(data.get(), dtype, {count}, makeBox({0}, {count}), read.get());
  for (int64_t i = 0; i < count; ++i) {
    double expected = loadAsDouble(dtype, host.get(), i);
    ASSERT_NEAR(loadAsDouble(dtype, read.get(), i), expected,
                tolerance * std::max(1.0, std::abs(expected)))
        << what << " " << i;
  }
}

static float getLowest(const AttentionCase &c) {
  if (!c.hidesByNumbers)
    return -INFINITY;
  return c.dtype == Dtype::F16 ? -65504.0f : -3e38f;
}

namespace {

/// All operands of a case.
struct Operands {
  Operands(Device &device, const AttentionCase &c, int64_t offset)
      : offset(offset * byteWidth(c.dtype)), dtype(c.dtype),
        query(make(device, c.keyHeads * c.group * c.rows * c.depth)),
        key(make(device, c.keyHeads * c.columns * c.depth)),
        value(make(device, c.keyHeads * c.columns * c.width)),
        output(make(device, c.keyHeads * c.group * c.rows * c.width)),
        queryGradient(make(device, c.keyHeads * c.group * c.rows * c.depth)),
        keyGradient(make(device, c.keyHeads * c.group * c.columns * c.depth)),
        valueGradient(make(device, c.keyHeads * c.group * c.columns * c.width)),
        mask(device, c.mask == TPRT_BOOLEAN_MASK ? Dtype::I1 : c.dtype,
             numSequences * c.keyHeads * c.group * c.rows * c.columns + offset,
             generator) {
    if (c.mask != TPRT_NO_MASK && c.columns > 0)
      mask.hideRows(device, c.columns, offset, getLowest(c));
  }

  AttentionOperand make(Device &device, int64_t count) {
    return {device, dtype, numSequences * count + offset, generator};
  }

  std::byte *onHost(const AttentionOperand &operand) const {
    return operand.host.get() + offset;
  }
  std::byte *onDevice(const AttentionOperand &operand) const {
    return operand.data.get() + offset;
  }

  std::mt19937 generator{1};
  int64_t offset; ///< bytes
  Dtype dtype;
  AttentionOperand query, key, value, output, queryGradient, keyGradient,
      valueGradient, mask;
};

} // namespace

static double getTolerance(Dtype dtype) {
  return dtype == Dtype::BF16 ? 0.03 : dtype == Dtype::F16 ? 0.005 : 1e-5;
}

static std::string formatCase(const AttentionCase &c) {
  return std::string(toString(c.dtype)) + " " + std::to_string(c.rows) + "x" +
         std::to_string(c.columns) + " causal " + std::to_string(c.causal) +
         " mask " + std::to_string(c.mask) + std::to_string(c.maskPerRow) +
         std::to_string(c.maskPerHead) + " group " + std::to_string(c.group) +
         " head major " + std::to_string(c.isHeadMajor);
}

void AttentionRunner::checkForward(const AttentionCase &c) {
  SCOPED_TRACE(formatCase(c));
  Operands o(*device, c, offset);
  tprt_attention_args args = c.makeArgs().attention;
  bool hasMask = c.mask != TPRT_NO_MASK;
  ASSERT_EQ(tprt_attention(&host.rank, &args, o.onHost(o.query),
                           o.onHost(o.key), o.onHost(o.value),
                           hasMask ? o.onHost(o.mask) : nullptr,
                           o.onHost(o.output)),
            TPRT_OK)
      << host.rank.error;
  DeviceStream &stream = getStream();
  stream.beginRun();
  stream.attention(args, o.onDevice(o.query), o.onDevice(o.key),
                   o.onDevice(o.value), hasMask ? o.onDevice(o.mask) : nullptr,
                   o.onDevice(o.output));
  stream.endRun();
  stream.finish([](auto) {});
  o.output.expectNear(*device, getTolerance(c.dtype), "output");
}

void AttentionRunner::checkGradient(const AttentionCase &c) {
  SCOPED_TRACE(formatCase(c));
  Operands o(*device, c, offset);
  tprt_attention_gradient_args args = c.makeArgs();
  bool hasMask = c.mask != TPRT_NO_MASK;
  ASSERT_EQ(tprt_attention_gradient(
                &host.rank, &args, o.onHost(o.query), o.onHost(o.key),
                o.onHost(o.value), hasMask ? o.onHost(o.mask) : nullptr,
                o.onHost(o.output), o.onHost(o.queryGradient),
                o.onHost(o.keyGradient), o.onHost(o.valueGradient)),
            TPRT_OK)
      << host.rank.error;
  DeviceStream &stream = getStream();
  stream.beginRun();
  stream.attentionGradient(
      args, o.onDevice(o.query), o.onDevice(o.key), o.onDevice(o.value),
      hasMask ? o.onDevice(o.mask) : nullptr, o.onDevice(o.output),
      o.onDevice(o.queryGradient), o.onDevice(o.keyGradient),
      o.onDevice(o.valueGradient));
  stream.endRun();
  stream.finish([](auto) {});
  double tolerance = 2 * getTolerance(c.dtype);
  o.queryGradient.expectNear(*device, tolerance, "query's gradient");
  o.keyGradient.expectNear(*device, tolerance, "key's gradient");
  o.valueGradient.expectNear(*device, tolerance, "value's gradient");
}
