#include "app/search/layout_bounds.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "app/search/stage_of_layers.h"
#include "hw/power.h"
#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_overlay.h"
#include "sim/plan/memory/stage_planner.h"
#include "sim/plan/time_segments.h"
#include "sim/scenario/hardware_queues.h"
#include "workloads/model_graph.h"
#include "workloads/parallel/layer_split.h"
#include "workloads/parallel/stage_program.h"
#include "workloads/schedules/virtual_pipeline.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// The clock's rounding must not lift a bound above the step that it bounds.
constexpr double kRounding = 1 - 1e-9;

/// Model chunks whose activations the first stage holds at least, when it begins its first
/// backward.
std::int64_t chunks_in_flight(const StepOptions& step) {
  const std::int64_t chunks = step.layout.virtual_stages * step.micro_batches();
  switch (step.schedule) {
    case PipelineSchedule::gpipe:
      return chunks;
    case PipelineSchedule::dualpipe:
      return 1;
    default:
      return std::min(chunks, std::int64_t{step.layout.pipeline} * step.layout.virtual_stages);
  }
}

/// Stages that can be the slowest: the first and the last, and of those between them the last of
/// the fullest, where the ends have fewer layers.
std::vector<int> bounding_stages(const StepOptions& step, const std::vector<int>& layers) {
  const VirtualPipeline pipeline(step);
  const int last = step.layout.pipeline - 1;
  const auto layers_of = [&](int stage) {
    int here = 0;
    for (int chunk = 0; chunk < pipeline.chunks(); ++chunk)
      here += layers[static_cast<std::size_t>(pipeline.part({stage, chunk}))];
    return here;
  };
  std::vector<int> stages = {0};
  int most = std::max(layers_of(0), layers_of(last)), fullest = 0;
  for (int stage = 1; stage < last; ++stage) {
    const int here = layers_of(stage);
    if (here <= most && (fullest == 0 || here < layers_of(fullest))) continue;
    most = std::max(most, here);
    fullest = stage;
  }
  if (fullest > 0) stages.push_back(fullest);
  if (last > 0) stages.push_back(last);
  return stages;
}

/// A step with fewer micro-batches, which fill the pipeline all the same.
struct ShortStep {
  std::int64_t micro_batches = 1;
  std::int64_t fewer = 0;  ///< a second one, to see what a micro-batch adds; 0: the step is short
};

ShortStep shortened(const StepOptions& step) {
  const std::int64_t all = step.micro_batches();
  const std::int64_t stages = step.layout.pipeline;
  const std::int64_t unit = step.schedule == PipelineSchedule::interleaved_1f1b ? stages
                            : step.schedule == PipelineSchedule::dualpipe       ? 2
                                                                                : 1;
  const std::int64_t filling = (2 * stages + 2 + unit - 1) / unit * unit + unit;
  if (all <= filling) return {.micro_batches = all};
  return {.micro_batches = filling, .fewer = filling - unit};
}

void refuse(bool applies, const char* field, const char* what, const char* hint) {
  if (applies) throw InputError({field, what, hint});
}

void check_searchable(const Scenario& base) {
  const char* kNoPlacement = "a placement is of one layout";
  refuse(!base.step.placement.empty(), "parallelism.placement", kNoPlacement, "remove it");
  refuse(!base.step.split.micro_batches_per_replica.empty(),
         "parallelism.micro_batches_per_replica", "are of one layout", "remove them");
  refuse(base.memory.planner != MemoryPlanner::off, "memory.planner",
         "plans are made for one layout",
         "remove it; --recompute plan tries layouts with a plan where they need one");
  refuse(!base.perturbation.gpus.empty() || base.perturbation.kernel_jitter > 0, "perturbation",
         "a search compares layouts on even machines", "remove it");
  refuse(base.collectives.fidelity == NetworkFidelity::chunk, "collectives.fidelity",
         "chunk is too slow to search with", "use flow or analytic");
  refuse(!base.cluster.faults.empty(), "cluster.faults", "a search compares layouts on sound links",
         "remove them");
  refuse(base.step.mode != StepMode::training, "training.mode", "a search compares training steps",
         "use training");
}

}  // namespace

