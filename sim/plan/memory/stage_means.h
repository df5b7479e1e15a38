#pragma once

#include <vector>

#include "sim/plan/memory/optimizer_offload.h"
#include "sim/plan/memory/planned_stage.h"

namespace tessera {

/// Plans a stage with what the scenario allows beyond recomputation and copies of activations
/// (memory.packing and those that save less, memory.optimizer_states): without, with each, and with
/// both; the fastest that fits is taken.
class StageMeans {
 public:
  /// `scenario` and `planner` must outlive it.
  StageMeans(const Scenario& scenario, const remat::HostLink& link, Bytes host_bytes,
             const OpTime& time, PassStyle style)
      : scenario_(scenario), link_(link), host_bytes_(host_bytes), time_(time), style_(style) {}

  void plan(StageMemoryPlan& plan, StagePlanner& planner, TimedProgram& timed);

  /// Of copies of the states, behind the passes.
  Seconds offload() const { return offload_; }
  /// Segments that no predictor knows.
  const std::vector<DriveTransfer>& drives() const { return drives_; }

 private:
  struct Variant {
    bool offloads = false;
    StageMemoryPlan plan;
    RankProgram stage;
    std::vector<DriveTransfer> drives;
    Seconds offload;
    Seconds time;  ///< of the step's micro-batches and the copies of states
  };
  Variant tried(Variant variant, StagePlanner& planner, TimedProgram& timed) const;

  const Scenario& scenario_;
  remat::HostLink link_;
  Bytes host_bytes_;
  const OpTime& time_;
  PassStyle style_;
  Seconds offload_;
  std::vector<DriveTransfer> drives_;
};

}  // namespace tessera
