#pragma once

#include <cstdint>
#include <string>

#include "workloads/model_spec.h"

namespace tessera {

/// Parameters of a model. parameter_count() of model_spec.h gives the total alone.
struct ParameterCounts {
  std::int64_t total = 0;
  std::int64_t active = 0;  ///< that a token meets: of routed experts those that it is sent to
};

ParameterCounts parameter_counts(const ModelSpec& model);
/// The same of a model that is known to have `total`: counting images' operators takes a while.
ParameterCounts parameter_counts(const ModelSpec& model, std::int64_t total);

/// "46.70 billion parameters, 12.88 billion active".
std::string to_text(const ParameterCounts& counts);

}  // namespace tessera
