#include "app/search/search_answer.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A layout of `seconds` on a GPU of that price; no price: 0.
SearchCase case_of(const std::string& gpu, double seconds, double price) {
  SearchCase of{.model = "gpt2", .cluster = "of-" + gpu, .gpu = gpu, .gpus = 1};
  of.tokens_per_step = 1000;
  of.economy = {.dollars_per_gpu_hour = price, .power = Watts(0)};
  of.found.fitting.push_back({.layout = {}, .step_time = Seconds(seconds), .tokens_per_s = 1});
  return of;
}

const SearchQuestion kMoney{.objective = SearchObjective::tokens_per_dollar};

TEST(SearchAnswer, SaysWhichLayoutsFitWithinTheErrorAlone) {
  SearchCase of = case_of("A", 1, 2);
  of.gpu_memory = Bytes(80LL << 30);
  of.memory_high = 1.25;  // 64 GiB and more may be 80
  LayoutResult& layout = of.found.fitting.front();
  layout.memory.allocated = layout.memory.reserved = Bytes(64LL << 30);
  EXPECT_FALSE(fits_within_error(of, layout));
  EXPECT_THAT(search_text({}, {of}, 1), Not(HasSubstr("within the error")));
  layout.memory.allocated = layout.memory.reserved = Bytes(65LL << 30);
  EXPECT_TRUE(fits_within_error(of, layout));
  EXPECT_THAT(search_text({}, {of}, 1), HasSubstr("fit within the error alone: 1; "));
  of.memory_basis = "judged";
  EXPECT_THAT(search_text({}, {of}, 1), HasSubstr("reaches 1.25 times the simulated (judged)"));
  EXPECT_THAT(search_text({}, {of}, 1), HasSubstr("cluster.node.gpu.memory=64.0GiB"));
  EXPECT_THAT(search_text({}, {of, of}, 1), HasSubstr(": fit within the error alone: 1; "));
  EXPECT_THAT(search_json({}, {of}, 1), HasSubstr("\"within_error\": true"));
}

TEST(SearchAnswer, CasesWithoutAPriceArePassedOverAndListed) {
  const std::vector<SearchCase> cases = {case_of("A", 1, 0), case_of("B", 2, 3)};
  EXPECT_EQ(best_case(kMoney, cases), 1U);
  EXPECT_EQ(best_case({}, cases), 0U);
  EXPECT_THAT(search_text(kMoney, cases, 1),
              HasSubstr("no price is known of A of of-A: --price A"));
  const auto json = nlohmann::json::parse(search_json(kMoney, cases, 1));
  EXPECT_EQ(json["unpriced"], nlohmann::json::parse(R"([{"cluster": "of-A", "gpu": "A"}])"));
  EXPECT_TRUE(json["cases"][0]["dollars_per_gpu_hour"].is_null());
  EXPECT_EQ(json["cases"][1]["dollars_per_gpu_hour"], 3);
}

TEST(SearchAnswer, AQuestionThatNoPriceAnswersIsRefusedBeforehand) {
  const std::vector<SearchCase> cases = {case_of("A", 1, 0), case_of("B", 2, 0)};
  try {
    check_comparable(kMoney, cases);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().front().what, "is not known of A, B");
  }
  EXPECT_NO_THROW(check_comparable({}, cases));
  EXPECT_NO_THROW(check_comparable(kMoney, {cases[0], case_of("C", 1, 1)}));
  EXPECT_THROW(check_comparable({.objective = SearchObjective::energy}, cases), InputError);
}

TEST(SearchAnswer, WhatIsNotProvenSaysSo) {
  SearchCase of = case_of("A", 2, 1);
  EXPECT_THAT(search_text({}, {of}, 1), HasSubstr("the first 1 is the fastest of all"));
  of.found.end = SearchEnd::interrupted;
  of.found.open_bound = Seconds(1.5);
  EXPECT_THAT(search_text({}, {of}, 1),
              HasSubstr("unproven, the search was interrupted: a layout without an answer may take "
                        "1.50 s, the lowest bound still open"));
  EXPECT_THAT(search_text({}, {of}, 1), Not(HasSubstr("the fastest of all")));
  const auto json = nlohmann::json::parse(search_json({}, {of, case_of("B", 3, 1)}, 1));
  EXPECT_EQ(json["proven"], false);
  EXPECT_EQ(json["cases"][0]["proven"], false);
  EXPECT_EQ(json["cases"][0]["proven_layouts"], 0);
  EXPECT_EQ(json["cases"][0]["ended"], "interrupted");
  EXPECT_EQ(json["cases"][0]["open_lower_bound_s"], 1.5);
  EXPECT_EQ(json["cases"][1]["proven"], true);
  EXPECT_TRUE(json["cases"][1]["open_lower_bound_s"].is_null());
  // What is open is slower than the one that was found (2 s): that one is the fastest.
  of.found.open_bound = Seconds(2.5);
  EXPECT_THAT(search_text({}, {of}, 5),
              HasSubstr("the first 1 is the fastest of all layouts that fit; behind that unproven, "
                        "the search was interrupted"));
  EXPECT_EQ(nlohmann::json::parse(search_json({}, {of}, 5))["cases"][0]["proven_layouts"], 1);
  of.found.fitting.clear();
  of.found.open_bound = Seconds(0);
  EXPECT_THAT(search_text({}, {of}, 1), HasSubstr("not every layout has a lower bound yet"));
  EXPECT_THAT(search_text({}, {of}, 1), Not(HasSubstr("no layout fits")));
}

TEST(SearchAnswer, WhereNothingFitsTheSmallestSaysWhatItLacks) {
  SearchCase of = case_of("A", 2, 1);
  of.gpu_memory = Bytes(24) * (std::int64_t{1} << 30);
  of.found.fitting.clear();
  of.found.smallest_too_large = {.layout = {.tensor = 4},
                                 .memory = Bytes(30) * (std::int64_t{1} << 30)};
  EXPECT_THAT(search_text({}, {of}, 1), HasSubstr("no layout fits: the smallest, tp 4"));
  EXPECT_THAT(search_text({}, {of}, 1), HasSubstr("needs at least 30.0 GiB of 24.0 GiB"));
  const auto json = nlohmann::json::parse(search_json({}, {of}, 1))["cases"][0];
  EXPECT_EQ(json["smallest_too_large"]["memory_bytes"], 30LL << 30);
}

}  // namespace
}  // namespace tessera
