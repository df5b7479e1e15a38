#pragma once

#include <string>

#include "workloads/graph/block.h"

namespace tessera {

/// Bytes that a pass reads and writes per parameter.
struct PassTraffic {
  std::int64_t reads = 0;
  std::int64_t writes = 0;
};

/// One pass of multi-tensor kernels over `parameters` elements.
GraphOp multi_tensor_pass(const std::string& name, Phase phase, std::int64_t parameters,
                          PassTraffic traffic, double flops_per_parameter);

/// One kernel over a flat buffer of `parameters` elements.
GraphOp buffer_pass(const std::string& name, Phase phase, KernelKind kind, std::int64_t parameters,
                    PassTraffic traffic);

}  // namespace tessera
