#include "lab/validate/runs/row_rules.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/lab/validate/one_row.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kColumns =
    "column,kind,path,words,hint\nprecision,word,training.precision,bf16|half>fp16,\nnotes,text,,,"
    "\n";

RowRules rules(const std::string& lines, const std::string& columns = kColumns) {
  test::planted("columns.csv", columns);
  return RowRules(test::planted("rules.csv", "when,then\n" + lines).parent_path());
}

TEST(RowRules, FillInWhatTheRowDoesNotState) {
  const RowRules read = rules("notes~compile,kernels=fused\nnotes=,notes=none\n");
  EXPECT_EQ(read.meaning_of({{"notes", "torch.compile"}}).fields.at("kernels"), "fused");
  EXPECT_EQ(read.meaning_of({{"notes", "compile"}, {"kernels", "own"}}).fields.at("kernels"),
            "own");
  EXPECT_FALSE(read.meaning_of({{"notes", "x"}}).fields.contains("kernels"));
  EXPECT_EQ(read.meaning_of({}).fields.at("notes"), "none") << "= without a value: not stated";
}

TEST(RowRules, TheFirstThatAppliesWins) {
  const RowRules read = rules("model^GPT,model.family=gpt2\nmodel!=,model.family=llama\n");
  EXPECT_THAT(read.meaning_of({{"model", "GPT-3"}}).settings, ElementsAre("model.family=gpt2"));
  EXPECT_THAT(read.meaning_of({{"model", "my GPT"}}).settings, ElementsAre("model.family=llama"));
  EXPECT_THAT(read.meaning_of({}).settings, ElementsAre());
}

TEST(RowRules, ConditionsHoldTogetherAndSeeWhatEarlierRulesFilledIn) {
  const RowRules read =
      rules("a=1|2 & b!~x,c=3\nc=3,path.of=4 & approximate=c is {c}\nc=3,not_simulated=with {a}\n");
  const RowMeaning found = read.meaning_of({{"a", "2"}, {"b", "why"}});
  EXPECT_THAT(found.settings, ElementsAre("path.of=4"));
  EXPECT_THAT(found.approximations, ElementsAre("c is 3"));
  EXPECT_EQ(found.obstacle, "with 2");
  EXPECT_EQ(read.meaning_of({{"a", "2"}, {"b", "x"}}).obstacle, "");
}

TEST(RowRules, WordsOfAColumnBecomeThoseOfTheField) {
  const RowColumn column = rules("").columns().at(0);
  EXPECT_EQ(*column.word_of("half"), "fp16");
  EXPECT_EQ(*column.word_of("bf16"), "bf16");
  EXPECT_EQ(column.word_of("fp16"), nullptr);
}

TEST(RowRules, FilesThatCannotBeReadAreRefusedWithTheLine) {
  const auto refusal = [](const std::string& lines, const std::string& columns = kColumns) {
    try {
      rules(lines, columns);
      return std::string("no error");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refusal("notes,a=1\n"), HasSubstr("rules.csv:2: when = 'notes'"));
  EXPECT_THAT(refusal("notes=x,a\n"), HasSubstr("then = 'a'"));
  EXPECT_THAT(refusal("", std::string(kColumns) + "notes,text,,,\nnew,number of,,,\n"),
              ::testing::AllOf(HasSubstr("column = 'notes'"), HasSubstr("kind = 'number of'")));
}

/// Every path of the shipped files is a field: the loader refuses what it does not know.
TEST(RowRules, TheShippedOnesNameFieldsOfScenarios) {
  for (const RowColumn& column : test::shipped_rules().columns()) {
    if (column.kind != RowColumn::Kind::word || column.path.empty()) continue;
    for (const auto& [word, value] : column.words) EXPECT_NE(value, "") << column.name << word;
  }
  test::Fields all = test::llama_row();
  for (const RowColumn& column : test::shipped_rules().columns()) {
    if (column.kind == RowColumn::Kind::flag) all.emplace(column.name, "0");
  }
  all["gated_mlp"] = "1";
  EXPECT_NO_THROW(test::scenario_of(test::read_row(all).runs.at(0)));
}

}  // namespace
}  // namespace tessera
