#include "sim/plan/device_load.h"

namespace tessera {

DeviceLoad load_of(const CollectiveCost& cost, const GpuSpec& gpu) {
  if (gpu.sm_count <= 0 || cost.solo_time.value() <= 0) return {};
  const double traffic = cost.gpu.memory_bytes / cost.solo_time.value();
  return {
      .multiprocessors = static_cast<double>(cost.gpu.multiprocessors) / gpu.sm_count,
      .bandwidth = gpu.memory_bandwidth.value() > 0 ? traffic / gpu.memory_bandwidth.value() : 0};
}

}  // namespace tessera
