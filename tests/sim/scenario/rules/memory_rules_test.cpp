#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/scenario/rules/rules.h"

namespace tessera {
namespace {

std::vector<std::string> paths_of(const Scenario& scenario) {
  Problems problems;
  check_memory(scenario, problems);
  std::vector<std::string> paths;
  for (const Problem& problem : problems) paths.push_back(problem.where);
  return paths;
}

using Paths = std::vector<std::string>;

Scenario planned_by(MemoryPlanner planner) {
  Scenario scenario;
  scenario.memory.planner = planner;
  scenario.cluster.node.gpu_count = 8;
  scenario.cluster.node.host_memory_bandwidth = 200_GBps;
  return scenario;
}

TEST(MemoryRules, LayersAreForMegatronsPlanners) {
  for (const MemoryPlanner planner : {MemoryPlanner::off, MemoryPlanner::tessera}) {
    Scenario scenario = planned_by(planner);
    EXPECT_EQ(paths_of(scenario), Paths{});
    scenario.memory.layers = 2;
    EXPECT_EQ(paths_of(scenario), Paths{"memory.layers"});
  }
  Scenario scenario = planned_by(MemoryPlanner::megatron_block);
  scenario.memory.layers = 2;
  EXPECT_EQ(paths_of(scenario), Paths{});
}

TEST(MemoryRules, PressureComesOfALimitOrAPlan) {
  Scenario scenario;
  scenario.memory.pressure = PressurePolicy::dtr;
  EXPECT_EQ(paths_of(scenario), Paths{"memory.pressure"});
  scenario.memory.limit = 40_GiB;
  EXPECT_EQ(paths_of(scenario), Paths{});
  scenario = planned_by(MemoryPlanner::tessera);
  scenario.memory.pressure = PressurePolicy::dtr;
  EXPECT_EQ(paths_of(scenario), Paths{});
}

TEST(MemoryRules, TheCpuUpdatesAdamAtTheBandwidthOfItsMemory) {
  Scenario scenario = planned_by(MemoryPlanner::cpu_optimizer);
  EXPECT_EQ(paths_of(scenario), Paths{});
  scenario.cluster.node.host_memory_bandwidth = {};
  EXPECT_EQ(paths_of(scenario), Paths{"cluster.node.host_memory_bandwidth"});
  scenario = planned_by(MemoryPlanner::cpu_optimizer);
  scenario.step.optimizer = OptimizerKind::sgd;
  EXPECT_EQ(paths_of(scenario), Paths{"training.optimizer"});
}

TEST(MemoryRules, StatesInHostMemoryAreCopied) {
  Scenario scenario = planned_by(MemoryPlanner::optimizer_offload);
  scenario.memory.swap = false;
  EXPECT_EQ(paths_of(scenario), Paths{"memory.swap"});
}

TEST(MemoryRules, PlansAreMadeOfTrainingSteps) {
  Scenario scenario = planned_by(MemoryPlanner::tessera);
  scenario.step.mode = StepMode::inference;
  EXPECT_EQ(paths_of(scenario), Paths{"memory.planner"});
}

TEST(MemoryRules, WhatPlansMayDoNeedsAPlanOfSuchMeans) {
  for (const MemoryPlanner planner : {MemoryPlanner::off, MemoryPlanner::megatron_block}) {
    Scenario scenario = planned_by(planner);
    scenario.memory.packing = ActivationPacking::masks;
    scenario.memory.split_batch = 2;
    EXPECT_EQ(paths_of(scenario), (Paths{"memory.packing", "memory.split_batch"}));
  }
  Scenario scenario = planned_by(MemoryPlanner::tessera);
  scenario.memory.packing = ActivationPacking::masks;
  scenario.memory.split_batch = 2;
  EXPECT_EQ(paths_of(scenario), Paths{});
}

TEST(MemoryRules, StatesOffTheGpuAreCopiedAndDrivesAreThere) {
  Scenario scenario = planned_by(MemoryPlanner::tessera);
  scenario.memory.optimizer_states = OptimizerStates::on_host;
  EXPECT_EQ(paths_of(scenario), Paths{});
  scenario.memory.swap = false;
  EXPECT_EQ(paths_of(scenario), Paths{"memory.swap"});
  scenario.memory.swap = true;
  scenario.memory.optimizer_states = OptimizerStates::on_nvme;
  EXPECT_EQ(paths_of(scenario), Paths{"memory.optimizer_states"});
}

TEST(MemoryRules, APlanForAnotherStepIsOfRecomputationCopiesAndPacking) {
  Scenario scenario = planned_by(MemoryPlanner::tessera);
  scenario.memory.planned_sequence_length = 512;
  EXPECT_EQ(paths_of(scenario), Paths{});
  scenario.memory.split_batch = 2;
  EXPECT_EQ(paths_of(scenario), Paths{"memory.planned_sequence_length"});
  scenario = planned_by(MemoryPlanner::tessera);
  scenario.memory.planned_expert_imbalance = 0.5;
  EXPECT_EQ(paths_of(scenario), Paths{"memory.planned_expert_imbalance"});
}

}  // namespace
}  // namespace tessera
