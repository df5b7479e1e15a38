#include "workloads/parallel/stage_program.h"

#include <algorithm>
#include <utility>

#include "workloads/optimizers/optimizer_step.h"
#include "workloads/parallel/op_queue.h"
#include "workloads/schedules/schedule.h"

namespace tessera {
namespace {

/// A gradient norm.
constexpr Bytes kScalar(4);

class StageProgram {
 public:
  StageProgram(PassLibrary& library, const StepOptions& step, int stage)
      : library_(library),
        graph_(library.graph()),
        step_(step),
        stage_(stage),
        stages_(step.layout.pipeline),
        blocks_(blocks_of_stage(graph_, stage, stages_)) {}

  RankProgram build() &&;

 private:
  void count_memory();
  std::vector<ScheduledPass> passes() const;
  void run_passes();
  void run(const ScheduledPass& pass);
  void run_block(int position, const ScheduledPass& pass);
  void exchange(const ScheduledPass& done, const ScheduledPass& next);
  StageMessage message(const ScheduledPass& pass, int from, int to) const;
  void receive_for(const ScheduledPass& pass);
  void send_after(const ScheduledPass& pass, bool host_sync);
  void reduce_gradients(const OptimizerStep& optimizer);
  void reduce_scalar();
  void run_ops(const std::vector<GraphOp>& ops, const std::string& name) {
    queue_.run(library_.cut(ops, name), -1, -1);
  }
  /// The stage that a pass's input comes from, and that its output goes to.
  int before(PassDirection direction) const {
    return direction == PassDirection::forward ? stage_ - 1 : stage_ + 1;
  }
  int behind(PassDirection direction) const {
    return direction == PassDirection::forward ? stage_ + 1 : stage_ - 1;
  }
  bool exists(int stage) const { return stage >= 0 && stage < stages_; }

