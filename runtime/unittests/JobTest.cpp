//===- JobTest.cpp - Jobs of several processes ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"
#include "Stranger.h"
#include "TestUtils.h"

#include <atomic>
#include <map>
#include <sys/stat.h>

using namespace tprt;
using namespace tprt::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

using Variables = std::map<std::string, std::string>;

static std::optional<Job> getJob(const Variables &variables) {
  return Job::fromEnvironment([&](const char *name) {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Job, FromLaunchers) {
  EXPECT_FALSE(getJob({}));
  EXPECT_FALSE(getJob({{"RANK", "1"}}));
  Variables torchrun = {{"RANK", "5"},
                        {"WORLD_SIZE", "8"},
                        {"LOCAL_RANK", "1"},
                        {"MASTER_ADDR", "node0"},
                        {"MASTER_PORT", "29500"}};
  Job job = *getJob(torchrun);
  EXPECT_EQ(job.rank, 5);
  EXPECT_EQ(job.worldSize, 8);
  EXPECT_EQ(job.localRank, 1);
  EXPECT_EQ(job.address, "node0");
  EXPECT_EQ(job.port, 29501);

  job = *getJob({{"OMPI_COMM_WORLD_RANK", "3"},
                 {"OMPI_COMM_WORLD_SIZE", "4"},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                 {"SLURM_PROCID", "0"},
                 {"SLURM_NTASKS", "1"}});
  EXPECT_EQ(job.rank, 3);
  EXPECT_EQ(job.localRank, 1);
  job = *getJob({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(job.rank, 2);
  EXPECT_EQ(job.localRank, 2);
  torchrun["TP_RANK"] = "0"; // of `tp-run -n`, within a job
  torchrun["TP_WORLD_SIZE"] = "2";
  torchrun["TP_PORT"] = "1234";
  job = *getJob(torchrun);
  EXPECT_EQ(job.worldSize, 2);
  EXPECT_EQ(job.port, 1234);
}

TEST(Job, BadVariables) {
  EXPECT_EQ(errorOf([] { getJob({{"RANK", "4"}, {"WORLD_SIZE", "4"}}); }),
            "RANK is '4', expected 0 to 3");
  EXPECT_EQ(errorOf([] { getJob({{"RANK", "0"}, {"WORLD_SIZE", "two"}}); }),
            "WORLD_SIZE is 'two', expected 1 to 4096");
}

TEST(Job, ExchangesWhatRanksHandIn) {
  std::vector<Job> jobs = makeJobs(3);
  runThreads(3, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(20));
    for (int round = 0; round < 3; ++round) {
      std::string mine(rank * 100000 + round, 'a' + rank);
      std::vector<std::string> all = connection.exchange(mine, 300000);
      ASSERT_EQ(all.size(), 3u);
      for (int64_t other = 0; other < 3; ++other)
        EXPECT_EQ(all[other], std::string(other * 100000 + round, 'a' + other));
    }
  });
}

TEST(Job, SeesWhoLeaves) {
  std::vector<Job> jobs = makeJobs(3);
  std::vector<std::string> errors(3);
  runThreads(3, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(20));
    if (rank != 2)
      errors[rank] = errorOf([&] { connection.exchange("", 0); });
  });
  EXPECT_EQ(errors[0], "rank 2 has left");
  EXPECT_EQ(errors[1], "rank 2 has left");
}

