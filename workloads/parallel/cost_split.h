#pragma once

#include <optional>
#include <vector>

#include "workloads/model_spec.h"
#include "workloads/step_options.h"

namespace tessera {

/// A model dealt to pipeline stages in its order: embedding, layers, head (final norm and logits),
/// loss.
struct CostSplit {
  std::vector<int> blocks;  ///< of every stage; sums to layers + 2, or + 3 with the loss apart
  std::vector<int> layers;  ///< of these
  bool loss_apart = false;  ///< the last stage has the loss alone, and logits travel to it
  bool head_moved = false;  ///< the published code would have left it so
};

/// Whether the framework fills stages by cost, and the step does not say otherwise.
bool uses_cost_split(const StepOptions& step);

/// A stage takes blocks until their cost and that of the stages before reach its share of all:
/// where a share is met exactly the next layer is the next stage's, or, with `past_share`
/// (FrameworkProfile::fills_past_share), still this one's; with it a head that fills its stage
/// leaves the loss alone on the last, without it goes there too. A layer costs its products with as
/// many key as query heads, 4 h heads d + 3 h ffn, the head V h, the rest nothing. Nothing where a
/// stage stays empty, or the final norm, the logits and the cast of logits would lie on three
/// stages. Source: nanotron models/base.py, build_model, and models/llama.py,
/// get_block_compute_costs.
std::optional<CostSplit> split_by_cost(const ModelSpec& model, int stages, bool past_share = false);

}  // namespace tessera