  PassLibrary& library_;
  const ModelGraph& graph_;
  const StepOptions& step_;
  int stage_;
  int stages_;
  StageBlocks blocks_;
  OpQueue queue_;
  RankProgram program_;
};

void StageProgram::count_memory() {
  Bytes buffers = graph_.shared_buffers;
  for (int position = blocks_.begin; position < blocks_.end; ++position) {
    program_.parameters += graph_.at(position).parameters;
    buffers += graph_.at(position).buffers;
  }
  program_.static_memory = buffers + Bytes(bytes_per_parameter(step_) * program_.parameters);
}

std::vector<ScheduledPass> StageProgram::passes() const {
  const int micro_batches = static_cast<int>(step_.micro_batches());
  if (step_.mode == StepMode::inference) return forward_only(micro_batches);
  return schedule_passes(step_.schedule, stage_, stages_, micro_batches);
}

void StageProgram::run_block(int position, const ScheduledPass& pass) {
  const bool forward = pass.direction == PassDirection::forward;
  const bool at_begin = position == blocks_.begin;
  const bool at_end = position == blocks_.end - 1;
  const bool sets_to_none =
      step_.framework.gradients_set_to_none && step_.mode == StepMode::training;
  PassVariant variant;
  variant.block = graph_.order[static_cast<std::size_t>(position)];
  variant.direction = pass.direction;
  variant.starts_with_message = (forward ? at_begin : at_end) && exists(before(pass.direction));
  variant.ends_with_message = (forward ? at_end : at_begin) && exists(behind(pass.direction));
  if (!forward && sets_to_none && pass.micro_batch == 0) {
    variant.gradients = GradientArrival::stored;
  }
  const int layer = graph_.layer_numbers[static_cast<std::size_t>(position)];
  queue_.run(library_.pass(variant), pass.micro_batch, layer);
}

void StageProgram::run(const ScheduledPass& pass) {
  if (pass.direction == PassDirection::forward) {
    for (int p = blocks_.begin; p < blocks_.end; ++p) run_block(p, pass);
  } else {
    for (int p = blocks_.end; p-- > blocks_.begin;) run_block(p, pass);
  }
}

StageMessage StageProgram::message(const ScheduledPass& pass, int from, int to) const {
  StageMessage result;
  const bool forward = pass.direction == PassDirection::forward;
  result.phase = forward ? Phase::forward : Phase::backward;
  result.peer_stage = from == stage_ ? to : from;
  result.tag = (2 * pass.micro_batch + (forward ? 0 : 1)) * stages_ + std::min(from, to);
  result.micro_batch = pass.micro_batch;
  result.bytes = graph_.hidden_bytes;
  return result;
}

void StageProgram::receive_for(const ScheduledPass& pass) {
  const int from = before(pass.direction);
  if (!exists(from)) return;
  StageMessage incoming = message(pass, from, stage_);
  incoming.host_sync = true;
  queue_.receive(incoming);
}

void StageProgram::send_after(const ScheduledPass& pass, bool host_sync) {
  const int to = behind(pass.direction);
  if (!exists(to)) return;
  StageMessage outgoing = message(pass, stage_, to);
  outgoing.host_sync = host_sync;
  queue_.send(outgoing);
}

void StageProgram::exchange(const ScheduledPass& done, const ScheduledPass& next) {
  const bool turns_round = done.direction != next.direction;
  const bool paired = turns_round && exists(before(next.direction));
  send_after(done, !paired);  // of a pair, the host waits for the receive
  receive_for(next);
}

void StageProgram::run_passes() {
  const std::vector<ScheduledPass> order = passes();
  receive_for(order.front());
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    run(order[i]);
    exchange(order[i], order[i + 1]);
  }
  run(order.back());
  send_after(order.back(), true);
}

void StageProgram::reduce_gradients(const OptimizerStep& optimizer) {
  run_ops(optimizer.average, "gradients.average");
  if (step_.layout.data > 1) {
    queue_.collective(OpKind::all_reduce, GroupKind::data, Phase::gradient_reduction,
                      Bytes(element_bytes(step_.formats.reduce) * program_.parameters));
    run_ops(optimizer.after_reduce, "gradients.cast_back");
  }
  const bool has_tied_table = stage_ == 0 || stage_ == stages_ - 1;
  if (stages_ > 1 && has_tied_table && graph_.tied_table_bytes.value() > 0) {
    queue_.collective(OpKind::all_reduce, GroupKind::embedding, Phase::gradient_reduction,
                      graph_.tied_table_bytes);
  }
}

/// A number per rank of the model: the norm, or whether a gradient overflowed.
void StageProgram::reduce_scalar() {
  const bool over_stages = stages_ > 1;
  if (step_.layout.tensor > 1) {
    queue_.collective(OpKind::all_reduce, GroupKind::tensor, Phase::optimizer, kScalar,
                      !over_stages);
  }
  if (over_stages)
    queue_.collective(OpKind::all_reduce, GroupKind::pipeline, Phase::optimizer, kScalar, true);
}

RankProgram StageProgram::build() && {
  count_memory();
  OptimizerStep optimizer;
  if (step_.mode == StepMode::training) optimizer = optimizer_step(step_, program_.parameters);
  run_ops(optimizer.before_forward, "gradients.zero");
  run_passes();
  if (step_.mode == StepMode::training) {
    reduce_gradients(optimizer);
    run_ops(optimizer.unscale, "gradients.unscale");
    if (!optimizer.unscale.empty()) reduce_scalar();
    run_ops(optimizer.norm, "clip.norm");
    if (!optimizer.norm.empty()) reduce_scalar();
    run_ops(optimizer.update, "optimizer");
  }
  program_.ops = std::move(queue_).finish();
  program_.stage = stage_;
  return std::move(program_);
}

}  // namespace

StageBlocks blocks_of_stage(const ModelGraph& graph, int stage, int stages) {
  const int positions = static_cast<int>(graph.order.size());
  if (stages == 1) return {0, positions};
  constexpr int kEmbedding = 1;  // embedding first, head last, layers between
  const int layers = (positions - 2) / stages;
  StageBlocks blocks{kEmbedding + stage * layers, kEmbedding + (stage + 1) * layers};
  if (stage == 0) blocks.begin = 0;
  if (stage == stages - 1) blocks.end = positions;
  return blocks;
}

RankProgram build_stage_program(PassLibrary& library, const StepOptions& step, int stage) {
  return StageProgram(library, step, stage).build();
}

}  // namespace tessera
