#pragma once

#include <cstdint>
#include <vector>

namespace tessera::torchtitan {

/// Layers of each of `stages` parts of a model, in its order, as torchtitan cuts where a job names
/// no modules. Since 2025 embedding and head count as a layer each, and what does not divide goes
/// to the first parts (distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part, with its
/// default of one layer less on the first and on the last stage; recalled). Empty where a part
/// would have less than nothing.
std::vector<std::int64_t> layers_of_stages(std::int64_t layers, std::int64_t stages);

/// As it did in 2024: what does not divide goes to the second part and on
/// (parallelisms/pipelining_utils.py, generate_split_points; recalled).
std::vector<std::int64_t> layers_of_stages_2024(std::int64_t layers, std::int64_t stages);

}  // namespace tessera::torchtitan
