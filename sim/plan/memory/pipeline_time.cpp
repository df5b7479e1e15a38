#include "sim/plan/memory/pipeline_time.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/plan/memory/split_micro_batches.h"
#include "sim/remat/planner.h"
#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {
namespace {

constexpr auto kForward = static_cast<std::size_t>(PassPart::forward);
constexpr auto kBackward = static_cast<std::size_t>(PassPart::backward);

Seconds seconds(remat::Nanoseconds time) {
  return Seconds(static_cast<double>(time) * 1e-9);
}

class PipelineWalk {
 public:
  PipelineWalk(const StepOptions& step, const std::vector<RankProgram>& stages,
               const std::vector<std::vector<ChunkTimes>>& times)
      : pipeline_(step), stages_(stages), times_(times) {
    for (const RankProgram& stage : stages) split_.emplace_back(stage);
  }

  Seconds run() && {
    std::vector<std::size_t> next(stages_.size(), 0);
    std::vector<Seconds> now(stages_.size());
    link_free_.assign(times_.size(), Seconds(0));
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        while (next[s] < stages_[s].passes.size()) {
          const PassSpan& pass = stages_[s].passes[next[s]];
          const std::optional<Seconds> ready = ready_at(stages_[s].stage, pass);
          if (!ready) break;
          now[s] = end_of(stages_[s].stage, pass, std::max(now[s], *ready));
          ended_[key(stages_[s].stage, pass)] = now[s];
          ++next[s];
          moves = true;
        }
      }
    }
    return *std::ranges::max_element(now);
  }

 private:
  using Key = std::tuple<int, int, int, PassPart>;  // stage, chunk, micro-batch

  static Key key(int stage, const PassSpan& pass) {
    return {stage, pass.chunk, pass.micro_batch, pass.part};
  }

  /// Nothing: what the pass waits for has not ended.
  std::optional<Seconds> ready_at(int stage, const PassSpan& pass) const {
    if (pass.part == PassPart::weight_gradient) return Seconds(0);
    const ModelChunk chunk{stage, pass.chunk};
    const auto giver =
        pass.part == PassPart::forward ? pipeline_.before(chunk) : pipeline_.behind(chunk);
    if (!giver) return Seconds(0);
    const auto known = ended_.find({giver->stage, giver->chunk, pass.micro_batch, pass.part});
    if (known == ended_.end()) return std::nullopt;
    return known->second;
  }

  Seconds end_of(int stage, const PassSpan& pass, Seconds begin) {
    const auto at = static_cast<std::size_t>(stage), part = static_cast<std::size_t>(pass.part);
    const ChunkTimes& chunk = times_[at][static_cast<std::size_t>(pass.chunk)];
    const PassCosts& costs = chunk.of(split_[at].contains(pass));
    const Seconds copies = costs.copies_out[part];
    if (copies <= Seconds(0)) return begin + costs.times[part];
    const Seconds behind = std::max(Seconds(0), link_free_[at] - begin);
    link_free_[at] = begin + behind + copies;
    return begin + behind + costs.times[part];
  }

  VirtualPipeline pipeline_;
  const std::vector<RankProgram>& stages_;
  const std::vector<std::vector<ChunkTimes>>& times_;
  std::vector<SplitMicroBatches> split_;  ///< by stage
  std::map<Key, Seconds> ended_;          ///< when passes did
  std::vector<Seconds> link_free_;        ///< by stage, of copies out
};

}  // namespace

PassTimes base_times(const StageGraph& graph) {
  const remat::Schedule all_once = remat::make_planner("none")->plan(graph.graph, {}).schedule;
  return planned_times(graph, all_once, remat::replay(graph.graph, all_once, {}));
}

PassTimes planned_times(const StageGraph& graph, const remat::Schedule& schedule,
                        const remat::ReplayResult& cost) {
  PassTimes times;
  std::size_t part = 0;
  for (const remat::Step& step : schedule) {
    if (step.action != remat::Action::compute) continue;
    const OpGroup& group = graph.groups[static_cast<std::size_t>(step.id)];
    if (group.kind == OpGroup::Kind::other_micro_batches) ++part;
    times[part] += seconds(graph.graph.time(step.id));
  }
  const remat::Nanoseconds forward = cost.forward_stall + cost.forward_awaited;
  times[kForward] += seconds(forward);
  times[kBackward] += seconds(cost.stall + cost.awaited - forward);
  return times;
}

PassTimes copies_out(const StageGraph& graph, const remat::Schedule& schedule,
                     const remat::HostLink& link) {
  PassTimes times;
  std::size_t part = 0;
  for (const remat::Step& step : schedule) {
    if (step.action == remat::Action::copy_out)
      times[part] += seconds(link.copy_time(graph.graph.size(step.id)));
    else if (step.action == remat::Action::compute &&
             graph.groups[static_cast<std::size_t>(step.id)].kind ==
                 OpGroup::Kind::other_micro_batches)
      ++part;
  }
  return times;
}

Seconds pipeline_time(const StepOptions& step, const std::vector<RankProgram>& stages,
                      const std::vector<std::vector<ChunkTimes>>& times) {
  return PipelineWalk(step, stages, times).run();
}

}  // namespace tessera
