#include "lab/validate/corrections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "tests/lab/validate/one_row.h"
#include "tests/lab/validate/shipped_rows.h"

namespace tessera {
namespace {

using test::csv_of;
using test::llama_row;
using test::planted;
using ::testing::HasSubstr;

constexpr const char* kHeader = "id,column,value,reason\n";

std::string refusal(const std::string& corrections) {
  const auto file = planted("runs.csv", csv_of(llama_row()));
  planted("runs_corrections.csv", kHeader + corrections);
  try {
    read_training_runs(file, test::shipped_rules());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Corrections, BesideAFileAreApplied) {
  const auto file = planted("runs.csv", csv_of(llama_row()));
  planted("runs_corrections.csv",
          kHeader + std::string("a,step_time_s,,no test\na,recompute,full,\n"));
  EXPECT_THROW(read_training_runs(file, test::shipped_rules()), InputError)
      << "the file has no column recompute";
  planted("runs_corrections.csv", kHeader + std::string("a,step_time_s,,no test\na,layers,8,\n"));
  const TrainingRuns runs = read_training_runs(file, test::shipped_rules());
  EXPECT_FALSE(runs.runs.at(0).step_time) << "taken out";
  EXPECT_EQ(runs.runs.at(0).layers, 8);
  ASSERT_EQ(runs.corrections.fields.size(), 2u);
  EXPECT_EQ(runs.corrections.fields[0].before, "0.1");
  EXPECT_EQ(runs.corrections.fields[0].reason, "no test");
}

TEST(Corrections, CanBeNamedOrLeftOut) {
  const auto file = planted("runs.csv", csv_of(llama_row()));
  planted("runs_corrections.csv", kHeader + std::string("a,layers,8,\n"));
  const auto other = planted("other.csv", kHeader + std::string("a,layers,12,\n"));
  EXPECT_EQ(
      read_training_runs(file, test::shipped_rules(), {.corrections = other}).runs.at(0).layers,
      12);
  EXPECT_EQ(read_training_runs(file, test::shipped_rules(), TrainingRunReading{.correct = false})
                .runs.at(0)
                .layers,
            4);
}

TEST(Corrections, OfRowsAndColumnsThatAreNotThereAreRefused) {
  EXPECT_THAT(refusal("b,layers,8,\n"), HasSubstr("runs_corrections.csv:2: id = 'b'"));
  EXPECT_THAT(refusal("a,colour,8,\n"), HasSubstr("column = 'colour'"));
}

}  // namespace
}  // namespace tessera
