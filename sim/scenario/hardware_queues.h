#pragma once

#include "hw/gpu.h"
#include "workloads/step_options.h"

namespace tessera {

/// Whether all streams of a GPU share one hardware queue: where the profile says 1 connection, or 0
/// (what Megatron-Core asks for) and the GPU is none of Blackwell's and no weights are sharded.
/// Source: Megatron-LM megatron/training/arguments.py, CUDA_DEVICE_MAX_CONNECTIONS (recalled).
bool single_hardware_queue(const StepOptions& step, const GpuSpec& gpu);

}  // namespace tessera
