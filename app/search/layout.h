#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/scenario/scenario.h"

namespace tessera {

/// One way to lay a step out over GPUs: what a search varies of a scenario.
struct Layout {
  int tensor = 1;
  int pipeline = 1;
  int virtual_stages = 1;
  int data = 1;
  int context = 1;
  int expert = 1;
  bool sequence_parallel = false;
  Sharding sharding = Sharding::none;
  bool gather_units = false;  ///< with Sharding::gradients: FSDP's SHARD_GRAD_OP
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  Recompute recompute = Recompute::none;
  std::int64_t micro_batch = 1;
  bool ends_as_layers = false;  ///< embedding and head each take the place of a layer in the split
  bool planned = false;         ///< a memory plan makes it fit; with Recompute::none alone
  auto operator<=>(const Layout&) const = default;

  int gpus() const { return tensor * pipeline * data * context; }
};

/// Lays `step` out so; a memory plan is not part of it.
void apply(const Layout& layout, StepOptions& step);
/// `memory` with the planner of planned layouts: the one of shortest search, within the budget of
/// the scenario or else the GPU's memory.
MemorySettings with_plan(MemorySettings memory);
/// `base` laid out so.
Scenario laid_out(const Scenario& base, const Layout& layout);

/// "tp 8 pp 16 x 2 dp 8 sp, micro-batch 1, interleaved_1f1b, ZeRO-1, selective": sizes of 1 and
/// what is off are left out.
std::string to_text(const Layout& layout);

/// The same as fields of a scenario: "parallelism.tensor=8 ...", as --set takes them.
std::string to_settings(const Layout& layout);

}  // namespace tessera
