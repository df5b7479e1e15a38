#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "sim/engine/communication/communication_plan.h"
#include "sim/engine/device/gpu.h"
#include "sim/engine/device/host_process.h"
#include "sim/engine/network/simgrid_run.h"
#include "sim/engine/stage_parts.h"

namespace tessera {

/// One step, wired together. `timed` must have passed check_program().
class Simulation {
 public:
  explicit Simulation(const TimedProgram& timed, MemorySamples samples = MemorySamples::all);

  /// The ranks that are simulated, ascending; they stand for the others.
  std::span<const int> ranks() const { return plan_.folding().simulated; }

  /// Once. Host processes begin in the order of `ranks`, which must not matter: a permutation of
  /// `ranks()`.
  Timeline run(std::span<const int> ranks);

 private:
  void create_gpus(MemorySamples samples);
  void limit_time();
  /// Every host process that has launches left, as an actor.
  void create_actors(std::span<const int> ranks, SharedLinks& simgrid);
  std::size_t place_of(int rank) const;
  void throw_if_out_of_time() const;
  void throw_if_out_of_memory() const;
  void throw_if_blocked() const;
  Timeline collect();

  const TimedProgram& timed_;
  CommunicationPlan plan_;
  OpRecords records_;                ///< by rank and op
  std::vector<StageQueues> queues_;  ///< by stage
  std::vector<StageMemory> memory_;  ///< by stage; empty where memory is not limited
  LinkPaths link_paths_;
  SimGridRun simgrid_;
  SimClock clock_;
  FlowNetwork network_;
  Transfers transfers_;
  CollectiveBoard collectives_;
  MessageBoard messages_;
  DeviceContext context_;
  std::deque<Gpu> gpus_;  ///< in the order of ranks()
  std::deque<HostProcess> hosts_;
  bool out_of_time_ = false;
  Seconds simulated_time_;  ///< when time ran out
};

}  // namespace tessera
