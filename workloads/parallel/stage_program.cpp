#include "workloads/parallel/stage_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/optimizers/multi_tensor.h"
#include "workloads/optimizers/optimizer_step.h"
#include "workloads/parallel/gradient_reduction.h"
#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pipeline_plan.h"
#include "workloads/parallel/unit_gathers.h"
#include "workloads/parallel/update_gathers.h"
#include "workloads/schedules/virtual_pipeline.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// A gradient norm.
constexpr Bytes kScalar(4);

bool makes_weight_gradients(const ScheduledPass& pass) {
  return pass.direction == PassDirection::backward ||
         pass.direction == PassDirection::weight_gradient;
}
PassPart part_of(PassDirection direction) {
  if (direction == PassDirection::forward) return PassPart::forward;
  const bool late = direction == PassDirection::weight_gradient;
  return late ? PassPart::weight_gradient : PassPart::backward;
}

class StageProgram {
 public:
  StageProgram(PassLibrary& library, const StepOptions& step, int stage)
      : library_(library),
        graph_(library.graph()),
        step_(step),
        stage_(stage),
        stages_(step.layout.pipeline),
        pipeline_(step),
        units_(library, step, queue_),
        gradients_(library, step, stage, queue_),
        updates_(library, step, stage, queue_) {
    const std::vector<int> layers = layers_of_parts(graph_, step);
    for (int chunk = 0; chunk < pipeline_.chunks(); ++chunk) {
      const int part = pipeline_.part({stage, chunk});
      blocks_.push_back(blocks_of_part(graph_, part, layers));
    }
  }

  RankProgram build() &&;

 private:
  void count_memory();
  void run_passes();
  void run(const ScheduledPass& pass);
  void run_block(int position, const ScheduledPass& pass, int next);
  bool forwards_first(const ScheduledPass& pass);
  void hold_outputs(const ScheduledPass& pass);
  void exchange(const Exchange& exchange);
  Bytes boundary_bytes(const ScheduledPass& pass, const ModelChunk& other) const;
  StageMessage message(const ScheduledPass& pass, const ModelChunk& other) const;
  std::vector<StageMessage> messages(const ScheduledPass& pass, const ModelChunk& other) const;
  /// Whose result the pass works on, and who works on its result.
  std::optional<ModelChunk> giver(const ScheduledPass& pass) const;
  std::optional<ModelChunk> taker(const ScheduledPass& pass) const;
  bool keeps_sent(const ScheduledPass& pass) const;
  /// Parameters of experts that other ranks hold than those that hold the same dense parameters.
  std::int64_t spread_experts() const {
    return step_.layout.experts_apart() ? expert_parameters_ : 0;
  }
  void reduce_gradients();
  void join_copies(std::int64_t parameters);
  void reduce_scalar();
  void run_ops(const std::vector<GraphOp>& ops, const std::string& name) {
    queue_.run(library_.cut(ops, name), -1, -1);
  }

  PassLibrary& library_;
  const ModelGraph& graph_;
  const StepOptions& step_;
  int stage_;
  int stages_;
  VirtualPipeline pipeline_;
  std::vector<StageBlocks> blocks_;               ///< by model chunk
  std::map<ScheduledPass, std::int32_t> inputs_;  ///< ops that receive what passes work on
  std::map<int, int> gradient_passes_;            ///< that are left, by model chunk
  std::map<int, int> first_micro_batch_;          ///< whose backward ran first, likewise
  std::map<int, int> first_forward_;              ///< micro-batch whose forward ran first, likewise
  GradientReduction::Turn turn_;                  ///< of the pass that runs
  std::int64_t partial_parameters_ = 0;           ///< Block::partial_parameters of all blocks
  std::int64_t expert_parameters_ = 0;            ///< Block::expert_parameters, likewise
  Bytes held_outputs_;
  int tensors_ = 0;  ///< Block::parameter_tensors, likewise
  OpQueue queue_;
  UnitGathers units_;
  GradientReduction gradients_;
  UpdateGathers updates_;
  RankProgram program_;
};

void StageProgram::count_memory() {
  Bytes buffers = graph_.shared_buffers;
  for (const StageBlocks& chunk : blocks_) {
    for (int position = chunk.begin; position < chunk.end; ++position) {
      program_.parameters += graph_.at(position).parameters;
      tensors_ += graph_.at(position).parameter_tensors;
      partial_parameters_ += graph_.at(position).partial_parameters;
      expert_parameters_ += graph_.at(position).expert_parameters;
      buffers += graph_.at(position).buffers;
    }
  }
  program_.static_parts = persistent_parts(step_, program_.parameters, spread_experts());
  program_.static_parts[MemoryCategory::buffers] += buffers;
  program_.static_memory = program_.static_parts.total();
}

