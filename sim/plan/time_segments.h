#pragma once

#include <vector>

#include "predictor/kernel_predictor.h"
#include "sim/plan/host_costs.h"
#include "sim/plan/timed_program.h"
#include "workloads/program/program.h"

namespace tessera {

/// Segments with the distinct kernels that they consist of.
struct TimedSegments {
  std::vector<TimedSegment> segments;  ///< parallel to Program::segments
  std::vector<TimedKernel> kernels;
};

/// Matrix products, convolutions and fused attention: what collectives beside them cost is waves on
/// the multiprocessors that these hold (TimedSegment::product_share).
bool loses_multiprocessors(KernelKind kind);

/// Predicts every distinct kernel of `program` once and adds up its segments.
TimedSegments time_segments(const Program& program, const KernelPredictor& predictor,
                            const HostCosts& host);

}  // namespace tessera
