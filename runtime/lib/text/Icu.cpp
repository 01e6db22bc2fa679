//===- Icu.cpp - ICU, loaded when a tokenizer is --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/Icu.h"

#include "tprt/Error.h"

#include <dlfcn.h>
#include <optional>

using namespace tprt;
using namespace tprt::text;

/// The first version whose functions all do what the headers say.
static constexpr int firstVersion = 60;
static constexpr int lastVersion = 99;

static std::optional<Icu> load(int version) {
  std::string suffix = std::to_string(version);
  // It also loads libicuuc, in which dlsym then finds the other functions.
  void *handle =
      ::dlopen(("libicui18n.so." + suffix).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return std::nullopt;
  bool isComplete = true;
  auto find = [&](const char *name, auto *&function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        ::dlsym(handle, (name + ("_" + suffix)).c_str()));
    isComplete = isComplete && function;
  };
  Icu icu;
  find("u_errorName", icu.getErrorName);
  find("u_charType", icu.getCategory);
  find("u_hasBinaryProperty", icu.hasProperty);
  find("u_tolower", icu.toLower);
  find("unorm2_getNFCInstance", icu.getNfc);
  find("unorm2_getNFDInstance", icu.getNfd);
  find("unorm2_getNFKCInstance", icu.getNfkc);
  find("unorm2_getNFKDInstance", icu.getNfkd);
  find("unorm2_normalize", icu.normalize);
  find("ubrk_open", icu.openBreaks);
  find("ubrk_close", icu.closeBreaks);
  find("ubrk_next", icu.nextBreak);
  find("uregex_open", icu.openRegex);
  find("uregex_close", icu.closeRegex);
  find("uregex_clone", icu.cloneRegex);
  find("uregex_setTimeLimit", icu.setTimeLimit);
  find("uregex_setText", icu.setText);
  find("uregex_findNext", icu.findNext);
  find("uregex_start", icu.getStart);
  find("uregex_end", icu.getEnd);
  return isComplete ? std::optional(icu) : std::nullopt;
}

static std::optional<Icu> loadAny() {
  if (std::optional<Icu> icu = load(U_ICU_VERSION_MAJOR_NUM))
    return icu;
  for (int version = lastVersion; version >= firstVersion; --version)
    if (std::optional<Icu> icu = load(version))
      return icu;
  return std::nullopt;
}

const Icu &Icu::get() {
  static const std::optional<Icu> icu = loadAny();
  if (!icu)
    throw inputError(
        "tokenizers need ICU (libicuuc and libicui18n) of version " +
        std::to_string(firstVersion) +
        " or newer, which isn't installed: install Debian's package libicu" +
        std::to_string(U_ICU_VERSION_MAJOR_NUM) +
        ", or the one of your system");
  return *icu;
}
