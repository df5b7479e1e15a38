#include "sim/report/counted_flops.h"

#include <algorithm>
#include <map>

#include "predictor/fp32/conv_model.h"
#include "workloads/graph/block.h"

namespace tessera {
namespace {

/// Tensor cores get the implicit product alone.
bool may_run_winograd(const Kernel& kernel) {
  return kernel.kind == KernelKind::convolution && kernel.precision == Precision::fp32 &&
         convolution_shape(kernel).winograd();
}

struct FlopsSum {
  std::map<Precision, double> by_precision;
  double all = 0;
  double winograd = 0;

  void add(const Kernel& kernel, double runs) {
    const double flops = kernel.flops.value() * runs;
    by_precision[kernel.precision] += flops;
    all += flops;
    if (may_run_winograd(kernel)) winograd += flops;
  }
};

}  // namespace

CountedFlops counted_flops(const Program& program, const std::vector<double>& runs) {
  FlopsSum sum;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (program.segments[i].phase == Phase::optimizer) continue;  // Muon's products
    for (const KernelLaunch& launch : program.segments[i].kernels)
      if (counts_as_model_flops(launch.kernel)) sum.add(launch.kernel, runs[i]);
  }
  if (sum.all <= 0) return {};
  const auto most = std::ranges::max_element(sum.by_precision, {},
                                             [](const auto& entry) { return entry.second; });
  return {.precision = most->first,
          .other_precisions = std::max(0.0, 1 - most->second / sum.all),
          .winograd = sum.winograd / sum.all};
}

}  // namespace tessera
