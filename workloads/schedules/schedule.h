#pragma once

#include <cstdint>
#include <vector>

#include "workloads/step_options.h"

namespace tessera {

enum class PassDirection : std::uint8_t {
  forward,
  backward,         ///< gradients of inputs and weights
  input_gradient,   ///< the part of backward that the stage before waits for
  weight_gradient,  ///< the rest, which can run any time later
};

/// One micro-batch through one model chunk of a stage, one way.
struct ScheduledPass {
  PassDirection direction = PassDirection::forward;
  int micro_batch = 0;
  int chunk = 0;  ///< of the stage's model chunks; a stage without virtual stages has one
  auto operator<=>(const ScheduledPass&) const = default;
};

constexpr bool is_forward(const ScheduledPass& pass) {
  return pass.direction == PassDirection::forward;
}

/// Sizes that a schedule depends on.
struct PipelineShape {
  int stages = 1;
  int micro_batches = 1;
  int virtual_stages = 1;  ///< model chunks per stage of the interleaved schedule
  int ahead = 0;           ///< forward passes that 1F1B and the interleaved schedule run beyond the
                           ///< usual ones ahead of the first backward
};

/// Order of the passes of stage `stage`.
std::vector<ScheduledPass> schedule_passes(PipelineSchedule schedule, int stage,
                                           const PipelineShape& shape);

/// All forward passes, then all backward passes; keeps every micro-batch's activations.
/// Source: Huang et al., "GPipe", NeurIPS 2019.
std::vector<ScheduledPass> gpipe(int micro_batches);

/// As few forward passes as keep the last stage busy, then one backward after each forward; keeps
/// min(micro_batches, stages - stage) activations.
/// Source: Narayanan et al., "PipeDream-Flush", ICML 2021; Megatron
/// core/pipeline_parallel/schedules.py.
std::vector<ScheduledPass> one_f_one_b(int stage, int stages, int micro_batches, int ahead = 0);

/// 1F1B over model chunks: micro-batches go through the chunks in groups of `stages`, so the bubble
/// shrinks to 1 / virtual_stages. `micro_batches` is a multiple of `stages`. The first stage keeps
/// stages * virtual_stages + stages - 1 chunks' activations, or all where there are fewer.
/// Source: Narayanan et al., SC 2021; Megatron-Core,
/// forward_backward_pipelining_with_interleaving (up to 2024 it ran all forward passes first where
/// there are as many micro-batches as stages: the same time, more memory on the later stages).
std::vector<ScheduledPass> interleaved_1f1b(int stage, const PipelineShape& shape);
/// Forward passes that it runs ahead of the first backward.
int interleaved_warm_up(int stage, const PipelineShape& shape);

/// 1F1B whose stage s keeps s weight gradients for the time when it would wait: bubble
/// (stages - 1) (F + B - W) with the activations of 1F1B's first stage on every stage.
/// Source: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2.1.
std::vector<ScheduledPass> zero_bubble_h1(int stage, int stages, int micro_batches);

/// Twice the forward passes in the warm-up and twice the weight gradients kept: no stage waits
/// between its first and its last pass where F = B = W, with 2 stages - 1 activations.
/// Source: ibid., section 2.2.
std::vector<ScheduledPass> zero_bubble_h2(int stage, int stages, int micro_batches);

/// Zero bubble over two model chunks per stage that lie in a V: chunk 1 of stage s holds the part
/// behind that of chunk 1 of stage s + 1, and the last stage's chunks are neighbours. No stage
/// waits between its first and its last pass where F = B = W; a stage keeps 2 * stages chunks'
/// activations at most, which are as many as 1F1B's first stage keeps. Source: Qi et al., "Pipeline
/// Parallelism with Controllable Memory", 2024; PyTorch, distributed/pipelining/schedules.py,
/// ScheduleZBVZeroBubble (recalled).
std::vector<ScheduledPass> zero_bubble_v(int stage, int stages, int micro_batches);

/// Two pipelines in opposite directions over two copies of the model: chunk 0 of a stage belongs to
/// the one from the first stage to the last, chunk 1 to the other; each takes half of the
/// micro-batches, the first half the first. `stages` and `micro_batches` are even, micro-batches at
/// least 2 * stages. A forward and a backward pass that DualPipe overlaps run one after the other.
/// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.2.1, and its DualPipe code.
std::vector<ScheduledPass> dual_pipe(int stage, int stages, int micro_batches);

/// Inference.
std::vector<ScheduledPass> forward_only(int micro_batches);

}  // namespace tessera
