//===- Metaspace.cpp - SentencePiece's marker of spaces -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/Metaspace.h"

using namespace tprt;
using namespace tprt::text;

std::u16string text::readCodePoint(const Component &component) {
  std::u16string units = toUtf16(component.getString());
  int count = 0;
  forEachCodePoint(units, [&](char32_t, size_t, size_t) { ++count; });
  if (count != 1)
    component.fail("expected one character, found " + std::to_string(count));
  return units;
}

Metaspace text::readMetaspaceOptions(const Component &component) {
  static constexpr std::pair<const char *, Metaspace::Prepend> schemes[] = {
      {"first", Metaspace::Prepend::First},
      {"never", Metaspace::Prepend::Never},
      {"always", Metaspace::Prepend::Always}};
  Metaspace metaspace{readCodePoint(component["replacement"]),
                      Metaspace::Prepend::Always};
  if (component.has("prepend_scheme"))
    metaspace.prepend = component["prepend_scheme"].choose(schemes);
  // The older member.
  if (!component.getBool("add_prefix_space", true)) {
    if (component.has("prepend_scheme") &&
        metaspace.prepend != Metaspace::Prepend::Never)
      component.fail("'add_prefix_space' is false, but 'prepend_scheme' isn't "
                     "'never'");
    metaspace.prepend = Metaspace::Prepend::Never;
  }
  return metaspace;
}
