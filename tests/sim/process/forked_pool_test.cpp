#include "sim/process/forked_pool.h"

#include <map>
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

TEST(ForkedPool, WaitingWithPatienceReturnsWithNothing) {
  ForkedPool pool(1, std::chrono::seconds(60));
  pool.start(1, []() -> std::string {
    sleep(60);
    return "late";
  });
  EXPECT_TRUE(pool.wait(std::chrono::milliseconds(10)).empty());
  EXPECT_TRUE(pool.full());
}

}  // namespace
}  // namespace tessera
