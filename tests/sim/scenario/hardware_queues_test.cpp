#include "sim/scenario/hardware_queues.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

GpuSpec gpu_of(Architecture architecture) {
  GpuSpec gpu;
  gpu.architecture = architecture;
  return gpu;
}

StepOptions with_connections(int connections) {
  StepOptions step;
  step.framework.cuda_device_max_connections = connections;
  return step;
}

TEST(HardwareQueues, AreOneWhereTheProfileSaysSoWhateverTheGpu) {
  EXPECT_TRUE(single_hardware_queue(with_connections(1), gpu_of(Architecture::blackwell)));
  EXPECT_FALSE(single_hardware_queue(with_connections(8), gpu_of(Architecture::hopper)));
}

TEST(HardwareQueues, AreOneForMegatronBeforeBlackwellAlone) {
  for (const Architecture one : {Architecture::ampere, Architecture::hopper, Architecture::cdna3})
    EXPECT_TRUE(single_hardware_queue(with_connections(0), gpu_of(one)));
  for (const Architecture many : {Architecture::blackwell, Architecture::blackwell_ultra})
    EXPECT_FALSE(single_hardware_queue(with_connections(0), gpu_of(many)));
}

TEST(HardwareQueues, AreSeveralForMegatronWhereLayersGatherTheirWeights) {
  StepOptions step = with_connections(0);
  step.data_parallel.sharding = Sharding::parameters;
  EXPECT_FALSE(single_hardware_queue(step, gpu_of(Architecture::hopper)));
  step.data_parallel.sharding = Sharding::optimizer;
  EXPECT_TRUE(single_hardware_queue(step, gpu_of(Architecture::hopper)));
}

}  // namespace
}  // namespace tessera
