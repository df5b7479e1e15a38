#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/plan/memory/memory_plan.h"

namespace tessera {

/// Most passes over model chunks of `stage` that wait for the rest of their micro-batch's work at
/// once, the one that runs included.
int in_flight(const RankProgram& stage);

/// The plans to be made for `stage`: of every model chunk's micro-batches with whole and with split
/// backward passes, as far as the stage has them.
std::vector<ChunkMemoryPlan> unplanned_chunks(const ModelGraph& graph, const StepOptions& step,
                                              const RankProgram& stage);

/// What no plan of `stage` goes below: what it holds all the time, and the working set of one
/// operator.
Bytes least_memory(const ModelGraph& graph, const StepOptions& step, const RankProgram& stage,
                   Bytes workspaces);

/// Sets the times of a stage whose passes stay as they are.
void leave_alone(StageMemoryPlan& plan, const OpTime& time);

/// Plans of a step's stages, so that equal problems are solved once: the stages in the middle of
/// DualPipe, and chunks of equal layers, as interleaved schedules have many of.
class KnownPlans {
 public:
  /// The answer to `request` for a graph that is the same to a planner; null where none is known.
  const remat::PlanResult* find(const remat::Graph& graph, const remat::PlanRequest& request,
                                int depth) const;
  void add(const remat::Graph& graph, const remat::PlanRequest& request, int depth,
           const remat::PlanResult& result);
  /// What no plan of `graph` can beat, as one that takes `time` is known (remat::time_bound).
  remat::Nanoseconds bound(const remat::Graph& graph, const remat::PlanRequest& request,
                           remat::Nanoseconds time);

 private:
  struct Known {
    remat::Graph graph;
    remat::PlanRequest request;
    remat::PlanResult result;
  };
  struct Bounded {
    remat::Graph graph;
    remat::PlanRequest request;
    remat::Nanoseconds time = 0, bound = 0;
  };
  using Key = std::tuple<remat::ByteCount, remat::Nanoseconds, int, int>;
  static Key key_of(const remat::Graph& graph, int depth) {
    return {graph.static_bytes(), graph.base_time(), graph.ops(), depth};
  }

  std::multimap<Key, Known> known_;
  std::multimap<Key, Bounded> bounds_;
};

/// Plans the micro-batches of one stage: all of a chunk alike. Those that wait may each hold an
/// equal share of what is left. Plans of few sweeps say which shares are worth more; of those the
/// one with the fastest plans is taken.
class StagePlanner {
 public:
  /// `settings`, `time` and `known` must outlive it; `drafts` and `certifies` as PlanManner has
  /// them.
  StagePlanner(const MemorySettings& settings, const remat::HostLink& link, Bytes budget,
               Bytes host_bytes, const OpTime& time, KnownPlans& known, bool drafts, bool certifies)
      : settings_(settings),
        link_(link),
        budget_(budget),
        host_bytes_(host_bytes),
        time_(time),
        known_(known),
        drafts_(drafts && settings.planner == MemoryPlanner::tessera),
        certifies_(certifies) {}

  Bytes budget() const { return budget_; }
  const OpTime& time() const { return time_; }
  /// The rate of a plan's copies; 0 where it makes none.
  BytesPerSecond copies() const {
    return BytesPerSecond(settings_.swap ? link_.bytes_per_ns * 1e9 : 0);
  }
  void plan(StageMemoryPlan& result);
  /// Whether plan_layers() may do better than plan().
  bool has_plans_by_layers(const StageMemoryPlan& plan) const {
    return settings_.planner == MemoryPlanner::tessera && plan.in_flight == 1;
  }
  /// As Megatron's block recomputation, with as many layers as it takes. Layers run again right
  /// ahead of their backward passes, so that no plan holds gathered parameters for less time.
  void plan_layers(StageMemoryPlan& result);
  /// How far the plan may be from the fastest one.
  void certify(StageMemoryPlan& plan);

 private:
  struct Attempt {
    StageGraph graph;
    remat::PlanResult result;
  };
  /// One of each chunk.
  using Attempts = std::vector<Attempt>;
  enum class Depth : std::uint8_t { draft, fast, thorough, layers };

  static bool is_better(const Attempts& a, const Attempts& b);
  static bool is_feasible(const Attempts& attempts);
  /// The share that the fastest plans of those that wait leave each.
  Attempts best_of_shares(Bytes most) const;
  /// Where no micro-batch waits for another.
  Attempts without_waiting(Depth depth) const;
  Attempts attempt(Bytes share, Depth depth) const;
  StageGraph graph_of(const ChunkMemoryPlan& chunk, Bytes share) const;
  Bytes least_of_any_plan(const StageOps& ops) const;
  remat::PlanResult solved_once(const StageOps& ops, const StageGraph& graph, Depth depth) const;
  remat::PlanResult solve(const StageOps& ops, const StageGraph& graph, Depth depth) const;
  remat::PlanRequest request(Depth depth) const;
  void accept(Attempts made);
  void refuse(const Attempt& made);

  const MemorySettings& settings_;
  remat::HostLink link_;
  Bytes budget_, host_bytes_;
  const OpTime& time_;
  KnownPlans& known_;
  bool drafts_, certifies_;
  StageMemoryPlan* plan_ = nullptr;
};

}  // namespace tessera