TEST(Job, SaysWhoIsMissing) {
  std::vector<Job> jobs = makeJobs(3);
  std::string errors[2];
  runThreads(2, [&](int64_t rank) {
    errors[rank] = errorOf([&] {
      Connection(jobs[rank], rank == 0 ? milliseconds(500) : seconds(20))
          .exchange("", 0);
    });
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "1 of 3 ranks haven't connected to rank 0 at 127.0.0.1:" +
                         std::to_string(jobs[0].port) + " (rank 2)");
}

//===----------------------------------------------------------------------===//
// Tokens and addresses
//===----------------------------------------------------------------------===//

static Variables withRank(Variables variables) {
  variables["TP_RANK"] = "0";
  variables["TP_WORLD_SIZE"] = "2";
  return variables;
}

TEST(JobToken, FromVariableOrFile) {
  TestDirectory directory;
  std::string path = directory.write("token", secret + "\n");
  EXPECT_EQ(getJob(withRank({}))->token, "");
  EXPECT_EQ(getJob(withRank({{"TP_TOKEN", secret}}))->token, secret);
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(getJob(withRank({{"TP_TOKEN_FILE", path}}))->token, secret);
}

TEST(JobToken, BadOnesAreRefused) {
  TestDirectory directory;
  std::string path = directory.write("token", secret);
  auto getError = [](const Variables &variables) {
    std::string error = errorOf([&] { getJob(withRank(variables)); });
    EXPECT_EQ(error.find(secret), std::string::npos) << error;
    return error;
  };
  std::string file = "TP_TOKEN_FILE: '" + path + "' ";
  for (int mode : {0640, 0604, 0660, 0602, 0610, 0644}) {
    ::chmod(path.c_str(), mode);
    EXPECT_EQ(getError({{"TP_TOKEN_FILE", path}}),
              file + "may be read or written by others; mode 0600 is right");
  }
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(getError({{"TP_TOKEN_FILE", path}, {"TP_TOKEN", secret}}),
            "TP_TOKEN and TP_TOKEN_FILE are both set; set only one");
  EXPECT_EQ(getError({{"TP_TOKEN", "short"}}),
            "TP_TOKEN: the token has 5 bytes, expected 32 to 4096");
  directory.write("token", std::string(31, 'x') + "\n");
  EXPECT_EQ(getError({{"TP_TOKEN_FILE", path}}),
            "TP_TOKEN_FILE: the token has 31 bytes, expected 32 to 4096");
  EXPECT_TRUE(contains(getError({{"TP_TOKEN_FILE", directory / "none"}}),
                       "can't be opened: No such file"));
  EXPECT_TRUE(contains(getError({{"TP_TOKEN_FILE", directory / "."}}),
                       "is not a regular file"));
  std::string pipe = directory / "pipe"; // nobody writes to it
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(
      contains(getError({{"TP_TOKEN_FILE", pipe}}), "is not a regular file"));
}

/// Both sides say so before anything listens or connects.
TEST(JobToken, IsNeededWhereOtherHostsCanConnect) {
  for (const char *address : {"192.0.2.1", "0.0.0.0", "::", "2001:db8::1"})
    for (int64_t rank : {0, 1}) {
      Job job{.rank = rank, .worldSize = 2, .address = address};
      std::string error = errorOf([&] { Connection(job, seconds(20)); });
      EXPECT_TRUE(contains(error, "where other hosts can connect too: give the "
                                  "ranks a secret of at least 32 characters, "
                                  "the same for all of a job, in TP_TOKEN, or "
                                  "in a file of mode 0600 that TP_TOKEN_FILE "
                                  "names"));
    }
}

/// Which makes a job that listens elsewhere than on the address it is told, or
/// on all, fail here.
TEST(JobAddress, IsTheOnlyOneThatIsListenedAt) {
  uint16_t port = 0;
  {
    std::vector<Job> jobs = makeJobs(2); // finds a free one
    port = jobs[0].port;
    ::close(jobs[0].listener);
  }
  std::thread thread([&] {
    Job job{.worldSize = 2, .address = "127.0.0.3", .port = port};
    errorOf([&] { Connection(job, milliseconds(1500)); });
  });
  bool isThere = false;
  for (int attempt = 0; attempt < 100 && !isThere; ++attempt) {
    isThere = Stranger(port, "127.0.0.3").isConnected;
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(isThere);
  EXPECT_FALSE(Stranger(port, "127.0.0.1").isConnected);
  EXPECT_FALSE(Stranger(port, "127.0.0.2").isConnected);
  thread.join();
}

TEST(JobAddress, MustBeOneOfTheHosts) {
  Job job{.worldSize = 2, .address = "192.0.2.1", .token = secret};
  EXPECT_TRUE(contains(errorOf([&] { Connection(job, seconds(20)); }),
                       "it must be an address of rank 0's host"));
}

//===----------------------------------------------------------------------===//
// What the launcher sees
//===----------------------------------------------------------------------===//

/// A rank that was killed, whose connection says nothing: the others say who
/// and by what, wherever they are.
TEST(Job, NamesTheSignalThatHasEndedARank) {
  for (bool hasConnected : {false, true}) {
    std::vector<Job> jobs = makeSecretJobs(4);
    std::atomic<bool> isKilled = false;
    for (Job &job : jobs)
      job.getFate = [&](int64_t rank) {
        return rank == 2 && isKilled
                   ? Fate{Fate::Killed, "was ended by signal 9 (Killed)"}
                   : Fate();
      };
    std::string errors[4];
    runThreads(4, [&](int64_t i) {
      if (i == 2) {
        if (hasConnected)
          Stranger(jobs[0].port).introduce(2, 4, secret);
        std::this_thread::sleep_for(milliseconds(100));
        isKilled = true;
        return;
      }
      errors[i] = errorOf([&] {
        Connection connection(jobs[i], seconds(20));
        connection.exchange("", 0);
      });
    });
    for (int64_t i : {0, 1, 3})
      EXPECT_EQ(errors[i], "rank 2 was ended by signal 9 (Killed)")
          << i << " " << hasConnected;
  }
}

/// The others throw errors of the failure's kind, also those that rank 0 tells.
TEST(Job, PassesOnTheKindOfAFailure) {
  for (ErrorKind kind : {ErrorKind::Input, ErrorKind::Execution}) {
    std::vector<Job> jobs = makeJobs(3);
    runThreads(3, [&](int64_t rank) {
      Connection connection(jobs[rank], seconds(20));
      if (rank == 2) {
        connection.abort("rank 2 failed: no weights", kind);
        return;
      }
      try {
        connection.exchange("", 0);
        ADD_FAILURE() << "rank " << rank;
      } catch (const AbortedError &error) {
        EXPECT_EQ(error.getKind(), kind);
        EXPECT_STREQ(error.what(), "rank 2 failed: no weights");
      }
    });
  }
}

/// A rank that has failed leaves its message to rank 0, which may be gone or
/// still at work.
TEST(Job, WaitsUntilRankZeroHasReported) {
  for (bool tells : {true, false})
    for (bool leaves : {true, false}) {
      std::vector<Job> jobs = makeJobs(2);
      std::atomic<bool> isOver = false;
      runThreads(2, [&](int64_t rank) {
        Connection connection(jobs[rank], seconds(20));
        if (rank == 0) {
          EXPECT_FALSE(connection.waitForRankZero(milliseconds(1)));
          while (!leaves && !isOver)
            std::this_thread::sleep_for(milliseconds(3));
          return;
        }
        if (tells)
          connection.abort("rank 1 failed");
        EXPECT_EQ(
            connection.waitForRankZero(leaves ? seconds(20) : milliseconds(50)),
            tells && leaves);
        isOver = true;
      });
    }
}

/// Rank 0 ends last, however the others end.
TEST(Job, RankZeroWaitsForTheOthers) {
  std::vector<Job> jobs = makeJobs(3);
  std::atomic<int> numOver = 0;
  runThreads(3, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(20));
    errorOf([&] {
      if (rank == 1)
        connection.abort("rank 1 failed");
      connection.gather("", 0);
      connection.broadcast("", 0);
    });
    if (rank == 0) {
      connection.waitForOthers(seconds(20));
      EXPECT_EQ(numOver, 2);
      return;
    }
    std::this_thread::sleep_for(milliseconds(50));
    ++numOver;
    if (rank == 2)
      EXPECT_TRUE(connection.waitForRankZero(seconds(20)));
  });
  // Nor does it wait forever.
  jobs = makeJobs(2);
  std::atomic<bool> isOver = false;
  runThreads(2, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(20));
    if (rank == 0)
      connection.waitForOthers(milliseconds(50));
    while (rank == 1 && !isOver)
      std::this_thread::sleep_for(milliseconds(3));
    isOver = true;
  });
}

