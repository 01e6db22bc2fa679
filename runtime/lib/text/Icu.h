//===- Icu.h - ICU, loaded when a tokenizer is ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ICU knows the properties of code points and the normalization forms, and has
// regular expressions (https://unicode-org.github.io/icu). The library is
// loaded, not linked, since its data are large and few programs use text.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_TEXT_ICU_H
#define TPRT_LIB_TEXT_ICU_H

#define U_SHOW_CPLUSPLUS_API 0
#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uregex.h>

namespace tprt::text {

/// The functions of ICU that this folder calls. Their names have ICU's version
/// at the end, so the headers' version needn't be the installed one.
struct Icu {
  decltype(::u_errorName) *getErrorName;
  decltype(::u_charType) *getCategory;
  decltype(::u_hasBinaryProperty) *hasProperty;
  decltype(::u_tolower) *toLower;
  decltype(::unorm2_getNFCInstance) *getNfc;
  decltype(::unorm2_getNFDInstance) *getNfd;
  decltype(::unorm2_getNFKCInstance) *getNfkc;
  decltype(::unorm2_getNFKDInstance) *getNfkd;
  decltype(::unorm2_normalize) *normalize;
  decltype(::ubrk_open) *openBreaks;
  decltype(::ubrk_close) *closeBreaks;
  decltype(::ubrk_next) *nextBreak;
  decltype(::uregex_open) *openRegex;
  decltype(::uregex_close) *closeRegex;
  decltype(::uregex_clone) *cloneRegex;
  decltype(::uregex_setTimeLimit) *setTimeLimit;
  decltype(::uregex_setText) *setText;
  decltype(::uregex_findNext) *findNext;
  decltype(::uregex_start) *getStart;
  decltype(::uregex_end) *getEnd;

  /// Loads ICU when it is first called. Throws an input error if ICU isn't
  /// installed.
  static const Icu &get();
};

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_ICU_H
