#include "sim/report/step_energy.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sim/report/step_report.h"

namespace tessera {
namespace {

/// Two nodes of four GPUs of 400 W, 60 W of them idle (0.15).
ClusterSpec cluster() {
  ClusterSpec spec;
  spec.node_count = 2;
  spec.node.gpu_count = 4;
  spec.node.gpu.tdp = Watts(400);
  return spec;
}

StepReport report() {
  StepReport report;
  report.layout.data = 8;
  report.step_time = 10_s;
  report.folding.representative.assign(8, 0);
  return report;
}

/// One GPU for all 8: busy for `seconds` of the 10, all in the first slices.
std::vector<GpuWork> work(double seconds, const ClusterSpec& spec) {
  GpuWork of{.rank = 0, .gpu = spec.node.gpu, .slices = std::vector<double>(kPowerSlices)};
  const double slice = 10.0 / kPowerSlices;
  for (double& each : of.slices) {
    each = std::clamp(seconds, 0.0, slice);
    seconds -= each;
  }
  return {of};
}

/// 4 s of products, 2 s of kernels that memory limits, 1 s of exposed communication.
constexpr double kBusy = 4 + 0.85 * 2 + 0.3 * 1;

TEST(StepEnergy, IsTheSumOfWhatAGpuDoes) {
  const auto energy = step_energy(cluster(), report(), work(kBusy, cluster()));
  ASSERT_TRUE(energy);
  // 60 W x 10 s + 340 W x (4 s + 0.85 x 2 s + 0.3 x 1 s) = 2640 J
  EXPECT_NEAR(energy->mean_gpu.value(), 264, 1e-9);
  EXPECT_NEAR(energy->gpus_j, 8 * 2640, 1e-6);
  EXPECT_EQ(energy->hosts_j, 0);
  EXPECT_NEAR(energy->facility_j, 8 * 2640, 1e-6);
}

TEST(StepEnergy, HostsAndTheSiteComeOnTop) {
  ClusterSpec with_hosts = cluster();
  with_hosts.node.host_power = Watts(1000);
  with_hosts.pue = 1.2;
  const auto energy = step_energy(with_hosts, report(), work(kBusy, with_hosts));
  EXPECT_NEAR(energy->hosts_j, 2 * 1000 * 10, 1e-6);  // two nodes for 10 s
  EXPECT_NEAR(energy->facility_j, 1.2 * (8 * 2640 + 20'000), 1e-6);
}

TEST(StepEnergy, ACapLowersWhatWorkDraws) {
  ClusterSpec capped = cluster();
  capped.node.gpu.power_limit = Watts(250);
  const auto energy = step_energy(capped, report(), work(kBusy, capped));
  // Full products would draw 0.88 x 250 = 220 W: 160 W above idle, in place of 340.
  EXPECT_NEAR(energy->mean_gpu.value(), 60 + 160 * 0.6, 0.01);
  EXPECT_LT(energy->clock, 1);
}

TEST(StepEnergy, NodesAndRacksDrawWhatTheirGpusAndHostsDo) {
  ClusterSpec racks = cluster();
  racks.node.host_power = Watts(1000);
  racks.nodes_per_rack = 2;
  const auto energy = step_energy(racks, report(), work(kBusy, racks));
  EXPECT_NEAR(energy->node_mean.value(), 4 * 264 + 1000, 1e-6);
  EXPECT_NEAR(energy->node_peak.value(), 4 * 400 + 1000, 1e-6);  // all busy at once
  EXPECT_NEAR(energy->rack_mean.value(), 2 * (4 * 264 + 1000), 1e-6);
  EXPECT_NEAR(energy->rack_peak.value(), 2 * (4 * 400 + 1000), 1e-6);
  EXPECT_EQ(step_energy(cluster(), report(), work(kBusy, cluster()))->rack_mean.value(), 0);
}

TEST(StepEnergy, PeaksOfGpusThatTakeTurnsDoNotAdd) {
  StepReport turns = report();
  turns.layout.data = 2;
  turns.folding.representative = {0, 1};
  ClusterSpec pair = cluster();
  pair.node.gpu_count = 2;
  std::vector<GpuWork> both = work(5, pair);
  both.push_back(both.front());
  both[1].rank = 1;
  std::ranges::reverse(both[1].slices);  // busy in the other half
  const auto energy = step_energy(pair, turns, both);
  EXPECT_NEAR(energy->node_peak.value(), 400 + 60, 1e-6);
  EXPECT_NEAR(energy->node_mean.value(), 400 + 60, 1e-6);
}

TEST(StepEnergy, EveryGpuDrawsWhatItsOwnKindDoes) {
  StepReport islands = report();
  islands.folding.representative = {0, 0, 0, 0, 4, 4, 4, 4};
  std::vector<GpuWork> both = work(10, cluster());
  both.push_back(both.front());
  both[1].rank = 4;
  both[1].gpu.tdp = Watts(700);
  const auto energy = step_energy(cluster(), islands, both);
  EXPECT_NEAR(energy->gpus_j, 4 * (400 + 700) * 10, 1e-6);  // all busy all the time
  EXPECT_NEAR(energy->idle.value(), 4 * 0.15 * (400 + 700), 1e-9);
  EXPECT_NEAR(energy->node_peak.value(), 4 * 700, 1e-6);
  EXPECT_NEAR(energy->node_mean.value(), 4 * (400 + 700) / 2.0, 1e-6);
  both[1].gpu.tdp = Watts(0);
  EXPECT_FALSE(step_energy(cluster(), islands, both));
}

TEST(StepEnergy, SwitchesAndGpusThatTheJobLeavesIdle) {
  ClusterSpec large = cluster();
  large.node.gpu_count = 16;
  large.switch_power = Watts(200);
  const auto energy = step_energy(large, report(), work(kBusy, large));
  EXPECT_NEAR(energy->switches_j, 200 * 10 / 2.0, 1e-6);                 // half a node
  EXPECT_NEAR(energy->node_mean.value(), 8 * 264 + 8 * 60, 1e-6);        // the node has 8 more
  EXPECT_NEAR(energy->facility_j, 8 * 2640 + energy->switches_j, 1e-6);  // not the job's
}

TEST(StepEnergy, IsNotKnownWithoutABoardPower) {
  ClusterSpec unknown = cluster();
  unknown.node.gpu.tdp = Watts(0);
  EXPECT_FALSE(step_energy(unknown, report(), work(kBusy, unknown)));
}

}  // namespace
}  // namespace tessera
