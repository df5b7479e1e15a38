#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "lab/validate/runs/framework_aliases.h"
#include "tests/lab/validate/one_row.h"
#include "tests/lab/validate/shipped_rows.h"

namespace tessera {
namespace {

using test::shipped_configs;
using ::testing::HasSubstr;

ProfileChoice choice(const std::string& framework, const RunFacts& facts = {}) {
  return framework_aliases(shipped_configs()).choice_of(framework, facts, shipped_configs());
}

const RunFacts kBlackwell{.gpu = "B200-SXM-180GB", .architecture = Architecture::blackwell};

TEST(FrameworkRule, ANameStandsForOldCodeOnOldGpusAlone) {
  EXPECT_EQ(choice("Megatron-LM v2.0").profile, "megatron-deepspeed");
  EXPECT_EQ(choice("Megatron-LM v2.0").tuner, NcclTuner::v2_8);
  EXPECT_EQ(choice("Megatron-LM (SimuMax validation)", kBlackwell).profile, "megatron");
  EXPECT_EQ(choice("Megatron-LM (SimuMax validation)", kBlackwell).tuner, NcclTuner::current);
  EXPECT_EQ(choice("Megatron", kBlackwell).profile, "megatron");
}

TEST(FrameworkRule, FusedAttentionFp8AndTheYearAreNewerToo) {
  EXPECT_EQ(choice("Megatron-LM", {.flash_attention = true}).profile, "megatron");
  EXPECT_EQ(choice("Megatron-LM", {.fp8 = true}).profile, "megatron");
  EXPECT_EQ(choice("Megatron-LM", {.year = 2024}).profile, "megatron");
  EXPECT_EQ(choice("Megatron-LM", {.year = 2022}).profile, "megatron-deepspeed");
  EXPECT_EQ(choice("Megatron-DeepSpeed", {.flash_attention = true}).profile, "megatron-deepspeed");
}

TEST(FrameworkRule, WhatHasNoLaterProfileIsRefusedByName) {
  try {
    choice("Megatron-DeepSpeed", kBlackwell);
    FAIL() << "code of 2021 on a B200";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'Megatron-DeepSpeed' stands for megatron-deepspeed"));
    EXPECT_THAT(error.what(), HasSubstr("B200-SXM-180GB"));
  }
  EXPECT_THROW(choice("somebody's own"), InputError);
}

TEST(FrameworkRule, ProfilesAreMeantByTheirIds) {
  EXPECT_EQ(choice("megatron-deepspeed", kBlackwell).profile, "megatron-deepspeed");
  EXPECT_EQ(choice("").profile, "megatron-local");
}

TEST(FrameworkRule, NewerNamesHaveProfiles) {
  EXPECT_EQ(choice("Megatron-Bridge 25.09").profile, "megatron");
  EXPECT_EQ(choice("NeMo AutoModel").profile, "automodel");
  EXPECT_EQ(choice("InternEvo").profile, "internevo");
  EXPECT_EQ(choice("torchtune").profile, "torchtune");
}

TEST(FrameworkRule, YearsAreFourDigitsAlone) {
  EXPECT_EQ(year_in("Megatron-LM 2024"), 2024);
  EXPECT_EQ(year_in("OneFlow-GPT 2021-05"), 2021);
  EXPECT_EQ(year_in("NGC 20.12"), 0);
  EXPECT_EQ(year_in("v120240"), 0);
}

TEST(FrameworkRule, ARowOnABlackwellIsNoCodeOf2021) {
  const test::Fields changes{
      {"framework", "Megatron-LM"}, {"gpu", "B200-SXM-180GB"}, {"flash_attention", "1"}};
  const TrainingRun run = test::read_row(test::llama_row(changes)).runs.at(0);
  EXPECT_EQ(test::scenario_of(run).step.framework.name, "megatron");
}

TEST(FrameworkRule, AFileOfAliasesWithUnknownWordsIsRefused) {
  const auto file =
      test::planted("aliases.csv", "framework,profile,nccl,until,later\na,hf-eager,,yesterday,\n");
  EXPECT_THROW(FrameworkAliases{file}, InputError);
}

}  // namespace
}  // namespace tessera
