#pragma once

#include <string>

namespace tessera {

/// Whether a device that calls itself `device` ("NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-32GB")
/// can be the GPU `id` of the catalog: the same model, and the same form where both say it. Of an
/// id or a name without a model number nothing can be said: true.
bool can_be_gpu(const std::string& device, const std::string& id);

}  // namespace tessera
