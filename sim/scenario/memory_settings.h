#pragma once

#include <cstdint>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// Who chooses what leaves a GPU that runs short while the step runs.
enum class PressurePolicy : std::uint8_t { rule, planner, dtr, capuchin };

/// What a plan may pack while it waits for backward.
enum class ActivationPacking : std::uint8_t { as_it_is, masks, eight_bit };

/// Where a plan may have optimizer states between updates.
enum class OptimizerStates : std::uint8_t { on_gpu, on_host, on_nvme };

/// Who chooses what a step runs again and what it copies to host memory: one of sim/remat, of
/// Megatron's options, or the optimizer's states alone.
enum class MemoryPlanner : std::uint8_t {
  off,
  tessera,
  libra,
  none,  ///< keeps everything: what does not fit has no plan
  chen_sqrt,
  chen_greedy,
  rotor,
  knapsack,
  dtr,
  capuchin,
  belady,
  megatron_block,
  megatron_uniform,
  optimizer_offload,
  cpu_optimizer,
};

/// The section `memory` of a scenario: what happens where a step does not fit.
struct MemorySettings {
  MemoryPlanner planner = MemoryPlanner::off;
  Bytes budget;           ///< per GPU, for everything the allocator holds; 0 = the GPU's memory
  bool swap = true;       ///< tensors may be copied to host memory
  bool recompute = true;  ///< under `limit`, tensors may be given up and made again
  Bytes host_memory;      ///< per GPU for copies; 0 = its share of the node's
  bool thorough = true;   ///< how long planners search
  Bytes limit;            ///< per GPU, at run time: tensors leave where a step would take more; 0 =
                          ///< the budget of a plan, else none
  int layers = 0;         ///< of Megatron's planners; 0: the number that fits and costs least
  PressurePolicy pressure = PressurePolicy::rule;  ///< under the limit
  ActivationPacking packing = ActivationPacking::as_it_is;
  OptimizerStates optimizer_states = OptimizerStates::on_gpu;
  int split_batch = 1;  ///< a plan may run micro-batches in up to so many parts
  // The plan was made for a step with these, and is carried out on another; 0: on the same.
  std::int64_t planned_sequence_length = 0;  ///< tokens
  double planned_expert_imbalance = 0;       ///< >= 1, as StepOptions::expert_imbalance
  bool operator==(const MemorySettings&) const = default;
};

}  // namespace tessera
