#include "sim/plan/memory/megatron_planner.h"

#include <algorithm>
#include <functional>

#include "sim/remat/gap_plan.h"
#include "sim/remat/stage_plan.h"
#include "sim/scenario/names.h"

namespace tessera {
namespace {

/// Layers of the stage in forward order, as a group's layer; -1 for groups outside of layers.
class LayerChoice : public remat::Planner {
 public:
  LayerChoice(const StageOps& stage, const StageGraph& graph, bool block, int fixed)
      : stage_(stage), graph_(graph), block_(block), fixed_(fixed) {
    for (const OpGroup& group : graph.groups) {
      const bool forward =
          group.kind == OpGroup::Kind::operators && group.begin < stage.forward_ops;
      const int layer = forward ? stage.ops[static_cast<std::size_t>(group.begin)].layer : kNoLayer;
      layer_of_.push_back(layer);
      if (layer != kNoLayer && (layers_.empty() || layers_.back() != layer))
        layers_.push_back(layer);
    }
  }

  remat::PlannedSchedule plan(const remat::Graph& graph,
                              const remat::PlanRequest& request) const override {
    remat::PlannedSchedule best;
    remat::Nanoseconds best_time = 0;
    bool fits = false;
    const int most = static_cast<int>(layers_.size());
    for (int n = 0; n <= most; ++n) {
      if (!block_ && n == 0) continue;
      if (fixed_ > 0 && n != std::min(fixed_, most)) continue;
      remat::Schedule schedule = schedule_of(graph, n);
      const remat::ReplayResult cost = remat::replay(graph, schedule, request.link);
      const bool here = cost.peak <= request.budget;
      const bool better = best.schedule.empty() || (here && (!fits || cost.time < best_time)) ||
                          (!fits && !here && cost.peak < best.least_peak);
      if (!better) continue;
      best = {std::move(schedule), std::to_string(n) + " layers", cost.peak};
      best_time = cost.time;
      fits = fits || here;
    }
    return best;
  }

 private:
  int index_of(int layer) const {
    return static_cast<int>(std::ranges::find(layers_, layer) - layers_.begin());
  }

  /// Whether a tensor that group `g` makes goes after forward: all but what the next unit starts
  /// from.
  bool goes(const remat::Graph& graph, int g, remat::TensorId tensor, int n) const {
    const int layer = layer_of_[static_cast<std::size_t>(g)];
    if (layer == kNoLayer) return false;
    const int index = index_of(layer);
    if (block_ && index >= n) return false;
    for (const remat::OpId reader : graph.consumers(tensor)) {
      const int read_by = layer_of_[static_cast<std::size_t>(reader)];
      if (reader >= graph.first_backward() || read_by == layer) continue;
      const bool next_unit = block_ || (index + 1) % n == 0;
      if (next_unit || read_by == kNoLayer) return false;
    }
    return true;
  }

  remat::Schedule schedule_of(const remat::Graph& graph, int n) const {
    remat::GapPlan gaps(graph);
    for (remat::Gap& gap : gaps.gaps()) {
      const remat::OpId producer = graph.producer(gap.tensor);
      const bool crosses = gap.from < graph.first_backward() && gap.to >= graph.first_backward();
      if (crosses && graph.recomputable(producer) && goes(graph, producer, gap.tensor, n))
        gap.choice = remat::GapChoice::run_again;
    }
    remat::Schedule schedule;
    remat::ScheduleWriter(graph).write(gaps.decode(), schedule);
    return schedule;
  }

  const StageOps& stage_;
  const StageGraph& graph_;
  bool block_;
  int fixed_;                  ///< layers; 0: the best number
  std::vector<int> layer_of_;  ///< by group
  std::vector<int> layers_;
};

}  // namespace

std::unique_ptr<remat::Planner> make_megatron_planner(MemoryPlanner kind, int layers,
                                                      const StageOps& stage,
                                                      const StageGraph& graph) {
  if (!takes_layers(kind)) return nullptr;
  return std::make_unique<LayerChoice>(stage, graph, kind == MemoryPlanner::megatron_block, layers);
}

}  // namespace tessera
