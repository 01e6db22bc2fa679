//===- Jobs.h - Jobs whose processes are threads ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_JOBS_H
#define TPRT_UNITTESTS_JOBS_H

#include "tprt/Connection.h"

#include <arpa/inet.h>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>

namespace tprt::test {

/// The jobs of all ranks, which meet at a port that is free.
inline std::vector<Job> makeJobs(int64_t worldSize) {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(listener, reinterpret_cast<sockaddr *>(&address), length) != 0 ||
      ::listen(listener, SOMAXCONN) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr *>(&address),
                    &length) != 0)
    throw std::runtime_error("no port is free");
  std::vector<Job> jobs;
  for (int64_t rank = 0; rank < worldSize; ++rank)
    jobs.push_back({.rank = rank,
                    .worldSize = worldSize,
                    .localRank = rank,
                    .port = ntohs(address.sin_port),
                    .listener = rank == 0 ? listener : -1});
  return jobs;
}

inline const std::string secret = "a secret of more than 32 characters";

/// The jobs of all ranks, with a token.
inline std::vector<Job> makeSecretJobs(int64_t worldSize) {
  std::vector<Job> jobs = makeJobs(worldSize);
  for (Job &job : jobs)
    job.token = secret;
  return jobs;
}

/// Calls body(rank) in a thread for each.
template <typename Body>
void runThreads(int64_t count, Body body) {
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace tprt::test

#endif // TPRT_UNITTESTS_JOBS_H
