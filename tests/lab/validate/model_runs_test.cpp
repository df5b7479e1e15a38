#include "lab/validate/models/model_runs.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/config/files/csv.h"
#include "tests/hw/units/scratch.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::filesystem::path file_with(const std::string& text) {
  static const ScratchFolder folder;
  return folder.write("runs.csv", text);
}

std::string message_of(const std::filesystem::path& file) {
  try {
    read_model_runs(file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kHeader =
    "gpu,n_gpus,parallelism,micro_batches,model,mode,seq_len,batch,step_ms\n";

std::string under_header(const char* rows) {
  std::string text = kHeader;
  text += rows;
  return text;
}

TEST(Csv, TextThatIsNotUtf8IsRefusedWithItsLine) {
  try {
    read_csv(file_with("a,b\n1,2\nM\xFCnchen,3\n"));
    FAIL() << "Latin-1 was accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(".csv:3: is not valid UTF-8"));
  }
}

TEST(Csv, TheMarkOfSpreadsheetsIsNoPartOfAColumn) {
  EXPECT_TRUE(read_csv(file_with("\xEF\xBB\xBFgpu,b\n1,2\n")).column("gpu"));
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineBreaks) {
  const CsvTable table =
      read_csv(file_with("a,b\n\"1,2\",\"say \"\"x\"\"\"\n\"two\nlines\",3\n4,5\n"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.rows[0].fields, ElementsAre("1,2", "say \"x\""));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("two\nlines", "3"));
  EXPECT_EQ(table.rows[2].line, 5u);
}

TEST(Csv, FieldsSurviveTheRoundTrip) {
  for (const std::string text : {"plain", "a,b", "say \"x\"", "two\nlines", ""}) {
    const CsvTable table = read_csv(file_with("column,other\n" + csv_field(text) + ",x\n"));
    EXPECT_EQ(table.rows.at(0).fields[0], text);
  }
}

TEST(Csv, CarriageReturnsAndAMissingLastLineBreakAreAccepted) {
  const CsvTable table = read_csv(file_with("a,b\r\n1,2\r\n3,4"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[1].fields, ElementsAre("3", "4"));
}

TEST(ModelRuns, ReadsARowOfTheMeasurementFormat) {
  const auto runs = read_model_runs(
      file_with(under_header("H100-SXM5-80GB,4,tp2pp2,2,gpt2_large,training,1024,8,211.5\n")));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].layout.tensor, 2);
  EXPECT_EQ(runs[0].layout.pipeline, 2);
  EXPECT_EQ(runs[0].layout.data, 1);
  EXPECT_EQ(runs[0].micro_batches, 2);
  EXPECT_DOUBLE_EQ(runs[0].measured->value(), 0.2115);
  EXPECT_FALSE(runs[0].published_prediction);
}

TEST(ModelRuns, EveryBadFieldIsNamedWithItsLine) {
  const auto file =
      file_with(under_header("V100,1,single,1,gpt2,training,0,8,10\n"
                             "V100,1,xp4,1,gpt2,training,8,-3,ten\n"));
  const std::string message = message_of(file);
  EXPECT_THAT(message, HasSubstr(file.string() + ":2: seq_len = '0'"));
  EXPECT_THAT(message, HasSubstr(file.string() + ":3: batch = '-3'"));
  EXPECT_THAT(message, HasSubstr(file.string() + ":3: step_ms = 'ten'"));
  EXPECT_THAT(message, HasSubstr(file.string() + ":3: parallelism = 'xp4'"));
}

TEST(ModelRuns, AFileWithoutTheColumnsSaysWhichAreMissing) {
  const std::string message = message_of(file_with("gpu,model\nV100,gpt2\n"));
  EXPECT_THAT(message, HasSubstr("has no column n_gpus"));
  EXPECT_THAT(message, HasSubstr("has no column step_ms"));
}

TEST(ModelRuns, AShortRowIsRejectedWithItsLine) {
  const auto file = file_with(under_header("V100,1\n"));
  EXPECT_THAT(message_of(file), HasSubstr(file.string() + ":2: has 2 fields, the header names 9"));
}

TEST(ModelRuns, AMissingFileIsAnInputError) {
  EXPECT_THAT(message_of("no/such/file.csv"), HasSubstr("no/such/file.csv: cannot be read"));
}

TEST(ReadModelRuns, ABadRowEndsTheReadingOrHasAFault) {
  const auto file =
      file_with(under_header("T4,1,sideways,,gpt2,training,128,1,\n"
                             "T4,1,single,,gpt2,training,128,1,\n"));
  EXPECT_THROW(read_model_runs(file), InputError);
  const std::vector<ModelRun> runs = read_model_runs(file, BadRows::skip);
  EXPECT_THAT(runs.at(0).fault, HasSubstr("parallelism = 'sideways'"));
  EXPECT_EQ(runs.at(1).fault, "");
}

}  // namespace
}  // namespace tessera
