#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/scenario/rules/rules.h"
#include "tests/workloads/models.h"

namespace tessera {
namespace {

using Paths = std::vector<std::string>;

Paths paths_of(const Scenario& scenario) {
  Problems problems;
  check_host_update(scenario, problems);
  Paths paths;
  for (const Problem& problem : problems) paths.push_back(problem.where);
  return paths;
}

Scenario offloaded() {
  Scenario scenario;
  scenario.model = test::llama2_7b();
  scenario.step.offload_optimizer = true;
  scenario.step.formats.master_weights = true;
  scenario.cluster.node.host_memory_bandwidth = 200_GBps;
  scenario.cluster.node.gpu_count = 1;
  return scenario;
}

/// What the ranks of a node keep in host memory is more than `little` and no more than `enough`.
void expect_host_memory_between(Scenario scenario, Bytes little, Bytes enough) {
  scenario.cluster.node.host_memory = enough;
  EXPECT_EQ(paths_of(scenario), Paths{});
  scenario.cluster.node.host_memory = little;
  EXPECT_EQ(paths_of(scenario), Paths{"training.offload_optimizer"});
}

TEST(OffloadRules, TheTimeOfTheUpdateFollowsFromTheBandwidthOfHostMemory) {
  EXPECT_EQ(paths_of(offloaded()), Paths{});
  Scenario scenario = offloaded();
  scenario.cluster.node.host_memory_bandwidth = {};
  EXPECT_EQ(paths_of(scenario), Paths{"cluster.node.host_memory_bandwidth"});
}

TEST(OffloadRules, AnUnknownBandwidthIsRefusedWithTwoExamples) {
  Scenario scenario = offloaded();
  scenario.cluster.node.host_memory_bandwidth = {};
  Problems problems;
  check_host_update(scenario, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].hint.find("85 GB/s"), std::string::npos);
  EXPECT_NE(problems[0].hint.find("200 GB/s"), std::string::npos);
}

// 6.74 billion frozen parameters of 2 bytes are 12.6 GiB; adapters' states are little beside them.
TEST(OffloadRules, HostMemoryHoldsFrozenWeightsWithoutStates) {
  Scenario scenario = offloaded();
  scenario.step.lora_rank = 16;
  scenario.step.offload_parameters = true;
  scenario.step.data_parallel.sharding = Sharding::parameters;
  scenario.step.formats.parameters = Precision::bf16;
  expect_host_memory_between(scenario, 12_GiB, 13_GiB);
}

TEST(OffloadRules, HostMemoryHoldsStatesAndGradients) {
  // 6.74 billion parameters: master weight, two moments and a gradient of 4 bytes are 100.4 GiB.
  expect_host_memory_between(offloaded(), 100_GiB, 101_GiB);
}

TEST(OffloadRules, WhatTheCpuDoesNotUpdateIsRefused) {
  const auto refused = [](auto change) {
    Scenario scenario = offloaded();
    change(scenario);
    return paths_of(scenario) == Paths{"training.offload_optimizer"};
  };
  EXPECT_TRUE(refused([](Scenario& s) { s.step.optimizer = OptimizerKind::sgd; }));
  EXPECT_TRUE(refused([](Scenario& s) { s.step.layout.pipeline = 2; }));
  EXPECT_TRUE(refused([](Scenario& s) { s.step.layout.data = 2; }));  // states are not divided
  EXPECT_TRUE(refused([](Scenario& s) { s.memory.planner = MemoryPlanner::tessera; }));
  EXPECT_TRUE(refused([](Scenario& s) { s.step.mode = StepMode::inference; }));
}

TEST(OffloadRules, WeightsLiveWhereTheCpuUpdatesThem) {
  Scenario scenario = offloaded();
  scenario.step.offload_parameters = true;
  EXPECT_EQ(paths_of(scenario), Paths{"training.offload_parameters"});  // nothing is gathered
  scenario.step.data_parallel.sharding = Sharding::parameters;
  EXPECT_EQ(paths_of(scenario), Paths{});
  scenario.step.offload_optimizer = false;
  EXPECT_EQ(paths_of(scenario), Paths{"training.offload_parameters"});
}

TEST(OffloadRules, HostMemoryHoldsTheWeightsThatTravelBesideTheMasterWeights) {
  // As above, and 2 bytes more of each of 6.74 billion: 113.0 GiB.
  Scenario scenario = offloaded();
  scenario.step.offload_parameters = true;
  scenario.step.data_parallel.sharding = Sharding::parameters;
  scenario.step.formats.parameters = Precision::bf16;
  expect_host_memory_between(scenario, 112_GiB, 114_GiB);
}

}  // namespace
}  // namespace tessera
