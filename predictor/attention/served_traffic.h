#pragma once

#include <string_view>

#include "hw/gpu.h"
#include "predictor/attention/attention_shape.h"

namespace tessera {

/// Bytes per second that the operands of a call come with in a server, whose benchmarks find them
/// in the L2 where it holds them: that of the L2 where the GPU's is faster than its memory.
double served_bandwidth(const GpuSpec& gpu, const AttentionShape& shape);

/// Traffic of rearranging Q, K and V / bytes of Q on another GPU than `source`, where it was
/// `conversion`: its time at `bandwidth`. The kernel reads and writes Q, which memory limits, and
/// what it takes longer than that goes with SMs and clock. `conversion` itself for a source that is
/// not known.
double moved_conversion(double conversion, std::string_view source, const GpuSpec& gpu,
                        double bandwidth);

/// What TensorRT-LLM's rearrangement takes at least: a thread block per sequence and head, however
/// short the sequence [s].
double rearrangement_of_blocks(const AttentionShape& shape, const GpuSpec& gpu);

}  // namespace tessera
