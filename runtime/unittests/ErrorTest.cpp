//===- ErrorTest.cpp - Parts of diagnostics -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Error.h"

#include "gtest/gtest.h"

using namespace tprt;

TEST(Error, NearestName) {
  std::vector<std::string> known = {"ids", "mask", "encoder.layer.0.weight"};
  EXPECT_EQ(nearestName("id", known), "ids");
  EXPECT_EQ(nearestName("encoder.layers.0.weight", known), known[2]);
  EXPECT_EQ(nearestName("temperature", known), "");
  EXPECT_EQ(didYouMean("maks", known), " (did you mean 'mask'?)");
}

TEST(Error, LongNamesHaveNoNeighbors) {
  std::string name(70000, 'x');
  EXPECT_EQ(nearestName(name, {name + "y"}), "");
  EXPECT_EQ(nearestName("x", {name}), "");
}

TEST(Error, MakesTextsPrintable) {
  EXPECT_EQ(makePrintable("plain 'text'\nof two lines\n"),
            "plain 'text'\nof two lines\n");
  EXPECT_EQ(makePrintable("Größe …"), "Größe …");
  EXPECT_EQ(makePrintable("a\x1b[2Jb\r\x7f"), "a\\x1b[2Jb\\x0d\\x7f");
  EXPECT_EQ(makePrintable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(makePrintable("\xc2\x9b"
                          "31m"),
            "\\xc2\\x9b31m");
  std::string line(70000, 'x');
  EXPECT_EQ(makePrintable(line + "\nshort", 20),
            "xxxxxxxxxx … (69980 bytes) … xxxxxxxxxx\nshort");
  std::string wide;
  for (int i = 0; i < 100; ++i)
    wide += "ö";
  EXPECT_EQ(makePrintable(wide, 6), "ö … (196 bytes) … ö");
}
