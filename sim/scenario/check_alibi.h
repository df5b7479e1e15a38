#pragma once

#include <vector>

#include "sim/scenario/check_scenario.h"

namespace tessera {

/// Dimensions that families with ALiBi (bloom, mpt) do not have: position embeddings, grouped
/// queries, experts.
void check_alibi(const ModelSpec& model, std::vector<ScenarioProblem>& problems);

}  // namespace tessera
