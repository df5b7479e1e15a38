#include "sim/process/forked_call.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::function<std::string()>& call) {
  try {
    run_forked(call);
  } catch (const ForkedCallError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunForked, ReturnsWhatTheCallReturns) {
  EXPECT_EQ(run_forked([] { return std::string("42"); }), "42");
  EXPECT_EQ(run_forked([] { return std::string(); }), "");
}

TEST(RunForked, CarriesResultsLargerThanAPipeAndAnyByte) {
  std::string large(3'000'000, 'x');
  large[1'000'000] = '\0';
  EXPECT_EQ(run_forked([&] { return large; }), large);
}

TEST(RunForked, LeavesTheStateOfThisProcessAlone) {
  int counter = 0;
  run_forked([&] { return std::to_string(++counter); });
  EXPECT_EQ(counter, 0);
}

TEST(RunForked, AnExceptionOfTheCallComesBackWithItsText) {
  EXPECT_EQ(error_of([]() -> std::string { throw std::runtime_error("no such GPU"); }),
            "no such GPU");
}

TEST(RunForked, ASignalIsNamed) {
  EXPECT_THAT(error_of([] {
                raise(SIGTERM);
                return std::string();
              }),
              HasSubstr("signal 15 (Terminated)"));
}

TEST(RunForked, AnExitWithoutAResultIsAnError) {
  EXPECT_THAT(error_of([]() -> std::string { _exit(7); }), HasSubstr("exit code 7"));
}

TEST(RunForkedAll, ResultsComeInTheOrderOfTheCalls) {
  std::vector<std::function<std::string()>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back([i] {  // the first ends last
      std::this_thread::sleep_for(std::chrono::milliseconds(10 * (5 - i)));
      return std::to_string(i);
    });
  }
  for (const int jobs : {1, 2, 8}) {
    EXPECT_THAT(run_forked_all(calls, jobs), ElementsAre("0", "1", "2", "3", "4")) << jobs;
  }
}

TEST(RunForkedAll, NoCallsGiveNoResults) {
  EXPECT_TRUE(run_forked_all({}, 2).empty());
}

TEST(RunForkedAll, RunsAsManyAtOnceAsJobsAllow) {
  // Each call sends a byte and then waits for the other's: one at a time would never end.
  int to_first[2];
  int to_second[2];
  ASSERT_EQ(pipe(to_first), 0);
  ASSERT_EQ(pipe(to_second), 0);
  const auto exchange = [](int out, int in) {
    char byte = 'x';
    const bool done = write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1;
    return std::string(done ? "met" : "failed");
  };
  EXPECT_THAT(run_forked_all({[&] { return exchange(to_second[1], to_first[0]); },
                              [&] { return exchange(to_first[1], to_second[0]); }},
                             2),
              ElementsAre("met", "met"));
}

TEST(RunForkedAll, TheFirstErrorInOrderOfTheCallsIsThrown) {
  const std::vector<std::function<std::string()>> calls = {
      [] { return std::string("fine"); },
      []() -> std::string {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        throw std::runtime_error("second call");
      },
      []() -> std::string { throw std::runtime_error("third call"); },
  };
  try {
    run_forked_all(calls, 3);
    FAIL() << "no error";
  } catch (const ForkedCallError& error) {
    EXPECT_STREQ(error.what(), "second call");
  }
}

TEST(RunForkedEach, TellsWhatBecameOfEveryCallAndCountsThem) {
  std::vector<std::size_t> counts;
  const std::vector<ForkedOutcome> outcomes =
      run_forked_each({[] { return std::string("one"); },
                       []() -> std::string { throw std::runtime_error("two is broken"); },
                       []() -> std::string {
                         std::raise(SIGKILL);
                         return "";
                       }},
                      2, [&](std::size_t ended) { counts.push_back(ended); });
  EXPECT_EQ(outcomes[0].result, "one");
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_EQ(outcomes[1].error, "two is broken");
  EXPECT_THAT(outcomes[2].error, ::testing::HasSubstr("signal 9"));
  EXPECT_THAT(counts, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace tessera
