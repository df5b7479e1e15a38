#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "predictor/weights.h"
#include "sim/search/layout.h"
#include "sim/search/stage_bound.h"

namespace tessera {

/// What no simulation of a layout falls below.
struct LayoutBound {
  Seconds step_time;
  Bytes memory;  ///< of the fullest GPU, as `StepReport::memory`
};

/// Lower bounds of layouts of one scenario, at two prices. Both follow from the data flow alone:
///
/// - A stage's block passes run one after another, each with the collectives that it waits for.
/// - Stage s begins when a micro-batch has come through the s parts of the model before it, and
///   behind its last backward pass that micro-batch goes back through them (unless weight gradients
///   are left for the end, or a second copy of the model runs the other way).
/// - Its optimizer comes behind that, and data-parallel collectives share a stream.
class LayoutBounds {
 public:
  /// Throws InputError for what bounds cannot be had of: GPUs that differ, placements, planned
  /// memory, collectives in chunks.
  LayoutBounds(const Scenario& base, const PredictorWeights& weights);
  ~LayoutBounds();

  // A plan only adds to what runs: planned layouts have the bound on time of those without a plan.

  /// From one layer, built once for all layouts with the same kernels: microseconds.
  LayoutBound quick(const Layout& layout);
  /// From the programs of the first and the last stage, with as many micro-batches as it takes to
  /// fill the pipeline: milliseconds. Not below what `quick` says of step time.
  LayoutBound refined(const Layout& layout);

 private:
  struct LayerCosts;
  using Family = std::array<std::int64_t, 12>;  ///< what kernels depend on

  static Family family_of(const StepOptions& step);
  const LayerCosts& costs_of(const StepOptions& step);
  LayerCosts measured_layer(const StepOptions& step);
  /// Of `stages` with each of `counts` micro-batches, the stages of one count together.
  /// `best_placed`: with the collectives of rank 0, whose groups cross the fewest nodes.
  std::vector<StageBound> stages_of(const StepOptions& step, const ModelSpec& model,
                                    const std::vector<int>& stages,
                                    const std::vector<std::int64_t>& counts, bool best_placed);
  /// Of any plan of the first and the last stage.
  Bytes planned_memory(const StepOptions& step);

  Scenario base_;
  std::unique_ptr<KernelPredictor> predictor_;
  Topology topology_;
  std::map<Family, LayerCosts> known_;
};

}  // namespace tessera
