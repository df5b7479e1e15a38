#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "workloads/schedules/schedule.h"
#include "workloads/schedules/virtual_pipeline.h"

namespace tessera::test {

/// Times of a pass over one model chunk. A whole backward pass takes both gradients' time.
struct PassTimes {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
  /// A forward pass and the backward pass behind it begin and end together, as in DualPipe.
  bool in_pairs = false;
};

/// Runs a schedule without kernels and network: a pass starts when the one before it on its stage
/// and the one whose result it works on have ended.
class UnitPipeline {
 public:
  UnitPipeline(const StepOptions& step, PassTimes times) : times_(times), pipeline_(step) {
    const PipelineShape shape{step.layout.pipeline, static_cast<int>(step.micro_batches()),
                              step.layout.virtual_stages};
    for (int stage = 0; stage < shape.stages; ++stage)
      orders_.push_back(schedule_passes(step.schedule, stage, shape));
    starts_.resize(orders_.size());
    free_at_.resize(orders_.size());
    while (sweep()) {
    }
  }

  /// Passes that never ran: a deadlock.
  std::size_t left() const {
    std::size_t left = 0;
    for (std::size_t stage = 0; stage < orders_.size(); ++stage)
      left += orders_[stage].size() - starts_[stage].size();
    return left;
  }
  double makespan() const { return *std::max_element(free_at_.begin(), free_at_.end()); }
  /// From the stage's first pass to the end of its last.
  double span(int stage) const {
    const auto at = static_cast<std::size_t>(stage);
    return free_at_[at] - starts_[at].front();
  }
  double busy(int stage) const {
    double sum = 0;
    for (const ScheduledPass& pass : order(stage)) sum += time_of(pass);
    return sum;
  }
  const std::vector<ScheduledPass>& order(int stage) const {
    return orders_[static_cast<std::size_t>(stage)];
  }
  /// Most activations at once, in model chunks: from a forward pass to the end of its backward.
  int most_held(int stage) const {
    int held = 0;
    int most = 0;
    for (const ScheduledPass& pass : order(stage)) {
      if (pass.direction == PassDirection::forward) most = std::max(most, ++held);
      if (pass.direction == PassDirection::backward) --held;
      if (pass.direction == PassDirection::weight_gradient) --held;
    }
    return most;
  }

 private:
  double time_of(const ScheduledPass& pass) const {
    switch (pass.direction) {
      case PassDirection::forward:
        return times_.forward;
      case PassDirection::backward:
        return times_.input_gradient + times_.weight_gradient;
      case PassDirection::input_gradient:
        return times_.input_gradient;
      case PassDirection::weight_gradient:
        return times_.weight_gradient;
    }
    return 0;
  }

  /// When the pass can start at the earliest; empty: not known yet.
  std::optional<double> ready(int stage, const ScheduledPass& pass) const {
    const ModelChunk chunk{stage, pass.chunk};
    if (pass.direction == PassDirection::weight_gradient)
      return end_of(chunk, PassDirection::input_gradient, pass.micro_batch);
    const bool forward = pass.direction == PassDirection::forward;
    const auto giver = forward ? pipeline_.before(chunk) : pipeline_.behind(chunk);
    if (giver) return end_of(*giver, pass.direction, pass.micro_batch);
    if (forward) return 0;
    return end_of(chunk, PassDirection::forward, pass.micro_batch);
  }

  /// Of a forward pass, or of the pass that made the gradient of the input.
  std::optional<double> end_of(ModelChunk chunk, PassDirection direction, int micro_batch) const {
    const bool forward = direction == PassDirection::forward;
    const auto found = ends_.find({chunk.stage, chunk.chunk, forward, micro_batch});
    return found == ends_.end() ? std::nullopt : std::optional(found->second);
  }

  bool sweep() {
    bool progress = false;
    for (std::size_t stage = 0; stage < orders_.size(); ++stage) {
      while (starts_[stage].size() < orders_[stage].size() && run_next(static_cast<int>(stage)))
        progress = true;
    }
    return progress;
  }

  bool run_next(int stage) {
    const auto at = static_cast<std::size_t>(stage);
    const std::size_t first = starts_[at].size();
    const bool pair = times_.in_pairs && first + 1 < orders_[at].size() &&
                      orders_[at][first].direction == PassDirection::forward &&
                      orders_[at][first + 1].direction == PassDirection::backward;
    const std::span passes(&orders_[at][first], pair ? 2 : 1);
    double start = free_at_[at];
    double end = 0;
    for (const ScheduledPass& pass : passes) {
      const std::optional<double> from = ready(stage, pass);
      if (!from) return false;
      start = std::max(start, *from);
      end += time_of(pass);
    }
    free_at_[at] = end += start;
    for (const ScheduledPass& pass : passes) {
      starts_[at].push_back(start);
      if (pass.direction == PassDirection::weight_gradient) continue;
      ends_[{stage, pass.chunk, pass.direction == PassDirection::forward, pass.micro_batch}] = end;
    }
    return true;
  }

  PassTimes times_;
  VirtualPipeline pipeline_;
  std::vector<std::vector<ScheduledPass>> orders_;
  std::vector<std::vector<double>> starts_;
  std::vector<double> free_at_;
  std::map<std::tuple<int, int, bool, int>, double> ends_;
};

}  // namespace tessera::test
