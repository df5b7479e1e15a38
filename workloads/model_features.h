#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/model_spec.h"

namespace tessera {

/// Fields by which a model of family llama differs from what Hugging Face's modules were read for
/// (Llama, Mixtral, Qwen 2 and 3): Megatron's modules alone have them. Empty for other families. A
/// window that holds sequences of `tokens` is none; 0: of any length.
std::vector<std::string> fields_of_megatron_alone(const ModelSpec& model, std::int64_t tokens = 0);

}  // namespace tessera