LayoutBounds::LayoutBounds(const Scenario& base, const PredictorWeights& weights)
    : base_(base),
      predictor_(make_predictor(base.predictor_form, at_power_limit(base.cluster.node.gpu),
                                with_overlays(weights, base.overlays, base.cluster.node.gpu))),
      topology_(base.cluster) {
  check_searchable(base);
}
LayoutBounds::~LayoutBounds() = default;

LayoutBounds::TimedStages LayoutBounds::timed_stages(const StepOptions& step,
                                                     const ModelGraph& graph,
                                                     const std::vector<int>& stages,
                                                     const std::vector<std::int64_t>& counts) {
  TimedStages timed{.program = build_stages(graph, step, stages, counts), .segments = {}};
  timed.segments = time_segments(timed.program, *predictor_, host_costs(step)).segments;
  return timed;
}

std::vector<StageBound> LayoutBounds::stages_of(const StepOptions& step, const ModelGraph& graph,
                                                const std::vector<int>& stages,
                                                const std::vector<std::int64_t>& counts,
                                                bool best_placed) {
  const TimedStages timed = timed_stages(step, graph, stages, counts);
  const Program& program = timed.program;
  const Bytes workspaces = library_memory(step, base_.cluster.node).allocator.workspaces;
  CollectiveTimes times(topology_, base_.collectives);
  std::vector<StageBound> bounds;
  for (const RankProgram& stage : program.stages) {
    const int rank = best_placed ? 0 : rank_of({.pipeline = stage.stage}, step.layout);
    bounds.push_back(
        stage_bound(program, stage, rank, timed.segments, stage.static_memory + workspaces, times));
  }
  return bounds;
}

LayoutBounds::Family LayoutBounds::family_of(const StepOptions& step) {
  const ParallelLayout& layout = step.layout;
  const bool experts = layout.experts_apart();
  return {layout.tensor,
          layout.context,
          layout.expert,
          experts ? layout.data : std::min(layout.data, 2),
          layout.sequence_parallel ? 1 : 0,
          std::min(layout.pipeline, 2),
          step.micro_batch,
          static_cast<int>(step.recompute),
          splits_backward(step.schedule) ? 1 : 0,
          static_cast<int>(block_parameter_format(step)),
          static_cast<int>(block_gradient_format(step)),
          scatters_gradients(step) ? 1 : 0};
}

const LayerCosts& LayoutBounds::costs_of(const StepOptions& step) {
  const Family family = family_of(step);
  const auto found = known_.find(family);
  if (found != known_.end()) return found->second;
  return known_.emplace(family, layer_costs(step)).first->second;
}

namespace {

constexpr int kMicroBatches = 2;  // the first stores gradients, later ones add

/// The smallest step whose layers cost what those of `full` do: a layer per stage, two stages.
StepOptions smallest_step(const StepOptions& full) {
  StepOptions step = full;
  step.layout.pipeline = std::min(step.layout.pipeline, 2);
  step.layout.virtual_stages = 1;
  if (!step.layout.experts_apart()) step.layout.data = std::min(step.layout.data, 2);
  step.split = {};
  step.schedule = splits_backward(step.schedule) && step.layout.pipeline > 1
                      ? PipelineSchedule::zb_h1
                      : PipelineSchedule::one_f_one_b;
  return with_micro_batches(step, kMicroBatches);
}

/// Sizes of the layer and of what stands at both ends.
void set_parameters(const ModelGraph& graph, LayerCosts& costs) {
  costs.saved = graph.at(1).saved;
  costs.parameters = graph.at(1).parameters;
  costs.embedding_parameters =
      graph.blocks[static_cast<std::size_t>(graph.order.front())].parameters;
  costs.head_parameters = graph.blocks[static_cast<std::size_t>(graph.order.back())].parameters;
}

}  // namespace

