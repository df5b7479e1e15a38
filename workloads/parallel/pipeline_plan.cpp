#include "workloads/parallel/pipeline_plan.h"

#include <algorithm>
#include <utility>

#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {
namespace {

class PipelinePlanner {
 public:
  PipelinePlanner(const StepOptions& step, int stage)
      : step_(step), stage_(stage), pipeline_(step) {}

  PipelinePlan run() {
    for (const ScheduledPass& pass : order()) plan_.passes.push_back({pass, {}});
    if (step_.schedule == PipelineSchedule::interleaved_1f1b && !step_.framework.overlap_p2p) {
      exchange_in_rounds();
    } else {
      exchange_pass_by_pass();
    }
    return std::move(plan_);
  }

 private:
  std::vector<ScheduledPass> order() const;
  void exchange_pass_by_pass();
  void exchange_in_rounds();

  bool gives(const ScheduledPass& pass) const {
    const ModelChunk chunk{stage_, pass.chunk};
    return meets(pass, is_forward(pass) ? pipeline_.behind(chunk) : pipeline_.before(chunk));
  }
  bool takes(const ScheduledPass& pass) const {
    const ModelChunk chunk{stage_, pass.chunk};
    return meets(pass, is_forward(pass) ? pipeline_.before(chunk) : pipeline_.behind(chunk));
  }
  /// At the tip of a V both chunks are the stage's own, and nothing travels.
  bool meets(const ScheduledPass& pass, const std::optional<ModelChunk>& other) const {
    return pass.direction != PassDirection::weight_gradient && other && other->stage != stage_;
  }
  void send(Exchange& exchange, const ScheduledPass& pass) const {
    if (gives(pass)) exchange.sent.push_back(pass);
  }
  void receive(Exchange& exchange, const ScheduledPass& pass) const {
    if (takes(pass)) exchange.received.push_back(pass);
  }
  /// For the first pass from `from` on in the direction.
  void receive_next(Exchange& exchange, std::size_t from, PassDirection direction) const {
    const auto next =
        std::find_if(plan_.passes.begin() + static_cast<std::ptrdiff_t>(from), plan_.passes.end(),
                     [&](const PlannedPass& later) { return later.pass.direction == direction; });
    if (next != plan_.passes.end()) receive(exchange, next->pass);
  }
  PipelineShape shape() const {
    return {step_.layout.pipeline, static_cast<int>(step_.micro_batches()),
            step_.layout.virtual_stages, step_.framework.overlap_experts ? 1 : 0};
  }

  const StepOptions& step_;
  int stage_;
  VirtualPipeline pipeline_;
  PipelinePlan plan_;
};

std::vector<ScheduledPass> PipelinePlanner::order() const {
  const bool interleaved = step_.schedule == PipelineSchedule::interleaved_1f1b;
  if (step_.mode != StepMode::inference) return schedule_passes(step_.schedule, stage_, shape());
  if (!interleaved) return forward_only(shape().micro_batches);
  std::vector<ScheduledPass> passes = interleaved_1f1b(stage_, shape());
  std::erase_if(passes, [](const ScheduledPass& pass) { return !is_forward(pass); });
  return passes;
}

void PipelinePlanner::exchange_pass_by_pass() {
  const bool in_turn =
      step_.schedule == PipelineSchedule::gpipe || step_.schedule == PipelineSchedule::one_f_one_b;
  // Where NCCL's work alone is waited for, streams wait and hosts go on (ProcessGroupNCCL.cpp).
  const FrameworkProfile& profile = step_.framework;
  const bool streams_wait = profile.records_streams && !profile.blocking_messages;
  const bool waits = in_turn && !profile.splits_stages && !streams_wait;
  std::vector<PlannedPass>& passes = plan_.passes;
  plan_.first.host_waits = waits;
  plan_.first.behind_kernels = in_turn;
  receive(plan_.first, passes.front().pass);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    Exchange& exchange = passes[i].behind;
    exchange.host_waits = waits;
    exchange.behind_kernels = in_turn;
    send(exchange, passes[i].pass);
    if (i + 1 == passes.size()) break;
    receive(exchange, passes[i + 1].pass);
    exchange.together = is_forward(passes[i].pass) != is_forward(passes[i + 1].pass);
  }
}

/// Between warm-up and drain: rounds of a forward and a backward pass with one exchange for both.
void PipelinePlanner::exchange_in_rounds() {
  std::vector<PlannedPass>& passes = plan_.passes;
  const bool training = step_.mode != StepMode::inference;
  const auto warm_up =
      training ? static_cast<std::size_t>(interleaved_warm_up(stage_, shape())) : passes.size();
  const std::size_t rounds_end = passes.size() - (training ? warm_up : 0);
  plan_.first.host_waits = plan_.first.behind_kernels = true;
  receive(plan_.first, passes.front().pass);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool in_round = i >= warm_up && i < rounds_end;
    if (in_round && is_forward(passes[i].pass)) continue;
    Exchange& exchange = passes[i].behind;
    exchange.host_waits = exchange.together = exchange.behind_kernels = true;
    if (in_round) send(exchange, passes[i - 1].pass);
    send(exchange, passes[i].pass);
    receive_next(exchange, i + 1, PassDirection::forward);
    if (i + 1 >= warm_up) receive_next(exchange, i + 1, PassDirection::backward);
  }
}

}  // namespace

PipelinePlan plan_pipeline(const StepOptions& step, int stage) {
  return PipelinePlanner(step, stage).run();
}

}  // namespace tessera
