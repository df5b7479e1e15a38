#pragma once

#include <cstdint>
#include <vector>

#include "workloads/step_options.h"

namespace tessera {

enum class PassDirection : std::uint8_t { forward, backward };

/// One micro-batch through one stage, one way.
struct ScheduledPass {
  PassDirection direction = PassDirection::forward;
  int micro_batch = 0;
  bool operator==(const ScheduledPass&) const = default;
};

/// Order of the passes of stage `stage` of `stages`.
std::vector<ScheduledPass> schedule_passes(PipelineSchedule schedule, int stage, int stages,
                                           int micro_batches);

/// All forward passes, then all backward passes; keeps every micro-batch's activations.
/// Source: Huang et al., "GPipe", NeurIPS 2019.
std::vector<ScheduledPass> gpipe(int micro_batches);

/// As few forward passes as keep the last stage busy, then one backward after each forward; keeps
/// min(micro_batches, stages - stage) activations.
/// Source: Narayanan et al., "PipeDream-Flush", ICML 2021; Megatron
/// core/pipeline_parallel/schedules.py.
std::vector<ScheduledPass> one_f_one_b(int stage, int stages, int micro_batches);

/// Inference.
std::vector<ScheduledPass> forward_only(int micro_batches);

}  // namespace tessera