std::optional<ModelChunk> StageProgram::giver(const ScheduledPass& pass) const {
  const ModelChunk chunk{stage_, pass.chunk};
  if (pass.direction == PassDirection::weight_gradient) return std::nullopt;
  return pass.direction == PassDirection::forward ? pipeline_.before(chunk)
                                                  : pipeline_.behind(chunk);
}

std::optional<ModelChunk> StageProgram::taker(const ScheduledPass& pass) const {
  const ModelChunk chunk{stage_, pass.chunk};
  if (pass.direction == PassDirection::weight_gradient) return std::nullopt;
  return pass.direction == PassDirection::forward ? pipeline_.behind(chunk)
                                                  : pipeline_.before(chunk);
}

/// Whether the chunk's output lives from the end of forward to that of backward.
bool StageProgram::keeps_sent(const ScheduledPass& pass) const {
  const bool ends = pass.direction != PassDirection::input_gradient;
  return ends && step_.framework.keeps_sent && step_.mode == StepMode::training &&
         pipeline_.behind({stage_, pass.chunk}).has_value();
}

void StageProgram::run_block(int position, const ScheduledPass& pass, int next) {
  const StageBlocks& blocks = blocks_[static_cast<std::size_t>(pass.chunk)];
  const bool forward = pass.direction == PassDirection::forward;
  const bool at_begin = position == blocks.begin;
  const bool at_end = position == blocks.end - 1;
  PassVariant variant;
  variant.block = graph_.order[static_cast<std::size_t>(position)];
  variant.direction = pass.direction;
  variant.starts_with_message = (forward ? at_begin : at_end) && giver(pass);
  variant.ends_with_message = (forward ? at_end : at_begin) && taker(pass);
  const bool weights_alone = pass.direction == PassDirection::weight_gradient;
  const int dropped_at = weights_alone ? first_layer(graph_, blocks) : blocks.begin;
  variant.keeps_sent = (forward ? at_end : position == dropped_at) && keeps_sent(pass);
  if (!forward && gradients_.stores(turn_)) variant.gradients = GradientArrival::stored;
  variant.makes_kept_copies =
      forward && forwards_first(pass) && library_.makes_kept_copies(variant.block);
  const int layer = graph_.layer_numbers[static_cast<std::size_t>(position)];
  units_.before(position, pass, next);
  updates_.before(position, pass);
  gradients_.before(position, pass, turn_);
  queue_.run(library_.pass(variant), pass.micro_batch, layer);
  units_.after(position, pass);
  gradients_.after(position, pass, turn_);
}

/// Whether no other micro-batch went through the chunk before.
bool StageProgram::forwards_first(const ScheduledPass& pass) {
  const auto first = first_forward_.try_emplace(pass.chunk, pass.micro_batch).first;
  return first->second == pass.micro_batch;
}

void StageProgram::run(const ScheduledPass& pass) {
  const StageBlocks& blocks = blocks_[static_cast<std::size_t>(pass.chunk)];
  const auto input = inputs_.find(pass);
  if (input != inputs_.end()) queue_.await_message(input->second);
  PassSpan span{part_of(pass.direction), pass.micro_batch, pass.chunk, queue_.size(), 0};
  updates_.begin_pass(pass);
  units_.begin_pass(pass, blocks.begin, blocks.end);
  if (pass.direction == PassDirection::forward) {
    for (int p = blocks.begin; p < blocks.end; ++p)
      run_block(p, pass, p + 1 < blocks.end ? p + 1 : -1);
  } else {
    const int first = first_micro_batch_.try_emplace(pass.chunk, pass.micro_batch).first->second;
    turn_.first = pass.micro_batch == first;
    turn_.last = makes_weight_gradients(pass) && --gradient_passes_[pass.chunk] == 0;
    for (int p = blocks.end; p-- > blocks.begin;) run_block(p, pass, p > blocks.begin ? p - 1 : -1);
  }
  units_.end_pass(pass, blocks.begin, blocks.end);
  hold_outputs(pass);
  span.end = queue_.size();
  program_.passes.push_back(span);
  if (!is_forward(pass)) gradients_.end_pass(pass, turn_);
}

/// Logits outlive their backward, until the last one.
/// Source: torch.distributed.pipelining stage.py, output_chunks.
void StageProgram::hold_outputs(const ScheduledPass& pass) {
  const bool ends = !is_forward(pass) && pass.direction != PassDirection::weight_gradient;
  const bool last = ends && !turn_.last && !pipeline_.behind({stage_, pass.chunk});
  if (!last || !step_.framework.keeps_outputs || stages_ == 1) return;
  const int end = blocks_[static_cast<std::size_t>(pass.chunk)].end;
  const Bytes logits = held_bytes(graph_.at(end - 1));
  queue_.allocate(logits);
  held_outputs_ += logits;
}

