#pragma once

#include <vector>

#include "lab/fit/fp32/dataset.h"

namespace tessera {

/// Training rows of `op`, at most 120 from every octave of duration, evenly spread over the file:
/// so neither the many short calls nor the few long ones decide a fit alone.
std::vector<const KernelMeasurement*> rows_over_octaves(const GpuData& gpu, MeasuredOp op);

}  // namespace tessera
