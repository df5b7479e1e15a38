#pragma once

#include <vector>

#include "hw/units/precision.h"
#include "workloads/program/program.h"

namespace tessera {

/// What the FLOPs are of that utilization counts: products, convolutions, fused attention.
struct CountedFlops {
  Precision precision = Precision::fp32;  ///< in which most of them are done
  double other_precisions = 0;            ///< share of those that are done in another one, [0, 1]
  /// Share of fp32 convolutions for which cuDNN has Winograd's algorithm, [0, 1]. They are counted
  /// as direct products, which multiply up to 4 times more often.
  double winograd = 0;
};

/// `runs`: how often each segment of the program ran, over all ranks.
CountedFlops counted_flops(const Program& program, const std::vector<double>& runs);

}  // namespace tessera
