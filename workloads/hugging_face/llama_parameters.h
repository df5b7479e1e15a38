#pragma once

#include <cstdint>

#include "workloads/model_spec.h"

namespace tessera {

/// Parameters of a model of family llama. Layers that predict further tokens are left out, as
/// published counts leave them out; the router's corrections, which are saved with the weights,
/// not.
std::int64_t llama_parameters(const ModelSpec& model);

/// Of a layer that predicts the token behind the next; the head and the embedding are the model's.
std::int64_t llama_mtp_parameters(const ModelSpec& model);

/// Of one expert, without its part of the router.
std::int64_t llama_expert_parameters(const ModelSpec& model);

}  // namespace tessera
