//===- JobAttackTest.cpp - Connections that misbehave ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"
#include "Stranger.h"
#include "TestUtils.h"

#include <atomic>

using namespace tprt;
using namespace tprt::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

//===----------------------------------------------------------------------===//
// Those that aren't of the job
//===----------------------------------------------------------------------===//

/// Rank 0 waits while `attack` is made, and the job's ranks come after it. All
/// is as without it.
template <typename Attack>
static void attackJob(Attack attack) {
  std::vector<Job> jobs = makeSecretJobs(3);
  std::atomic<bool> isMade = false;
  runThreads(4, [&](int64_t i) {
    if (i == 3) {
      attack(jobs[0].port);
      isMade = true;
      return;
    }
    while (i > 0 && !isMade)
      std::this_thread::sleep_for(milliseconds(1));
    Connection connection(jobs[i], seconds(20));
    EXPECT_EQ(connection.exchange(std::to_string(i), 1),
              (std::vector<std::string>{"0", "1", "2"}));
  });
}

TEST(JobAttack, Silence) {
  std::vector<Stranger> strangers;
  attackJob([&](uint16_t port) {
    for (int i = 0; i < 20; ++i)
      strangers.emplace_back(port);
  });
}

TEST(JobAttack, ManyConnections) {
  std::vector<Stranger> strangers;
  attackJob([&](uint16_t port) {
    for (int i = 0; i < 400; ++i)
      EXPECT_TRUE(strangers.emplace_back(port).isConnected);
  });
}

TEST(JobAttack, EarlyCloses) {
  attackJob([](uint16_t port) {
    for (size_t bytes = 0; bytes < Hello::numBytes; bytes += 7)
      Stranger(port).send(Hello{1, 3, {}, {}}.encode().substr(0, bytes));
  });
}

