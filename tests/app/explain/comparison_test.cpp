#include "app/explain/comparison.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

StepProfile simulated(double forward, double backward, double exposed) {
  return {.name = "run",
          .step_time_s = forward + backward + exposed + 1,
          .peak_memory_bytes = 2e9,
          .setup = {{"gpu", "H100"}, {"tensor", "1"}},
          .phases = {{"forward", forward},
                     {"loss", 0.5},
                     {"backward", backward},
                     {"exposed_data", exposed},
                     {"bubble", 0.25},
                     {"host", 0.25}},
          .classes = {{"gemm", 3}, {"batched_gemm", 1}, {"copy", 0.5}}};
}

double of(const std::vector<ComparedTime>& rows, const std::string& name, bool second) {
  const auto found = std::ranges::find(rows, name, &ComparedTime::name);
  return found == rows.end() ? -1 : (second ? found->b : found->a).value_or(-1);
}

double sum_of_differences(const std::vector<ComparedTime>& rows) {
  return std::accumulate(rows.begin(), rows.end(), 0.0, [](double sum, const ComparedTime& row) {
    return sum + row.difference();
  });
}

TEST(CompareSteps, DifferencesOfPhasesAddUpToThatOfTheSteps) {
  StepProfile b = simulated(3, 2, 1);
  b.setup[1].second = "4";
  const StepComparison comparison = compare_steps(simulated(2, 2, 0), b);
  EXPECT_NEAR(sum_of_differences(comparison.phases), 7 - 5, 1e-12);
  EXPECT_NEAR(comparison.difference_pct, 40, 1e-9);
  ASSERT_EQ(comparison.setup.size(), 1u);
  EXPECT_EQ(comparison.setup[0].name, "tensor");
  EXPECT_THAT(comparison_text(comparison), HasSubstr("1 -> 4"));
}

TEST(CompareSteps, AStepWithItselfDiffersInNothing) {
  const StepComparison comparison = compare_steps(simulated(2, 2, 1), simulated(2, 2, 1));
  for (const ComparedTime& row : comparison.phases) EXPECT_EQ(row.difference(), 0) << row.name;
  EXPECT_TRUE(comparison.setup.empty());
  EXPECT_EQ(comparison.difference_pct, 0);
}

TraceKernel kernel(double start, double end, TraceOpClass op_class, TracePhase phase) {
  return {Seconds(start), Seconds(end), op_class, phase};
}

// Two steps in 20 s: forward 0-4, backward 4-9 beside NCCL 6-12, of which 9-12 is exposed, and an
// optimizer kernel 14-15 that a second stream's kernel overlaps.
KinetoTrace sample_trace() {
  return {.kernels = {kernel(0, 4, TraceOpClass::product, TracePhase::forward),
                      kernel(4, 9, TraceOpClass::product, TracePhase::backward),
                      kernel(6, 12, TraceOpClass::communication, TracePhase::backward),
                      kernel(14, 15, TraceOpClass::multi_tensor, TracePhase::optimizer),
                      kernel(14.5, 16, TraceOpClass::elementwise, TracePhase::optimizer)},
          .steps = 2,
          .window = 20_s};
}

TEST(ProfileOfTrace, EveryInstantIsInOnePhase) {
  const StepProfile profile = profile_of_trace(sample_trace(), "trace.json");
  EXPECT_EQ(profile.step_time_s, 10);
  const StepComparison self = compare_steps(profile, profile);
  EXPECT_EQ(of(self.phases, "forward", false), 2);
  EXPECT_EQ(of(self.phases, "backward", false), 2.5);
  EXPECT_EQ(of(self.phases, "optimizer", false), 1);
  EXPECT_EQ(of(self.phases, "communication", false), 1.5);
  EXPECT_EQ(of(self.phases, "idle", false), (2 + 4) / 2.0);
  EXPECT_EQ(of(self.classes, "communication", false), 3) << "hidden or not";
  EXPECT_EQ(of(self.classes, "product", false), 4.5);
}

TEST(CompareSteps, WithATraceBothAreInItsTerms) {
  const StepComparison comparison =
      compare_steps(simulated(2, 2, 1), profile_of_trace(sample_trace(), "trace.json"));
  EXPECT_EQ(of(comparison.phases, "forward", false), 2.5) << "with the loss";
  EXPECT_EQ(of(comparison.phases, "communication", false), 1);
  EXPECT_EQ(of(comparison.phases, "idle", false), 0.5);
  EXPECT_EQ(of(comparison.classes, "product", false), 4);
  EXPECT_EQ(of(comparison.classes, "elementwise", false), 0.5);
  EXPECT_NEAR(sum_of_differences(comparison.phases), 10 - 6, 1e-12);
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  EXPECT_EQ(json["schema"], "tessera.comparison/1");
  EXPECT_EQ(json["b"]["kind"], "trace");
  EXPECT_TRUE(json["b"]["peak_memory_bytes"].is_null());
}

TEST(ProfileOfResult, RefusesWhatIsNone) {
  for (const char* text : {"", "{}", "[1]", R"({"schema": "other/1"})",
                           R"({"schema": "tessera.result/1", "scenario": 5})"})
    EXPECT_THROW(profile_of_result(text, "x.json"), InputError) << text;
}

}  // namespace
}  // namespace tessera
