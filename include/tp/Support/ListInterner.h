//===- ListInterner.h - Numbers for lists -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model repeats the same few ops. A result that depends only on a list of
// numbers or of uniqued objects is computed once for equal lists, and stored by
// the list's number.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SUPPORT_LISTINTERNER_H
#define TP_SUPPORT_LISTINTERNER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"
#include <cstdint>

namespace mlir::tp {

/// An item of a list: a number, or the address of a uniqued object.
using Word = uint64_t;
using WordList = llvm::SmallVector<Word, 16>;

inline Word toWord(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// Numbers lists from 0 in the order in which they are first seen; equal lists
/// have the same number.
class ListInterner {
public:
  /// The number of `list`, and whether it is new.
  std::pair<unsigned, bool> insert(llvm::ArrayRef<Word> list) {
    auto found = numbers.find(list);
    if (found != numbers.end())
      return {found->second, false};
    unsigned number = numbers.size();
    numbers.try_emplace(list.copy(allocator), number);
    return {number, true};
  }
  size_t size() const { return numbers.size(); }

private:
  llvm::BumpPtrAllocator allocator;
  llvm::DenseMap<llvm::ArrayRef<Word>, unsigned> numbers;
};

} // namespace mlir::tp

#endif // TP_SUPPORT_LISTINTERNER_H