/// Block at the end of the pass's chunk that `other` is behind, or ahead of.
Bytes StageProgram::boundary_bytes(const ScheduledPass& pass, const ModelChunk& other) const {
  const StageBlocks& blocks = blocks_[static_cast<std::size_t>(pass.chunk)];
  const bool ahead = pipeline_.part(other) < pipeline_.part({stage_, pass.chunk});
  return ahead ? input_bytes(graph_.at(blocks.begin)) : output_bytes(graph_.at(blocks.end - 1));
}

StageMessage StageProgram::message(const ScheduledPass& pass, const ModelChunk& other) const {
  StageMessage result;
  const bool forward = pass.direction == PassDirection::forward;
  const int boundary = std::min(pipeline_.part({stage_, pass.chunk}), pipeline_.part(other));
  result.phase = forward ? Phase::forward : Phase::backward;
  result.peer_stage = other.stage;
  result.tag = (2 * pass.micro_batch + (forward ? 0 : 1)) * pipeline_.length() + boundary;
  result.micro_batch = pass.micro_batch;
  result.bytes = boundary_bytes(pass, other);
  return result;
}

/// In the order in which they travel: every tensor behind its headers. They are numbers and shapes
/// that the receiver reads. Source: nanotron parallel/pipeline_parallel/p2p.py, _send_meta.
std::vector<StageMessage> StageProgram::messages(const ScheduledPass& pass,
                                                 const ModelChunk& other) const {
  constexpr Bytes kHeader(8192);
  const FrameworkProfile& profile = step_.framework;
  const StageMessage hidden = message(pass, other);
  std::vector<Bytes> tensors{hidden.bytes};
  const Bytes mask(step_.micro_batch * step_.sequence_length / step_.layout.context);
  if (profile.sends_mask && is_forward(pass)) tensors.push_back(mask);
  const int most = (1 + profile.message_headers) * (profile.sends_mask ? 2 : 1);
  std::vector<StageMessage> result;
  for (const Bytes tensor : tensors) {
    for (int i = 0; i <= profile.message_headers; ++i) {
      StageMessage& next = result.emplace_back(hidden);
      next.tag = hidden.tag * most + static_cast<int>(result.size()) - 1;
      next.is_header = i < profile.message_headers;
      next.bytes = next.is_header ? kHeader : tensor;
    }
  }
  return result;
}

/// The host reads every header; it waits for the rest as the exchange says.
void StageProgram::exchange(const Exchange& exchange) {
  const bool each = exchange.host_waits && !exchange.together;
  for (const ScheduledPass& pass : exchange.sent) {
    const bool last = exchange.received.empty() && pass == exchange.sent.back();
    for (StageMessage& outgoing : messages(pass, *taker(pass))) {
      outgoing.host_sync = !outgoing.is_header && (each || (exchange.host_waits && last));
      queue_.send(outgoing);
    }
  }
  for (const ScheduledPass& pass : exchange.received) {
    const bool last = exchange.host_waits && pass == exchange.received.back();
    for (StageMessage& incoming : messages(pass, *giver(pass))) {
      incoming.host_sync = incoming.is_header || each || last;
      incoming.after_kernels = exchange.behind_kernels;
      inputs_[pass] = queue_.receive(incoming);
    }
  }
}

void StageProgram::run_passes() {
  const PipelinePlan plan = plan_pipeline(step_, stage_);
  for (const PlannedPass& planned : plan.passes) {
    if (makes_weight_gradients(planned.pass)) ++gradient_passes_[planned.pass.chunk];
  }
  updates_.begin();
  exchange(plan.first);
  for (const PlannedPass& planned : plan.passes) {
    run(planned.pass);
    exchange(planned.behind);
  }
  queue_.free(held_outputs_);
}

/// DualPipe's two copies of a part of the model lie on stages that mirror each other: they exchange
/// the gradients of `parameters` and add them.
void StageProgram::join_copies(std::int64_t parameters) {
  const std::int64_t bytes = element_bytes(step_.formats.reduce);
  StageMessage copy;
  copy.phase = Phase::gradient_reduction;
  copy.peer_stage = stages_ - 1 - stage_;
  constexpr int kMessagesAtMost = 34;  // of a pass: two tensors behind 16 headers each
  copy.tag = 2 * static_cast<int>(step_.micro_batches()) * pipeline_.length() * kMessagesAtMost;
  copy.micro_batch = -1;
  copy.bytes = Bytes(bytes * parameters);
  queue_.send(copy);
  queue_.await_message(queue_.receive(copy));
  run_ops({buffer_pass("gradients.join", Phase::gradient_reduction, KernelKind::elementwise,
                       parameters, {2 * bytes, bytes})},
          "gradients.join");
}

