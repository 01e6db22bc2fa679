//===- StridedSet.cpp - Sets of numbers in few words ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/StridedSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;

namespace {

/// `size` numbers, `stride` apart.
struct Run {
  int64_t offset, size, stride;
};

} // namespace

/// Cuts ascending `numbers` into runs. Each begins with the least number that
/// is left, and is the longest one that does.
static SmallVector<Run> getRuns(ArrayRef<int64_t> numbers) {
  // A stride is the distance to one of the next numbers.
  constexpr size_t kMaxCandidates = 64;
  int64_t first = numbers.front();
  llvm::SmallBitVector left(numbers.back() - first + 1);
  for (int64_t number : numbers)
    left.set(number - first);
  int64_t numLeft = numbers.size();
  SmallVector<Run> runs;
  for (int begin = left.find_first(); begin >= 0;
       begin = left.find_next(begin)) {
    Run best = {begin, 1, 0};
    int next = left.find_next(begin);
    for (size_t i = 0; i < kMaxCandidates && next >= 0 && best.size < numLeft;
         ++i, next = left.find_next(next)) {
      Run run = {begin, 1, next - begin};
      for (int64_t at = next; at < int64_t(left.size()) && left.test(at);
           at += run.stride)
        ++run.size;
      if (run.size > best.size)
        best = run;
    }
    for (int64_t i = 0; i < best.size; ++i)
      left.reset(begin + i * best.stride);
    numLeft -= best.size;
    best.offset += first;
    runs.push_back(best);
  }
  return runs;
}

/// Cuts ascending `numbers` into runs of consecutive ones.
static SmallVector<Run> getConsecutive(ArrayRef<int64_t> numbers) {
  SmallVector<Run> runs;
  for (int64_t number : numbers)
    if (!runs.empty() && runs.back().offset + runs.back().size == number)
      ++runs.back().size;
    else
      runs.push_back({number, 1, 1});
  return runs;
}

SmallVector<StridedPart> tp::getStridedParts(ArrayRef<int64_t> numbers) {
  // Parts of one form, by their offsets, make up a larger part where the
  // offsets are a run.
  using Form = std::pair<std::vector<int64_t>, std::vector<int64_t>>;
  using Offsets = std::map<Form, SmallVector<int64_t>>;
  auto add = [](Offsets &offsets, Form form, Run run) {
    auto &[sizes, strides] = form;
    if (run.size > 1) {
      auto place = llvm::find_if(
          strides, [&](int64_t stride) { return stride < run.stride; });
      sizes.insert(sizes.begin() + (place - strides.begin()), run.size);
      strides.insert(place, run.stride);
    }
    offsets[form].push_back(run.offset);
  };
  Offsets offsets;
  for (Run run : getConsecutive(numbers))
    add(offsets, {}, run);
  for (bool changed = true; changed;) {
    changed = false;
    Offsets joined;
    for (auto &[form, list] : offsets) {
      llvm::sort(list);
      for (Run run : getRuns(list)) {
        changed |= run.size > 1;
        add(joined, form, run);
      }
    }
    offsets = std::move(joined);
  }
  SmallVector<StridedPart> parts;
  for (auto &[form, list] : offsets)
    for (int64_t offset : list)
      parts.push_back({offset,
                       {form.first.begin(), form.first.end()},
                       {form.second.begin(), form.second.end()}});
  llvm::sort(parts, [](const StridedPart &a, const StridedPart &b) {
    return a.offset < b.offset;
  });
  return parts;
}

llvm::json::Array tp::toJSON(ArrayRef<StridedPart> parts) {
  llvm::json::Array array;
  for (const StridedPart &part : parts)
    array.push_back(llvm::json::Object{
        {"offset", part.offset},
        {"sizes", llvm::json::Array(ArrayRef(part.sizes))},
        {"strides", llvm::json::Array(ArrayRef(part.strides))}});
  return array;
}