LayerCosts LayoutBounds::layer_costs(const StepOptions& full) {
  const StepOptions step = smallest_step(full);
  ModelSpec model = base_.model;
  model.layers = step.layout.pipeline;
  std::vector<int> stages(static_cast<std::size_t>(step.layout.pipeline));
  std::iota(stages.begin(), stages.end(), 0);

  const ModelGraph graph = build_model_graph(model, step);
  // Sums by micro-batch, of which the smaller counts.
  std::array<std::array<Seconds, 2>, kMicroBatches> layer{};  // by direction
  std::array<std::array<Seconds, 2>, kMicroBatches> ends{};   // of the first and the last stage
  const std::vector<StageBound> bounds = stages_of(step, graph, stages, {kMicroBatches}, true);
  for (std::size_t stage = 0; stage < bounds.size(); ++stage) {
    for (const BlockPass& pass : bounds[stage].passes) {
      if (pass.micro_batch < 0) continue;
      const auto batch = static_cast<std::size_t>(pass.micro_batch);
      if (pass.layer == 0) layer[batch][pass.backward ? 1 : 0] += pass.span;
      if (pass.layer < 0) ends[batch][stage] += pass.span;
    }
  }
  LayerCosts costs;
  costs.forward = std::min(layer[0][0], layer[1][0]);
  costs.backward = std::min(layer[0][1], layer[1][1]);
  costs.embedding = std::min(ends[0][0], ends[1][0]);
  costs.head = std::min(ends[0][1], ends[1][1]);
  if (layers_differ(base_.model)) costs.forward = costs.backward = Seconds(0);  // of other layers
  set_parameters(graph, costs);
  costs.experts = spread_experts(step, graph.at(1));
  return costs;
}

Bytes LayoutBounds::planned_memory(const StepOptions& step) {
  const ModelGraph graph = build_model_graph(base_.model, step);
  const Bytes workspaces = library_memory(step, base_.cluster.node).allocator.workspaces;
  const Program ends =
      build_stages(graph, step, {0, step.layout.pipeline - 1}, {shortened(step).micro_batches});
  Bytes most;
  for (const RankProgram& stage : ends.stages)
    most = std::max(most, least_memory(graph, step, stage, workspaces));
  return most;
}

Bytes LayoutBounds::outside_memory(const StepOptions& step) const {
  const LibraryMemory libraries = library_memory(step, base_.cluster.node);
  return libraries.context + libraries.communicators;
}

StepOptions LayoutBounds::laid_out_step(const Layout& layout) const {
  StepOptions step = base_.step;
  apply(layout, step);
  // As plan_step has it: planners know values that are written once.
  if (layout.planned) step.framework.gradients_join_in_place = false;
  return step;
}

LaunchOrder LayoutBounds::launch_order(const Layout& layout) const {
  return {.single_queue = single_hardware_queue(laid_out_step(layout), base_.cluster.node.gpu),
          .gathers_move = layout.planned};
}

/// Other frameworks' layers may differ from each other; their layouts are few.
bool LayoutBounds::splits_even_layers(const StepOptions& step) const {
  const FrameworkProfile& profile = step.framework;
  return profile.modules == ModuleTree::megatron ||
         (profile.splits_stages && base_.model.family == ModelFamily::llama);
}

std::vector<int> LayoutBounds::layers_of_stages(const StepOptions& step) const {
  if (!splits_even_layers(step)) return {};
  return layers_of_parts(base_.model.layers, step).value();
}

LayoutBound LayoutBounds::quick(const Layout& layout) {
  const StepOptions step = laid_out_step(layout);
  if (!splits_even_layers(step) || layers_differ(base_.model)) return {};
  const LayerCosts& costs = costs_of(step);
  const std::vector<int> layers = layers_of_parts(base_.model.layers, step).value();
  const Bytes outside = outside_memory(step);

  LayoutBound bound;
  for (const int number : bounding_stages(step, layers)) {
    const StageOfLayers stage = stage_of_layers(step, layers, number);
    bound.step_time = std::max(bound.step_time, time_bound(step, costs, stage) * kRounding);
    Bytes memory = persistent_bound(step, costs, stage);
    if (number == 0 && !layout.planned)  // a plan may keep nothing
      memory += Bytes(costs.saved.value() * chunks_in_flight(step) * layers.front());
    bound.memory = std::max(bound.memory, memory + outside);
  }
  return bound;
}

