#pragma once

#include <string>

#include "hw/gpu.h"

namespace tessera {

/// Datasheet facts of the GPUs that these tests use; throws InputError for others. The catalog of
/// configs/hw lies above the predictor, so its tests bring their own table.
GpuSpec test_gpu(const std::string& id);

}  // namespace tessera
