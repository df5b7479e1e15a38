#include "sim/report/step_energy.h"

#include <algorithm>

#include "hw/power.h"
#include "predictor/gpu/gpu_support.h"
#include "sim/report/step_report.h"

namespace tessera {
namespace {

constexpr double kMemoryBound = 0.85;
constexpr double kCommunicating = 0.3;

bool fills_the_gpu(KernelKind kind) {
  return is_product(kind) || kind == KernelKind::attention || kind == KernelKind::convolution;
}

/// Of the step, in seconds of full products: what all that a GPU does adds to its idle power.
double busy_seconds(const StepReport& report) {
  Seconds products, kernels;
  for (const KernelKindTime& of : report.kernel_kinds) {
    kernels += of.time;
    if (fills_the_gpu(of.kind)) products += of.time;
  }
  const double weighed = products.value() + kMemoryBound * (kernels - products).value() +
                         kCommunicating * report.breakdown.exposed_communication().value();
  return std::min(weighed, report.step_time.value());
}

}  // namespace

std::optional<StepEnergy> step_energy(const ClusterSpec& cluster, const StepReport& report) {
  const GpuSpec& gpu = cluster.node.gpu;
  if (gpu.tdp.value() <= 0 && gpu.busy_power.value() <= 0) return std::nullopt;
  StepEnergy energy;
  energy.clock = clock_share(gpu);
  const Watts idle = idle_power(gpu);
  const Watts dynamic =
      std::max(Watts(0), busy_power(gpu) - idle) * dynamic_power_share(energy.clock);
  const double step = report.step_time.value();
  const double each = idle.value() * step + dynamic.value() * busy_seconds(report);
  const double nodes = static_cast<double>(report.gpus()) / cluster.node.gpu_count;
  energy.gpus_j = each * report.gpus();
  energy.hosts_j = cluster.node.host_power.value() * step * nodes;
  energy.facility_j = (energy.gpus_j + energy.hosts_j) * cluster.pue;
  energy.mean_gpu = step > 0 ? Watts(each / step) : idle;
  return energy;
}

}  // namespace tessera
