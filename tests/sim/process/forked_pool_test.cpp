#include "sim/process/forked_pool.h"

#include <map>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera {
namespace {

using How = EndedCall::How;

std::map<std::size_t, EndedCall> all_ended(ForkedPool& pool) {
  std::map<std::size_t, EndedCall> ended;
  while (!pool.empty())
    for (EndedCall& call : pool.wait()) ended[call.id] = call;
  return ended;
}

TEST(ForkedPool, ReturnsWhatEveryCallReturnedOrThrew) {
  ForkedPool pool(3, std::chrono::seconds(60));
  pool.start(7, [] { return std::string(1'000'000, 'x'); });
  pool.start(8, []() -> std::string { throw std::runtime_error("no"); });
  pool.start(9, []() -> std::string { _exit(3); });
  EXPECT_TRUE(pool.full());
  const auto ended = all_ended(pool);
  EXPECT_EQ(ended.at(7).text.size(), 1'000'000U);
  EXPECT_EQ(ended.at(8).how, How::failed);
  EXPECT_EQ(ended.at(8).text, "no");
  EXPECT_THAT(ended.at(9).text, testing::HasSubstr("exit code 3"));
}

TEST(ForkedPool, ACallOverItsLimitIsKilledAndTheOthersGoOn) {
  ForkedPool pool(2, std::chrono::milliseconds(200));
  const auto start = std::chrono::steady_clock::now();
  pool.start(1, []() -> std::string {
    sleep(60);
    return "late";
  });
  pool.start(2, [] { return std::string("quick"); });
  const auto ended = all_ended(pool);
  EXPECT_EQ(ended.at(1).how, How::timed_out);
  EXPECT_EQ(ended.at(2).text, "quick");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(ForkedPool, ALimitThatPassesAtOnceEndsEveryCallOnce) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    ForkedPool pool(2, std::chrono::nanoseconds(1), [] { return true; });
    for (std::size_t i = 0; i < 2; ++i) pool.start(i, [] { return std::string("quick"); });
    const auto ended = all_ended(pool);
    EXPECT_EQ(ended.size(), 2U);
    for (const auto& [id, call] : ended) EXPECT_EQ(call.how, How::timed_out);
  }
}

TEST(ForkedPool, WaitingWithPatienceReturnsWithNothing) {
  ForkedPool pool(1, std::chrono::seconds(60));
  pool.start(1, []() -> std::string {
    sleep(60);
    return "late";
  });
  EXPECT_TRUE(pool.wait(std::chrono::milliseconds(10)).empty());
  EXPECT_TRUE(pool.full());
}

/// The processes in which quick calls ran, by call.
std::map<std::size_t, std::string> processes_of(std::size_t calls,
                                                const std::function<bool()>& goes_on) {
  ForkedPool pool(1, std::chrono::seconds(60), goes_on);
  std::map<std::size_t, std::string> processes;
  const auto collect = [&] {
    for (const EndedCall& call : pool.wait()) processes[call.id] = call.text;
  };
  for (std::size_t i = 0; i < calls; ++i) {
    while (pool.full()) collect();
    pool.start(i, [] { return std::to_string(getpid()); });
  }
  while (!pool.empty()) collect();
  return processes;
}

std::size_t distinct(const std::map<std::size_t, std::string>& processes) {
  std::set<std::string> found;
  for (const auto& [call, process] : processes) found.insert(process);
  return found.size();
}

TEST(ForkedPool, QuickCallsShareAProcessWhereOneMayFollow) {
  const auto processes = processes_of(20, [] { return true; });
  EXPECT_EQ(processes.size(), 20U);
  EXPECT_LT(distinct(processes), 10U);
  EXPECT_NE(processes.at(0), std::to_string(getpid()));
}

TEST(ForkedPool, KnownCallsAreSharedOutEvenly) {
  ForkedPool pool(2, std::chrono::seconds(60), [] { return true; });
  pool.expect(6);
  for (std::size_t i = 0; i < 6; ++i) pool.start(i, [] { return std::to_string(getpid()); });
  const auto ended = all_ended(pool);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(ended.at(i).text, ended.at(i / 3 * 3).text) << i;
  EXPECT_NE(ended.at(0).text, ended.at(3).text);
}

TEST(ForkedPool, EveryCallHasAProcessWhereNoneMayFollow) {
  EXPECT_EQ(distinct(processes_of(20, [] { return false; })), 20U);
  EXPECT_EQ(distinct(processes_of(20, nullptr)), 20U);
}

TEST(ForkedPool, ACallThatEndsItsProcessFailsAloneAndThoseBehindItRun) {
  for (const bool silently : {false, true}) {
    ForkedPool pool(1, std::chrono::seconds(60), [] { return true; });
    pool.start(0, [] { return std::string("first"); });
    std::map<std::size_t, EndedCall> ended = all_ended(pool);
    for (std::size_t i = 1; i < 6; ++i) {
      pool.start(i, [i, silently] {
        if (i == 3) _exit(silently ? 0 : 3);
        return std::to_string(i);
      });
    }
    for (auto& [id, call] : all_ended(pool)) ended[id] = call;
    EXPECT_EQ(ended.size(), 6U);
    for (const auto& [id, call] : ended) {
      EXPECT_EQ(call.how, id == 3 ? How::failed : How::returned) << id;
    }
    EXPECT_EQ(ended.at(3).text, "the process ended without a result, with exit code " +
                                    std::string(silently ? "0" : "3"));
  }
}

TEST(ForkedPool, ACallOverItsLimitIsKilledAndThoseBehindItRun) {
  ForkedPool pool(1, std::chrono::milliseconds(300), [] { return true; });
  pool.start(0, [] { return std::string("first"); });
  std::map<std::size_t, EndedCall> ended = all_ended(pool);
  for (std::size_t i = 1; i < 4; ++i) {
    pool.start(i, [i] {
      if (i == 2) sleep(60);
      return std::to_string(i);
    });
  }
  for (auto& [id, call] : all_ended(pool)) ended[id] = call;
  EXPECT_EQ(ended.at(1).text, "1");
  EXPECT_EQ(ended.at(2).how, How::timed_out);
  EXPECT_EQ(ended.at(3).text, "3");
  EXPECT_GE(ended.at(2).took, std::chrono::milliseconds(300));
}

}  // namespace
}  // namespace tessera
