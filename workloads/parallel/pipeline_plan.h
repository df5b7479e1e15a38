#pragma once

#include <vector>

#include "workloads/schedules/schedule.h"

namespace tessera {

/// Messages of a stage between two of its passes.
struct Exchange {
  std::vector<ScheduledPass> sent;      ///< whose results leave for another stage
  std::vector<ScheduledPass> received;  ///< whose inputs come from one
  /// The host waits: once for the whole exchange where `together`, else for each message by itself.
  bool host_waits = false;
  bool together = false;
  bool behind_kernels = false;  ///< receives begin when the compute stream got there
};

/// A pass with the messages behind it.
struct PlannedPass {
  ScheduledPass pass;
  Exchange behind;
};

/// What a stage does, in order, with each message sent once and received once.
struct PipelinePlan {
  Exchange first;  ///< ahead of all passes
  std::vector<PlannedPass> passes;
};

/// Messages of stage `stage` as the framework exchanges them. gpipe and 1F1B (Megatron r0.5.0): the
/// host waits for every exchange, and transfers in opposite directions between a forward and a
/// backward pass go together. Interleaved 1F1B: the same, all four transfers of a forward and a
/// backward pass together, or, with `framework.overlap_p2p`, sent behind the pass that made them
/// and awaited on the device ahead of the pass that needs them. Zero bubble and DualPipe: always
/// so. torch.distributed.pipelining awaits messages on the device; those of gpipe and 1F1B still
/// begin behind the kernels that were launched before.
PipelinePlan plan_pipeline(const StepOptions& step, int stage);

}  // namespace tessera
