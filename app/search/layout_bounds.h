#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "app/search/layer_costs.h"
#include "app/search/layout.h"
#include "app/search/stage_bound.h"
#include "app/search/stage_walk.h"
#include "predictor/weights/weights.h"

namespace tessera {

struct ModelGraph;

/// What no simulation of a layout falls below.
struct LayoutBound {
  Seconds step_time;
  Bytes memory;  ///< that the fullest GPU must have, as `MemoryReport::device`
};

/// Lower bounds of layouts of one scenario, at three prices. All follow from the data flow alone:
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

  // A plan adds to what runs: planned layouts have the bound on time of those without a plan, less
  // what gradients can gain that meet out of place.

  /// From one layer, built once for all layouts with the same kernels: microseconds.
  LayoutBound quick(const Layout& layout);
  /// From the programs of the first and the last stage, with as many micro-batches as it takes to
  /// fill the pipeline: milliseconds. Not below what `quick` says of step time.
  LayoutBound refined(const Layout& layout);
  /// From the whole programs of the same stages, op by op, with the collectives over replicas that
  /// passes wait for: tens of milliseconds. Of step time alone, and not below what `refined` says.
  Seconds walked(const Layout& layout, const LayoutBound& refined);

  /// From the whole programs of all stages, each walked as above and waiting for what the others
  /// send: up to some tenths of a second. Of step time alone, and not below that of `known`.
  Seconds piped(const Layout& layout, const LayoutBound& known);

  /// The first of `layouts` for each set of kernels that `quick` would have to measure first.
  std::vector<Layout> unmeasured(const std::vector<Layout>& layouts) const;
  /// What `quick` measures for each of them, and where it was measured in another process.
  std::vector<LayerCosts> measured(const std::vector<Layout>& layouts);
  void learn(const std::vector<Layout>& layouts, const std::vector<LayerCosts>& costs);

 private:
  using Family = std::array<std::int64_t, 12>;  ///< what kernels depend on

  static Family family_of(const StepOptions& step);
  StepOptions laid_out_step(const Layout& layout) const;
  LaunchOrder launch_order(const Layout& layout) const;
  /// Whether the framework splits the model into stages of layers that cost the same, but for
  /// layers_differ().
  bool splits_even_layers(const StepOptions& step) const;
  /// By model part; empty where the framework does not split models so.
  std::vector<int> layers_of_stages(const StepOptions& step) const;
  const LayerCosts& costs_of(const StepOptions& step);
  LayerCosts layer_costs(const StepOptions& step);
  struct TimedStages {
    Program program;
    std::vector<TimedSegment> segments;
  };
  /// `stages` with each of `counts` micro-batches, the stages of one count together.
  TimedStages timed_stages(const StepOptions& step, const ModelGraph& graph,
                           const std::vector<int>& stages, const std::vector<std::int64_t>& counts);
  /// Of these. `best_placed`: with the collectives of rank 0, whose groups cross the fewest nodes.
  std::vector<StageBound> stages_of(const StepOptions& step, const ModelGraph& graph,
                                    const std::vector<int>& stages,
                                    const std::vector<std::int64_t>& counts, bool best_placed);
  /// Of any plan of the first and the last stage, for the allocator.
  Bytes planned_memory(const StepOptions& step);
  /// What a GPU holds outside of the allocator.
  Bytes outside_memory(const StepOptions& step) const;

  Scenario base_;
  std::unique_ptr<KernelPredictor> predictor_;
  Topology topology_;
  std::map<Family, LayerCosts> known_;
};

}  // namespace tessera