TEST(Job, ListensAtAFreePort) {
  std::vector<Job> jobs(2);
  jobs[0].worldSize = jobs[1].worldSize = 2;
  jobs[1].rank = 1;
  jobs[0].listenAtFreePort();
  jobs[1].port = jobs[0].port;
  runThreads(2, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(20));
    EXPECT_EQ(connection.exchange(std::to_string(rank), 1),
              (std::vector<std::string>{"0", "1"}));
  });
  Job elsewhere;
  elsewhere.address = "192.0.2.1"; // of no host
  EXPECT_NE(errorOf([&] { elsewhere.listenAtFreePort(); }).find("TP_TOKEN"),
            std::string::npos);
  elsewhere.token = secret;
  EXPECT_NE(errorOf([&] {
              elsewhere.listenAtFreePort();
            }).find("it must be an address of rank 0's host"),
            std::string::npos);
}

/// One that has failed may say why.
TEST(Job, PrefersTheReasonToTheExitCode) {
  for (bool saysWhy : {false, true}) {
    std::vector<Job> jobs = makeJobs(3);
    std::atomic<bool> hasFailed = false;
    std::atomic<int> numConnected = 0;
    for (Job &job : jobs)
      job.getFate = [&](int64_t rank) {
        return rank == 2 && hasFailed
                   ? Fate{Fate::Failed, "ended with exit code 1"}
                   : Fate();
      };
    std::string errors[3];
    runThreads(3, [&](int64_t i) {
      if (i == 2) {
        Stranger rank(jobs[0].port);
        rank.introduce(2, 3, "");
        while (numConnected < 2)
          std::this_thread::sleep_for(milliseconds(3));
        hasFailed = true;
        std::string reason = "rank 2 failed: the file is missing";
        std::this_thread::sleep_for(milliseconds(100));
        if (saysWhy)
          rank.send(encodeHead(MessageKind::Abort, reason.size()) + reason);
        return;
      }
      errors[i] = errorOf([&] {
        Connection connection(jobs[i], seconds(20));
        ++numConnected;
        connection.exchange("", 0);
      });
    });
    for (int64_t i : {0, 1})
      EXPECT_EQ(errors[i], saysWhy ? "rank 2 failed: the file is missing"
                                   : "rank 2 ended with exit code 1");
  }
}
