//===- BackendsTest.cpp - The table of backends ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Backends.h"
#include "TestUtils.h"

#include <set>

using namespace tprt;
using namespace tprt::test;

TEST(Backends, AreFoundByTheirNames) {
  std::set<std::string> names;
  for (const Backend *backend : getBackends()) {
    EXPECT_EQ(findBackend(backend->name), backend);
    names.insert(backend->name);
  }
  EXPECT_EQ(names.size(), getBackends().size());
  EXPECT_TRUE(names.contains("local"));
  EXPECT_EQ(findBackend("auto"), nullptr); // which tp-run chooses among them
}

/// What a backend lacks is reported, and no communicator is made.
TEST(Backends, SayWhatIsMissing) {
  static bool isMade = false;
  const Backend backend = {
      .name = "ib",
      .description = "each is a process with a queue pair",
      .needsProcesses = true,
      .explainMissing = [] { return std::string("this build has no verbs"); },
      .makeCommunicators =
          [](const Manifest &, const CommunicatorOptions &, Rendezvous *) {
            isMade = true;
            return std::vector<std::unique_ptr<Communicator>>();
          }};
  EXPECT_EQ(errorOf([&] { makeFactory(backend)({}, {}); }),
            "this build has no verbs");
  EXPECT_FALSE(isMade);
}
