#include "sim/plan/host_costs.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

StepOptions step_with(const HostTable& host) {
  StepOptions step;
  step.framework.host_per_call = 5_us;
  step.framework.host_per_compiled_call = 4_us;
  step.framework.host_per_communication = 20_us;
  step.host = host;
  return step;
}

TEST(HostCosts, AreTheProfilesWhereNothingWasMeasured) {
  const HostCosts costs = host_costs(step_with({}));
  EXPECT_EQ(costs.per_call, 5_us);
  EXPECT_EQ(costs.per_communication, 20_us);
  EXPECT_EQ(costs.per_message, 20_us);
}

TEST(HostCosts, OfAMeasuredHostTakeTheProfilesPlace) {
  const HostTable host{.per_call = 8_us, .per_communication = 50_us, .per_message = 90_us};
  StepOptions step = step_with(host);
  EXPECT_EQ(host_costs(step).per_call, 8_us);
  EXPECT_EQ(host_costs(step).per_communication, 50_us);
  EXPECT_EQ(host_costs(step).per_message, 90_us);
  step.kernels = KernelMode::fused;
  EXPECT_EQ(host_costs(step).per_call, 4_us);  // no compiled launch was measured
}

TEST(HostCosts, AreMultipliedByTheFactorWhoeverGaveThem) {
  const HostCosts costs = host_costs(step_with({.factor = 2, .per_call = 8_us}));
  EXPECT_EQ(costs.per_call, 16_us);
  EXPECT_EQ(costs.per_communication, 40_us);
  EXPECT_EQ(costs.per_message, 40_us);
}

TEST(HostCosts, OfCollectivesAreNoneWhereTheStepIsOneGraph) {
  StepOptions step = step_with({.per_message = 90_us});
  step.framework.cuda_graphs = CudaGraphs::full_iteration;
  EXPECT_EQ(host_costs(step).per_communication, Seconds());
  EXPECT_EQ(host_costs(step).per_message, Seconds());
}

}  // namespace
}  // namespace tessera