void StageProgram::reduce_gradients() {
  const std::int64_t kept = shard_of(step_, program_.parameters, spread_experts());
  const bool divided = kept < program_.parameters;  // then the copies exchange what each rank keeps
  if (pipeline_.two_way() && !divided) join_copies(program_.parameters);
  gradients_.finish(program_.parameters, spread_experts());
  if (pipeline_.two_way() && divided) join_copies(kept);
  if (partial_parameters_ > 0) {
    const Bytes bytes(element_bytes(step_.formats.gradients) * partial_parameters_);
    queue_.collective(OpKind::all_reduce, GroupKind::tensor, Phase::gradient_reduction, bytes);
  }
  const bool has_tied_table = stage_ == 0 || stage_ == stages_ - 1;
  if (stages_ > 1 && has_tied_table && graph_.tied_table_bytes.value() > 0) {
    queue_.collective(OpKind::all_reduce, GroupKind::embedding, Phase::gradient_reduction,
                      graph_.tied_table_bytes);
  }
}

/// A number per rank of the model: the norm, or whether a gradient overflowed. Megatron's host
/// reads it.
void StageProgram::reduce_scalar() {
  std::vector<GroupKind> groups;
  const bool divided = shard_ranks(step_) > 1 && !step_.data_parallel.whole_sums;
  if (divided) groups.push_back(GroupKind::shard);
  if (step_.layout.tensor > 1) groups.push_back(GroupKind::tensor);
  if (stages_ > 1) groups.push_back(GroupKind::pipeline);
  const bool host_reads =
      step_.framework.modules == ModuleTree::megatron && !step_.framework.per_tensor_updates;
  for (const GroupKind group : groups) {
    queue_.collective(OpKind::all_reduce, group, Phase::optimizer, kScalar,
                      host_reads && group == groups.back());
  }
}

RankProgram StageProgram::build() && {
  count_memory();
  for (const StageBlocks& chunk : blocks_) {
    const bool first = stage_ == 0 && &chunk == &blocks_.front();
    const auto buckets = gradient_buckets(graph_, step_, chunk.begin, chunk.end, first);
    gradients_.add_chunk(chunk.begin, chunk.end, buckets);
    updates_.add_chunk(chunk.begin, buckets);
  }
  OptimizerStep optimizer;  // of what this rank updates
  if (step_.mode == StepMode::training) {
    const std::int64_t own = shard_of(step_, program_.parameters, spread_experts());
    const bool whole = step_.data_parallel.whole_sums;
    optimizer = optimizer_step(
        step_,
        {.parameters = own, .summed = whole ? program_.parameters : own, .tensors = tensors_});
    const bool whole_buffers = !scatters_gradients(step_);
    run_ops(whole_buffers ? optimizer_step(step_, program_.parameters).before_forward
                          : optimizer.before_forward,
            "gradients.zero");
  }
  run_passes();
  if (step_.mode == StepMode::training) {
    reduce_gradients();
    run_ops(optimizer.unscale, "gradients.unscale");
    if (!optimizer.unscale.empty()) reduce_scalar();
    run_ops(optimizer.norm, "clip.norm");
    if (!optimizer.norm.empty()) reduce_scalar();
    run_ops(optimizer.update, "optimizer");
    updates_.finish(program_.parameters, spread_experts());
    units_.find_scales(shard_of(step_, program_.parameters, spread_experts()), tensors_);
  }
  program_.ops = std::move(queue_).finish();
  program_.stage = stage_;
  return std::move(program_);
}

}  // namespace

Program build_stages(const ModelGraph& graph, const StepOptions& step,
                     const std::vector<int>& stages,
                     const std::vector<std::int64_t>& micro_batches) {
  Program program;
  program.layout = step.layout;
  program.layout.shard = shard_ranks(step);
  PassLibrary library(graph, program.segments, step.segment_per_call);
  const auto add_stages = [&](const StepOptions& of) {
    for (const int stage : stages)
      program.stages.push_back(StageProgram(library, of, stage).build());
  };
  if (micro_batches.empty()) add_stages(step);
  for (const std::int64_t count : micro_batches) add_stages(with_micro_batches(step, count));
  return program;
}

}  // namespace tessera
