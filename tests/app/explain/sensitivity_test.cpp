#include "app/explain/sensitivity.h"

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/explain/explain_text.h"
#include "sim/config/load.h"
#include "sim/engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/process/forked_call.h"

namespace tessera {
namespace {

Scenario shipped(const std::string& name, const std::vector<std::string>& overrides = {}) {
  static const Catalog catalog(TESSERA_SOURCE_DIR "/configs");
  return load_scenario(std::string(TESSERA_SOURCE_DIR "/configs/scenarios/") + name + ".yaml",
                       overrides, catalog);
}

std::map<Resource, double> elasticities(const Scenario& scenario, double factor) {
  std::map<Resource, double> found;
  for (const Sensitivity& entry : sensitivities(scenario, {}, factor, 2))
    found[entry.resource] = entry.elasticity;
  return found;
}

double sum_of(const std::map<Resource, double>& elasticities) {
  return std::accumulate(elasticities.begin(), elasticities.end(), 0.0,
                         [](double sum, const auto& entry) { return sum + entry.second; });
}

Scenario roofline(Scenario scenario) {
  scenario.predictor_form = PredictorForm::roofline;
  return scenario;
}

const std::vector<std::string> kOneGpu{"parallelism.data=1", "training.global_batch=4",
                                       "training.micro_batch=4"};

TEST(Elasticity, IsOneWhereTheStepIsAsMuchFasterAsTheResource) {
  EXPECT_NEAR(elasticity_of(11_s, 10_s, 1.1), 1, 1e-12);
  EXPECT_EQ(elasticity_of(10_s, 10_s, 1.1), 0);
  EXPECT_NEAR(elasticity_of(10_s, 11_s, 1 / 1.1), 1, 1e-12) << "slower counts the same";
}

// Every kernel of the form roofline is flops / peak or bytes / bandwidth, so a step is homogeneous
// in the two and the host, whatever bounds it. A kernel that is nearer to balance than the step of
// the difference gains from neither in full.
TEST(Sensitivities, OfOneGpuAddUpToOne) {
  const auto found = elasticities(roofline(shipped("gpt2-large_4xh100_dp4", kOneGpu)), 1.0001);
  EXPECT_NEAR(sum_of(found), 1, 1e-4);
  EXPECT_FALSE(found.contains(Resource::nvlink)) << "one GPU has no links";
  EXPECT_GT(found.at(Resource::flops), 0.5);
  EXPECT_GT(found.at(Resource::memory_bandwidth), 0.02);
}

TEST(Sensitivities, AStepWithoutMemoryTimeFollowsTheArithmetic) {
  Scenario scenario = roofline(shipped("gpt2-large_4xh100_dp4", kOneGpu));
  scenario.cluster.node.gpu.memory_bandwidth = scenario.cluster.node.gpu.memory_bandwidth * 1e6;
  scenario = with_faster(scenario, Resource::host, 1e6);
  const auto found = elasticities(scenario, 1.1);
  EXPECT_NEAR(found.at(Resource::flops), 1, 1e-3);
  EXPECT_NEAR(found.at(Resource::memory_bandwidth), 0, 1e-3);
}

TEST(Sensitivities, AStepOfASlowHostFollowsTheHost) {
  const Scenario scenario =
      with_faster(roofline(shipped("gpt2-large_4xh100_dp4", kOneGpu)), Resource::host, 1e-3);
  const auto found = elasticities(scenario, 1.1);
  EXPECT_NEAR(found.at(Resource::host), 1, 0.01);
  EXPECT_NEAR(found.at(Resource::flops), 0, 0.01);
}

TEST(Sensitivities, LinksMatterWhereTheyAreSlow) {
  Scenario scenario = roofline(shipped("gpt2-large_4xh100_dp4"));
  scenario.cluster.node.nvlink_bandwidth_per_link =
      scenario.cluster.node.nvlink_bandwidth_per_link / 100;
  const auto found = elasticities(scenario, 1.1);
  EXPECT_GT(found.at(Resource::nvlink), 0.5);
  EXPECT_LT(found.at(Resource::flops), 0.4);
}

TEST(Sensitivities, FasterIsNeverSlower) {
  for (const char* name : {"gpt2-large_4xa100_tp4", "gpt3-xl_4xh100_pp4_1f1b"}) {
    for (const auto& [resource, elasticity] : elasticities(roofline(shipped(name)), 1.1))
      EXPECT_GE(elasticity, -1e-6) << name << " " << label_of(resource);
  }
}

TEST(Explanation, TextAndJsonSayTheSame) {
  const std::string outcome = run_forked([] {
    const Scenario scenario = roofline(shipped("gpt2-large_4xh100_dp4"));
    const TimedProgram timed = plan_step(scenario, {});
    StepExplanation explanation{.gpu = "H100", .gpus = 4};
    explanation.story = tell_step(timed, simulate(timed));
    explanation.provenance.scenario = "a name";
    explanation.sensitivities = {{Resource::flops, 1.1, 1_ms, 0.25}};
    return explanation_text(explanation) + '\0' + explanation_json(explanation);
  });
  const std::size_t split = outcome.find('\0');
  const std::string text = outcome.substr(0, split);
  const auto json = nlohmann::json::parse(outcome.substr(split + 1));
  EXPECT_EQ(json["schema"], "tessera.step_story/1");
  int ranks = 0;
  for (const auto& rank : json["ranks"]) ranks += rank["stands_for"].get<int>();
  EXPECT_EQ(ranks, 4) << "simulated, or done by one that was";
  double sum = 0;
  for (const auto& entry : json["ranks"].back()["classes"]) sum += entry["share"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(json["critical_path"]["pieces"].back()["end_s"], json["step_time_s"]);
  EXPECT_EQ(json["bound_by"], "compute");
  EXPECT_EQ(json["sensitivities"][0]["elasticity"], 0.25);
  EXPECT_THAT(text, ::testing::HasSubstr("bound by compute"));
  EXPECT_THAT(text, ::testing::HasSubstr("0-3")) << "ranks that are alike share a line";
}

}  // namespace
}  // namespace tessera