TEST(JobAttack, Garbage) {
  std::vector<Stranger> strangers;
  attackJob([&](uint16_t port) {
    for (const std::string &bytes :
         {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(80, 0),
          std::string(80, '\xff'), std::string(100'000, 'D'),
          encodeHead(MessageKind::Data, ~uint64_t(0)) + std::string(80, 'x'),
          std::string("\1\0\0\0\0\0\0\0", 8)}) // an older rank 1
      strangers.emplace_back(port).send(bytes);
  });
}

TEST(JobAttack, OtherTokens) {
  attackJob([](uint16_t port) {
    for (const std::string &token :
         {std::string(), std::string(secret.size(), 'x'), secret + "x",
          secret.substr(1)})
      EXPECT_EQ(Stranger(port).introduce(1, 3, token)[0],
                static_cast<char>(Verdict::OtherToken));
  });
}

/// What a rank has said to one rank 0 is worth nothing to another, nor again.
TEST(JobAttack, Replays) {
  std::string said;
  {
    std::vector<Job> jobs = makeSecretJobs(2);
    runThreads(2, [&](int64_t i) {
      if (i == 0)
        return errorOf(
                   [&] { Connection(jobs[0], seconds(20)).exchange("", 0); }),
               void();
      Stranger rank(jobs[0].port);
      EXPECT_EQ(rank.introduce(1, 2, secret)[0],
                static_cast<char>(Verdict::Welcome));
      said = rank.hello.encode();
    });
  }
  attackJob([&](uint16_t port) {
    Stranger stranger(port);
    stranger.receive(Challenge::numBytes);
    stranger.send(said);
    EXPECT_EQ(stranger.receive(numVerdictBytes)[0],
              static_cast<char>(Verdict::OtherToken));
  });
}

/// Who listens in rank 0's place, and doesn't have the token, learns nothing
/// and gets no rank.
TEST(JobAttack, AnotherRankZero) {
  std::vector<Job> jobs = makeSecretJobs(2);
  std::string said;
  runThreads(2, [&](int64_t i) {
    if (i == 1) {
      EXPECT_EQ(errorOf([&] { Connection(jobs[1], seconds(2)); }),
                "rank 1 can't connect to rank 0 at 127.0.0.1:" +
                    std::to_string(jobs[1].port) +
                    ": the process that listens there isn't rank 0 of this "
                    "job");
      return;
    }
    int accepted = ::accept(jobs[0].listener, nullptr, nullptr);
    std::string challenge = Challenge{drawNonce()}.encode();
    ::send(accepted, challenge.data(), challenge.size(), MSG_NOSIGNAL);
    said.resize(Hello::numBytes);
    ::recv(accepted, said.data(), said.size(), MSG_WAITALL);
    std::string verdict(numVerdictBytes, static_cast<char>(Verdict::Welcome));
    ::send(accepted, verdict.data(), verdict.size(), MSG_NOSIGNAL);
    std::this_thread::sleep_for(milliseconds(500));
    ::close(accepted);
  });
  ::close(jobs[0].listener);
  EXPECT_EQ(said.find(secret), std::string::npos);
}

TEST(Job, SilentGuestsAreSentAway) {
  std::vector<Job> jobs = makeSecretJobs(2);
  std::thread rank([&] { errorOf([&] { Connection(jobs[0], seconds(14)); }); });
  Stranger stranger(jobs[0].port);
  Clock::time_point start = Clock::now();
  EXPECT_EQ(stranger.receive(1000).size(), Challenge::numBytes);
  EXPECT_LT(Clock::now() - start, seconds(13)); // or it is the job's end
  rank.join();
}

TEST(Job, SaysWhyARankIsRefused) {
  std::vector<Job> jobs = makeSecretJobs(3);
  std::string place =
      " can't connect to rank 0 at 127.0.0.1:" + std::to_string(jobs[0].port) +
      ": ";
  std::string ofZero;
  runThreads(2, [&](int64_t i) {
    if (i == 0) {
      ofZero = errorOf([&] { Connection(jobs[0], seconds(2)); });
      return;
    }
    Stranger first(jobs[0].port);
    first.introduce(1, 3, secret);
    auto getError = [](const Job &job) {
      return errorOf([&] { Connection(job, seconds(20)); });
    };
    EXPECT_EQ(getError(jobs[1]),
              "rank 1" + place + "another process has connected as rank 1");
    jobs[2].token[0] = 'x';
    EXPECT_EQ(getError(jobs[2]), "rank 2" + place + "it has another token");
    jobs[2].token = secret;
    jobs[2].worldSize = 4;
    EXPECT_EQ(getError(jobs[2]), "rank 2" + place +
                                     "rank 0's job has another number of "
                                     "ranks than 4");
    EXPECT_EQ(first.receive(1)[0], static_cast<char>(MessageKind::Abort));
  });
  EXPECT_EQ(ofZero, "1 of 3 ranks haven't connected to rank 0 at 127.0.0.1:" +
                        std::to_string(jobs[0].port) +
                        " (rank 2); 1 other connection gave a rank that is "
                        "already connected; 1 other connection had another "
                        "number of ranks; 1 "
                        "other connection had another token");
}

/// A rank that ends while others still connect has given its reason.
TEST(Job, SaysWhyARankEndedBeforeAllConnected) {
  for (bool hasReason : {true, false}) {
    std::vector<Job> jobs = makeSecretJobs(3);
    std::string ofZero, reason = "rank 1: no weights\x1b[2J";
    runThreads(2, [&](int64_t i) {
      if (i == 0) {
        ofZero = errorOf([&] { Connection(jobs[0], seconds(20)); });
        return;
      }
      Stranger rank(jobs[0].port);
      rank.introduce(1, 3, secret);
      if (hasReason)
        rank.send(encodeHead(MessageKind::Alive, 0) +
                  encodeHead(MessageKind::Abort, reason.size()) + reason);
    });
    EXPECT_EQ(ofZero,
              hasReason ? "rank 1: no weights\\x1b[2J" : "rank 1 has left");
  }
}

/// A process that is stopped, or slow, isn't taken for a stranger.
TEST(Job, SaysThatRankZeroDoesNotAnswer) {
  std::vector<Job> jobs = makeSecretJobs(2); // they listen, and don't accept
  EXPECT_EQ(errorOf([&] { Connection(jobs[1], milliseconds(500)); }),
            "rank 1 can't connect to rank 0 at 127.0.0.1:" +
                std::to_string(jobs[0].port) + ": it doesn't answer");
  ::close(jobs[0].listener);
}

//===----------------------------------------------------------------------===//
// Ranks that stall, or send what isn't expected
//===----------------------------------------------------------------------===//

namespace {

struct Case {
  const char *name;
  std::string sent;
  bool staysOpen;
  std::string error; ///< of the others, behind "rank N"
};

std::vector<Case> makeCases() {
  std::string data = encodeHead(MessageKind::Data, 10);
  std::string reason = "\x1b[2J" + std::string(2999, 'r');
  return {
      {"Nothing", "", true, ""},
      {"PartOfAHead", data.substr(0, 4), true, ""},
      {"PartOfAText", data + "hello", true, ""},
      {"PartOfAReason", encodeHead(MessageKind::Abort, 10) + "hello", true,
       " has left"},
      {"EndWithin", data + "hello", false, " has left"},
      {"EndBefore", "", false, " has left"},
      {"NoMessage", "GET", true, ": the bytes that arrive aren't a message"},
      {"TooMuch", encodeHead(MessageKind::Data, 11), true,
       ": a message has 11 bytes where at most 10 are expected"},
      {"EightGiB", encodeHead(MessageKind::Data, uint64_t(8) << 30), true,
       ": a message has 8589934592 bytes where at most 10 are expected"},
      {"OtherChecksum",
       encodeHead(MessageKind::Data, 5, /*crc=*/0x12345678) + "hello", true,
       ": a message of 5 bytes arrives with another CRC-32 than it was sent "
       "with"},
      {"LongReason", encodeHead(MessageKind::Abort, 4097), true,
       ": a message has 4097 bytes where at most 4096 are expected"},
      {"Reason", encodeHead(MessageKind::Abort, reason.size()) + reason, true,
       "\\x1b[2Jrrr"}};
}

class JobStall : public testing::TestWithParam<Case> {};

} // namespace

/// Rank 0 and another rank end within the timeout, whatever the third does.
TEST_P(JobStall, EndsTheOthers) {
  const Case &test = GetParam();
  std::vector<Job> jobs = makeSecretJobs(3);
  std::string errors[2];
  Clock::duration taken[2];
  std::atomic<bool> areDone = false;
  std::atomic<int> numConnected = 0;
  runThreads(3, [&](int64_t i) {
    if (i < 2) {
      Connection connection(jobs[i], seconds(i == 0 ? 3 : 20));
      ++numConnected;
      Clock::time_point start = Clock::now();
      errors[i] = errorOf([&] { connection.exchange("x", 10); });
      taken[i] = Clock::now() - start;
      if (i == 0)
        areDone = true;
      return;
    }
    Stranger rank(jobs[0].port);
    EXPECT_EQ(rank.introduce(2, 3, secret)[0], 'Y');
    while (numConnected < 2)
      std::this_thread::sleep_for(milliseconds(3));
    rank.send(test.sent);
    while (test.staysOpen && !areDone)
      std::this_thread::sleep_for(milliseconds(3));
  });
  for (const std::string &error : errors) {
    EXPECT_TRUE(
        contains(error, test.error.empty()      ? "no progress for 3 s: rank "
                                                  "0 waits for rank 2"
                        : test.error[0] == '\\' ? test.error
                                                : "rank 2" + test.error));
    EXPECT_LT(error.size(), 3100u);
  }
  for (Clock::duration time : taken)
    EXPECT_LT(time, seconds(8));
}

INSTANTIATE_TEST_SUITE_P(Cases, JobStall, testing::ValuesIn(makeCases()),
                         [](auto &info) { return info.param.name; });

/// More than the sockets' buffers hold.
TEST(Job, EndsWhereARankDoesntRead) {
  std::vector<Job> jobs = makeSecretJobs(2);
  std::atomic<bool> isDone = false;
  runThreads(2, [&](int64_t i) {
    if (i == 1) {
      Stranger rank(jobs[0].port);
      rank.introduce(1, 2, secret);
      rank.send(encodeHead(MessageKind::Data, 0));
      while (!isDone)
        std::this_thread::sleep_for(milliseconds(3));
      return;
    }
    Connection connection(jobs[0], seconds(3));
    std::string large(32 << 20, 'x');
    Clock::time_point start = Clock::now();
    EXPECT_EQ(errorOf([&] { connection.exchange(large, large.size()); }),
              "no progress for 3 s: rank 0 can't send to rank 1");
    EXPECT_LT(Clock::now() - start, seconds(12));
    isDone = true;
  });
}

/// A rank may wait for what rank 0 makes for longer than the timeout.
TEST(Job, WaitsWhileRankZeroWorks) {
  std::vector<Job> jobs = makeJobs(2);
  runThreads(2, [&](int64_t rank) {
    Connection connection(jobs[rank], seconds(3));
    if (rank == 0)
      std::this_thread::sleep_for(milliseconds(5000));
    EXPECT_EQ(connection.broadcast(rank == 0 ? "made" : "", 10), "made");
  });
}

/// But not where rank 0 doesn't show that it does, as where it is stopped.
TEST(Job, EndsWhereRankZeroIsStopped) {
  std::vector<Job> jobs = makeSecretJobs(2);
  jobs[1].getFate = [](int64_t rank) {
    return rank == 0 ? Fate{Fate::Stopped, "is stopped by SIGSTOP"} : Fate();
  };
  int listener = jobs[0].listener;
  runThreads(2, [&](int64_t rank) {
    if (rank == 1) {
      Connection connection(jobs[1], seconds(3));
      EXPECT_EQ(errorOf([&] { connection.broadcast("", 10); }),
                "no progress for 3 s: rank 1 waits for rank 0; rank 0 is "
                "stopped by SIGSTOP");
      return;
    }
    int accepted = ::accept(listener, nullptr, nullptr);
    Challenge challenge{drawNonce()};
    std::string bytes = challenge.encode();
    ::send(accepted, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    bytes.resize(Hello::numBytes);
    ::recv(accepted, bytes.data(), bytes.size(), MSG_WAITALL);
    Proof proof =
        prove(secret, true, challenge.nonce, Hello::decode(bytes).value());
    bytes = "Y" + std::string(proof.data(), proof.size());
    ::send(accepted, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    char byte;
    while (::recv(accepted, &byte, 1, 0) > 0)
      ; // until rank 1 has left
    ::close(accepted);
    ::close(listener);
  });
}
