#include "sim/process/answer.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "sim/process/started_call.h"

namespace tessera {
namespace {

enum class Verdict : std::uint8_t { fits, does_not_fit };

struct Part {
  std::string name;
  Bytes bytes;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Part, name, bytes)

struct Answer {
  Seconds time;
  std::optional<Seconds> slowest;
  Verdict verdict = Verdict::fits;
  std::vector<Part> parts;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Answer, time, slowest, verdict, parts)

TEST(Answer, NumbersArriveToTheLastBit) {
  for (const double value : {0.1, 1.0 / 3, 0.0, 5e-324, 1.7976931348623157e308, 2.0})
    EXPECT_EQ(unpacked<Seconds>(packed(Seconds(value))).value(), value);
  EXPECT_EQ(unpacked<Bytes>(packed(Bytes(std::numeric_limits<std::int64_t>::max()))).value(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(unpacked<double>(packed(std::numeric_limits<double>::infinity())),
            std::numeric_limits<double>::infinity());
}

TEST(Answer, StructsArriveWithAllThatTheyHold) {
  const Answer sent{.time = Seconds(0.1),
                    .slowest = std::nullopt,
                    .verdict = Verdict::does_not_fit,
                    .parts = {{"weights", Bytes(1'234'567'890'123)}, {"", Bytes(0)}}};
  const Answer got = forked([&] { return sent; });
  EXPECT_EQ(got.time, sent.time);
  EXPECT_FALSE(got.slowest);
  EXPECT_EQ(got.verdict, Verdict::does_not_fit);
  ASSERT_EQ(got.parts.size(), 2u);
  EXPECT_EQ(got.parts[0].name, "weights");
  EXPECT_EQ(got.parts[0].bytes, Bytes(1'234'567'890'123));
}

TEST(Answer, KeysOfOrderedJsonKeepTheirOrder) {
  const nlohmann::ordered_json sent{{"z", 1}, {"a", {{"y", 2}, {"b", 3}}}};
  EXPECT_EQ(forked([&] { return sent; }).dump(), R"({"z":1,"a":{"y":2,"b":3}})");
}

TEST(StartedCall, AnswersOrSaysWhyNot) {
  const std::function<int()> seven = [] { return 7; };
  EXPECT_EQ(StartedCall<int>(seven).answer().value(), 7);
  const std::function<int()> fails = []() -> int { throw std::runtime_error("no answer"); };
  EXPECT_EQ(StartedCall<int>(fails).answer().error, "no answer");
}

TEST(ForkedEach, OneErrorLeavesTheOtherAnswers) {
  const std::vector<std::function<int()>> calls{
      [] { return 1; }, []() -> int { throw std::runtime_error("no answer"); }, [] { return 3; }};
  const auto answers = forked_each(calls, 2);
  EXPECT_EQ(answers[0].value(), 1);
  EXPECT_EQ(answers[2].value(), 3);
  EXPECT_FALSE(answers[1].answer);
  EXPECT_EQ(answers[1].error, "no answer");
  EXPECT_THROW(answers[1].value(), ForkedCallError);
}

}  // namespace
}  // namespace tessera
