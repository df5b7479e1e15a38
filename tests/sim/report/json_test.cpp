#include "sim/report/json.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hw/units/scratch.h"
#include "tests/sim/report/json_schema_check.h"
#include "tests/sim/report/sample_report.h"

namespace tessera {
namespace {

using namespace tessera::testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kSchemaFile = TESSERA_SOURCE_DIR "/configs/schema/result.schema.json";

json schema() {
  std::ifstream file(kSchemaFile);
  return json::parse(file);
}

std::string sample_text() {
  return json_text(sample_report(), sample_provenance());
}

TEST(Json, HoldsTheFiguresOfTheReport) {
  const json result = json::parse(sample_text());
  EXPECT_EQ(result["schema"], "tessera.result/1");
  EXPECT_EQ(result["scenario"], "sample");
  EXPECT_EQ(result["step_time_s"], 6.0);
  EXPECT_EQ(result["tokens_per_s"], 100.0);
  EXPECT_EQ(result["tokens_per_s_per_gpu"], 50.0);
  EXPECT_EQ(result["mfu"], 0.25);
  EXPECT_EQ(result["hfu"], 0.3);
  EXPECT_EQ(result["bubble_fraction"], 0.5);
  EXPECT_EQ(result["exposed_communication_s"], 0.0);
  EXPECT_EQ(result["memory"]["peak_bytes"], 70);
  EXPECT_EQ(result["memory"]["fits"], true);
  EXPECT_EQ(result["memory"]["allocated_bytes"], 70);
  EXPECT_EQ(result["memory"]["reserved_bytes"], 70);
  EXPECT_EQ(result["memory"]["context_bytes"], 0);
  EXPECT_EQ(result["memory"]["nccl_bytes"], 0);
  EXPECT_EQ(result["memory"]["device_bytes"], 70);
  EXPECT_EQ(result["memory"]["per_rank"][1]["headroom_bytes"], 40);
  EXPECT_EQ(result["provenance"]["gpu"], "G100");
  EXPECT_EQ(result["predictor"]["form"], "roofline");
  EXPECT_EQ(result["predictor"]["mode"], "zero-shot");
  EXPECT_EQ(result["predictor"]["effect"], "architecture figures alone");
  EXPECT_TRUE(result["predictor"]["notes"].empty());
}

TEST(Json, BreakdownAddsUpToTheStep) {
  const json result = json::parse(sample_text());
  double seconds = 0;
  double share = 0;
  for (const json& entry : result["breakdown"]) {
    seconds += entry["seconds"].get<double>();
    share += entry["share"].get<double>();
  }
  EXPECT_DOUBLE_EQ(seconds, result["step_time_s"].get<double>());
  EXPECT_DOUBLE_EQ(share, 1.0);
}

TEST(Json, KeepsTheOrderOfItsKeys) {
  const auto result = nlohmann::ordered_json::parse(sample_text());
  std::vector<std::string> keys;
  for (const auto& [key, value] : result.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("schema", "scenario", "approximations", "step_time_s",
                                "step_time_interval", "tokens_per_s", "tokens_per_s_per_gpu",
                                "samples_per_s", "mfu", "hfu", "counted_flops", "bubble_fraction",
                                "exposed_communication_s", "exposed_copies_s", "breakdown",
                                "kernel_kinds", "segments", "extrapolated_share", "extrapolated",
                                "parameters", "notes", "memory", "energy", "straggler", "folding",
                                "predictor", "provenance", "definitions"));
}

TEST(Json, EqualReportsGiveEqualBytes) {
  EXPECT_EQ(sample_text(), sample_text());
}

TEST(Json, HoldsWallClockTimesOnlyOnRequest) {
  EXPECT_THAT(sample_text(), Not(HasSubstr("timing_s")));
  const RunTiming timing{{"plan", 0.125_s}, {"simulate", 0.25_s}};
  const json result = json::parse(json_text(sample_report(), sample_provenance(), timing));
  EXPECT_EQ(result["timing_s"]["simulate"], 0.25);
  EXPECT_THAT(schema_violations(schema(), schema(), result), IsEmpty());
}

TEST(Json, SaysWhereTheScenarioIsNotTheJob) {
  Provenance provenance = sample_provenance();
  provenance.approximations = {"one", "another"};
  const json result = json::parse(json_text(sample_report(), provenance, {}));
  EXPECT_THAT(result["approximations"], ElementsAre("one", "another"));
  EXPECT_THAT(schema_violations(schema(), schema(), result), IsEmpty());
}

TEST(Json, HostileNamesStayOneString) {
  Provenance provenance = sample_provenance();
  provenance.scenario = "a\"b\\c\n\x01\xff";
  const json result = json::parse(json_text(sample_report(), provenance));
  EXPECT_EQ(result["scenario"], "a\"b\\c\n\x01\xef\xbf\xbd");
}

TEST(JsonSchema, AcceptsAResult) {
  EXPECT_THAT(schema_violations(schema(), schema(), json::parse(sample_text())), IsEmpty());
}

TEST(JsonSchema, AcceptsAResultWithoutPublishedPeak) {
  StepReport report = sample_report();
  report.mfu.reset();
  report.hfu.reset();
  const json result = json::parse(json_text(report, sample_provenance()));
  EXPECT_TRUE(result["mfu"].is_null());
  EXPECT_THAT(schema_violations(schema(), schema(), result), IsEmpty());
}

TEST(JsonSchema, RejectsWhatIsMissingUnknownOrOfAnotherType) {
  json result = json::parse(sample_text());
  result.erase("mfu");
  result["memory"]["fits"] = "yes";
  result["breakdown"]["bubble"]["share"] = -0.5;
  result["surprise"] = 1;
  EXPECT_THAT(schema_violations(schema(), schema(), result),
              ::testing::UnorderedElementsAre("$ lacks mfu", "$.memory.fits is a string",
                                              "$.breakdown.bubble.share low",
                                              "$ has unknown key surprise"));
}

TEST(JsonSchema, AcceptsAResultByPythonsJsonschema) {
  const std::string python = "python3 -c 'import jsonschema' 2>/dev/null";
  if (std::system(python.c_str()) != 0) GTEST_SKIP() << "python3-jsonschema is not installed";
  const ScratchFolder folder;
  const auto file = folder.write("result.json", sample_text());
  const std::string check =
      "python3 -c 'import json, sys, jsonschema\n"
      "schema = json.load(open(sys.argv[1]))\n"
      "jsonschema.Draft7Validator.check_schema(schema)\n"
      "jsonschema.validate(json.load(open(sys.argv[2])), schema)' '" +
      std::string(kSchemaFile) + "' '" + file.string() + "'";
  EXPECT_EQ(std::system(check.c_str()), 0);
}

}  // namespace
}  // namespace tessera
