#pragma once

#include <limits>

#include "sim/remat/planner.h"

namespace tessera::remat {

/// Keeps everything.
class NonePlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// Chen et al. 2016: keep every ceil(sqrt(n))-th of the n tensors that alone carry the forward pass
/// on (articulation points), run the segments between them again when the backward pass comes.
class ChenSqrtPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// Chen et al. 2016, algorithm 3: cut where the bytes since the last cut exceed b, at articulation
/// points; the fastest b of a geometric sweep that fits.
class ChenGreedyPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// PyTorch's memory budget (torch.compile, activation_memory_budget): which forward tensors to
/// save is a 0-1 knapsack of their producers' times and sizes, solved by dynamic programming over
/// 10000 quantised sizes. Chains and transient peaks are not in its model. The largest budget
/// fraction of 0, 1/32, ..., 1 whose replayed plan fits.
class KnapsackPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// Dynamic tensor rematerialization (Kirisame et al. 2021) with h_DTR_eq: online, evict the tensor
/// of the least (own + evicted neighbourhood's time) / (size x staleness) when memory is short.
/// Tensors go at their last use in the program.
class DtrPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// Capuchin (Peng et al. 2020): swap the tensors whose copies hide best (largest free time), then
/// what is cheaper of stalling and of running again by saved bytes per time.
class CapuchinPlanner : public Planner {
 public:
  /// `most`: plans that are looked at, each with a lower peak than the one before.
  explicit CapuchinPlanner(int most = std::numeric_limits<int>::max()) : most_(most) {}
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;

 private:
  int most_;
};

/// Swapping alone: at every peak, the tensors that are needed last go to the host; copies back as
/// early as memory permits (SwapAdvisor's rule after Belady).
class BeladyPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// rotor (Beaumont et al. 2019): optimal persistent schedules of a chain by dynamic programming
/// over quantised memory, on the chain of blocks between the articulation points of the forward
/// pass.
class RotorPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

/// The exact search of recomputation in program order, for graphs of at most 20 operators.
class ExactPlanner : public Planner {
 public:
  PlannedSchedule plan(const Graph& graph, const PlanRequest& request) const override;
};

}  // namespace tessera::remat
