#include "sim/report/step_energy.h"

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

/// 8 GPUs for 10 s: 4 s of products, 2 s of kernels that memory limits, 1 s of exposed
/// communication, nothing else.
StepReport report() {
  StepReport report;
  report.layout.data = 8;
  report.step_time = 10_s;
  report.kernel_kinds = {{KernelKind::gemm, Seconds(3), 1},
                         {KernelKind::attention, Seconds(1), 1},
                         {KernelKind::elementwise, Seconds(2), 1}};
  report.breakdown[TimeCategory::exposed_data] = 1_s;
  return report;
}

TEST(StepEnergy, IsTheSumOfWhatAGpuDoes) {
  const auto energy = step_energy(cluster(), report());
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
  const auto energy = step_energy(with_hosts, report());
  EXPECT_NEAR(energy->hosts_j, 2 * 1000 * 10, 1e-6);  // two nodes for 10 s
  EXPECT_NEAR(energy->facility_j, 1.2 * (8 * 2640 + 20'000), 1e-6);
}

TEST(StepEnergy, ACapLowersWhatWorkDraws) {
  ClusterSpec capped = cluster();
  capped.node.gpu.power_limit = Watts(250);
  const auto energy = step_energy(capped, report());
  // Full products would draw 0.88 x 250 = 220 W: 160 W above idle, in place of 340.
  EXPECT_NEAR(energy->mean_gpu.value(), 60 + 160 * 0.6, 0.01);
  EXPECT_LT(energy->clock, 1);
}

TEST(StepEnergy, IsNotKnownWithoutABoardPower) {
  ClusterSpec unknown = cluster();
  unknown.node.gpu.tdp = Watts(0);
  EXPECT_FALSE(step_energy(unknown, report()));
}

}  // namespace
}  // namespace tessera
