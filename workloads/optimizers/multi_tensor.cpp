#include "workloads/optimizers/multi_tensor.h"

#include <algorithm>

namespace tessera {
namespace {

/// apex csrc/multi_tensor_apply.cuh and PyTorch ForeachFunctors: chunks of 65 536 elements, up to
/// 320 thread blocks (one per chunk) per launch.
constexpr std::int64_t kElementsPerLaunch = 65'536 * 320;

GraphOp pass(const std::string& name, Phase phase, KernelKind kind, std::int64_t parameters,
             PassTraffic traffic, double flops_per_parameter) {
  GraphOp op;
  op.phase = phase;
  op.name = name;
  op.kernel.kind = kind;
  op.kernel.rows = 1;
  op.kernel.cols = parameters;
  op.kernel.flops = Flops(flops_per_parameter * static_cast<double>(parameters));
  op.kernel.bytes_read = Bytes(traffic.reads * parameters);
  op.kernel.bytes_written = Bytes(traffic.writes * parameters);
  return op;
}

}  // namespace

GraphOp multi_tensor_pass(const std::string& name, Phase phase, std::int64_t parameters,
                          PassTraffic traffic, double flops_per_parameter) {
  GraphOp op =
      pass(name, phase, KernelKind::multi_tensor, parameters, traffic, flops_per_parameter);
  const std::int64_t launches = (parameters + kElementsPerLaunch - 1) / kElementsPerLaunch;
  op.host_calls = static_cast<int>(std::max<std::int64_t>(1, launches));
  return op;
}

GraphOp buffer_pass(const std::string& name, Phase phase, KernelKind kind, std::int64_t parameters,
                    PassTraffic traffic) {
  const double flops = kind == KernelKind::fill ? 0 : 1;
  return pass(name, phase, kind, parameters, traffic, flops);
}

}  // namespace tessera