LayoutBound LayoutBounds::refined(const Layout& layout) {
  const StepOptions step = laid_out_step(layout);
  const LayoutBound quick_bound = quick(layout);
  const ShortStep shorter = shortened(step);
  const std::vector<int> layers = layers_of_stages(step);
  const std::vector<int> stages =
      layers.empty() ? std::vector<int>{0} : bounding_stages(step, layers);
  std::vector<std::int64_t> counts = {shorter.micro_batches};
  if (shorter.fewer > 0) counts.push_back(shorter.fewer);
  const std::vector<StageBound> bounds =
      stages_of(step, build_model_graph(base_.model, step), stages, counts, false);
  const double missing = shorter.fewer > 0
                             ? static_cast<double>(step.micro_batches() - shorter.micro_batches) /
                                   static_cast<double>(shorter.micro_batches - shorter.fewer)
                             : 0;

  const Bytes outside = outside_memory(step);
  LayoutBound bound = quick_bound;
  const LayerCosts* costs = layers.empty() ? nullptr : &costs_of(step);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Seconds passes = bounds[i].passes_time(), data = bounds[i].data;
    if (missing > 0) {
      const StageBound& fewer = bounds[stages.size() + i];
      passes += (passes - fewer.passes_time()) * missing;
      data += (data - fewer.data) * missing;
    }
    const double before =
        costs != nullptr ? std::accumulate(layers.begin(), layers.begin() + stages[i], 0) : 0;
    const bool one_way = layout.schedule != PipelineSchedule::dualpipe;
    if (before > 0 && one_way) passes += costs->forward * before;
    Seconds behind = bounds[i].closing;
    if (before > 0 && drains(step.schedule))
      behind = std::max(behind, costs->backward * before + bounds.front().closing);
    bound.step_time = std::max(bound.step_time, std::max(passes + behind, data) * kRounding);
    if (!layout.planned) bound.memory = std::max(bound.memory, bounds[i].memory + outside);
  }
  if (layout.planned) bound.memory = std::max(bound.memory, planned_memory(step) + outside);
  return bound;
}

Seconds LayoutBounds::walked(const Layout& layout, const LayoutBound& refined) {
  const StepOptions step = laid_out_step(layout);
  const std::vector<int> layers = layers_of_stages(step);
  const bool layered = !layers.empty() && layout.pipeline > 1;
  const std::vector<int> stages = layered ? bounding_stages(step, layers) : std::vector<int>{0};
  const TimedStages timed =
      timed_stages(step, build_model_graph(base_.model, step), stages, {step.micro_batches()});
  const LayerCosts* costs = layered ? &costs_of(step) : nullptr;
  CollectiveTimes times(topology_, base_.collectives);
  Seconds bound = refined.step_time;
  for (const RankProgram& stage : timed.program.stages) {
    const double before =
        layered ? std::accumulate(layers.begin(), layers.begin() + stage.stage, 0) : 0;
    const bool waits = before > 0 && layout.schedule != PipelineSchedule::dualpipe;
    StageSurroundings around;
    if (waits) around.before = costs->forward * before;
    if (before > 0 && drains(step.schedule)) around.behind = costs->backward * before;
    const Seconds end =
        walked_stage(timed.program, stage, rank_of({.pipeline = stage.stage}, step.layout),
                     timed.segments, around, launch_order(layout), times);
    bound = std::max(bound, end * kRounding);
  }
  return bound;
}

Seconds LayoutBounds::piped(const Layout& layout, const LayoutBound& known) {
  const StepOptions step = laid_out_step(layout);
  std::vector<int> stages(static_cast<std::size_t>(step.layout.pipeline));
  std::iota(stages.begin(), stages.end(), 0);
  const TimedStages timed =
      timed_stages(step, build_model_graph(base_.model, step), stages, {step.micro_batches()});
  CollectiveTimes times(topology_, base_.collectives);
  const Seconds last = walked_pipeline(timed.program, timed.segments, launch_order(layout), times);
  return std::max(known.step_time, last * kRounding);
}

std::vector<Layout> LayoutBounds::unmeasured(const std::vector<Layout>& layouts) const {
  std::vector<Layout> found;
  if (!splits_even_layers(base_.step)) return found;
  std::set<Family> seen;
  for (const Layout& layout : layouts) {
    const Family family = family_of(laid_out_step(layout));
    if (!known_.contains(family) && seen.insert(family).second) found.push_back(layout);
  }
  return found;
}

std::vector<LayerCosts> LayoutBounds::measured(const std::vector<Layout>& layouts) {
  std::vector<LayerCosts> costs;
  for (const Layout& layout : layouts) costs.push_back(costs_of(laid_out_step(layout)));
  return costs;
}

void LayoutBounds::learn(const std::vector<Layout>& layouts, const std::vector<LayerCosts>& costs) {
  for (std::size_t i = 0; i < layouts.size(); ++i)
    known_.try_emplace(family_of(laid_out_step(layouts[i])), costs.at(i));
}

}  // namespace tessera
