#pragma once

#include <string>

#include "workloads/graph/block.h"

namespace tessera {

/// fp32 elements that a pass reads and writes per parameter.
struct PassTraffic {
  int reads = 0;
  int writes = 0;
};

/// One pass of multi-tensor kernels over `parameters` fp32 elements.
GraphOp multi_tensor_pass(const std::string& name, Phase phase, std::int64_t parameters,
                          PassTraffic traffic, double flops_per_parameter);

/// One kernel over a flat buffer of `parameters` fp32 elements.
GraphOp buffer_pass(const std::string& name, Phase phase, KernelKind kind, std::int64_t parameters,
                    PassTraffic traffic);

}  // namespace tessera
