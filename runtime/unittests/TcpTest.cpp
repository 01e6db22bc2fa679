//===- TcpTest.cpp - Connections of ranks that end ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"
#include "tprt/Backends.h"
#include "tprt/Manifest.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <sys/stat.h>

using namespace tprt;
using namespace tprt::test;

namespace {

constexpr int64_t worldSize = 3;
constexpr std::chrono::seconds never(0);

std::set<int> listSockets() {
  std::set<int> sockets;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    int descriptor = std::stoi(entry.path().filename());
    struct stat status = {};
    if (::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode))
      sockets.insert(descriptor);
  }
  return sockets;
}

/// Ranks that are connected with rank 0, and no timeout.
class TcpTest : public testing::Test {
protected:
  TcpTest() : connections(worldSize), errors(worldSize) {
    manifest.worldSize = worldSize;
    std::vector<Job> jobs = makeSecretJobs(worldSize);
    runThreads(worldSize, [&](int64_t rank) {
      connections[rank] = std::make_unique<Connection>(jobs[rank], never);
    });
  }

  std::unique_ptr<Communicator> connect(int64_t rank) {
    CommunicatorOptions options;
    options.timeout = never;
    return std::move(makeFactory(*findBackend("tcp"),
                                 connections[rank].get())(manifest, options)
                         .front());
  }

  /// Calls body(rank) in a thread for each, and keeps what it throws.
  template <typename Body>
  void run(Body body) {
    runThreads(worldSize, [&](int64_t rank) {
      try {
        body(rank);
      } catch (const std::exception &error) {
        errors[rank] = error.what();
        connections[rank]->abort(errors[rank]);
      }
    });
  }

  Manifest manifest;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::string> errors;
};

TEST_F(TcpTest, EndsWhereAConnectionEnds) {
  std::set<int> before = listSockets();
  std::vector<std::unique_ptr<Communicator>> communicators(worldSize);
  run([&](int64_t rank) { communicators[rank] = connect(rank); });
  EXPECT_EQ(errors, std::vector<std::string>(worldSize));
  // Any of the new ones connects two ranks.
  for (int socket : listSockets())
    if (!before.contains(socket)) {
      ::shutdown(socket, SHUT_RDWR);
      break;
    }
  run([&](int64_t rank) { communicators[rank]->barrier(); });
  // The third rank may have all that it waits for.
  EXPECT_LE(std::ranges::count(errors, ""), 1);
  for (const std::string &error : errors)
    EXPECT_TRUE(error.empty() || error.find("the connection of rank ") == 0)
        << error;
}

TEST_F(TcpTest, NoRankWaitsForOneThatHasFailedBefore) {
  run([&](int64_t rank) {
    if (rank == 2)
      throw executionError("rank 2 has no memory");
    connect(rank);
  });
  for (const std::string &error : errors)
    EXPECT_NE(error.find("rank 2 has no memory"), std::string::npos) << error;
}

TEST_F(TcpTest, NoRankWaitsForOneThatFailsWhileTheyMeet) {
  // Rank 2 exchanges what it isn't asked for, so no other rank understands it.
  run([&](int64_t rank) {
    if (rank < 2) {
      connect(rank);
      return;
    }
    connections[rank]->exchange("not a place", /*limit=*/1024);
  });
  EXPECT_NE(errors[0].find("a rank sent no place"), std::string::npos)
      << errors[0];
  EXPECT_FALSE(errors[1].empty());
}

} // namespace
