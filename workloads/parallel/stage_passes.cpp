// Passes of a stage, alone and side by side, and the messages between them.
#include <algorithm>
#include <utility>

#include "workloads/parallel/stage_builder.h"

namespace tessera {
namespace {

bool makes_weight_gradients(const ScheduledPass& pass) {
  return pass.direction == PassDirection::backward ||
         pass.direction == PassDirection::weight_gradient;
}
PassPart part_of(PassDirection direction) {
  if (direction == PassDirection::forward) return PassPart::forward;
  const bool late = direction == PassDirection::weight_gradient;
  return late ? PassPart::weight_gradient : PassPart::backward;
}

}  // namespace

std::optional<ModelChunk> StageBuilder::giver(const ScheduledPass& pass) const {
  const ModelChunk chunk{stage_, pass.chunk};
  if (pass.direction == PassDirection::weight_gradient) return std::nullopt;
  return pass.direction == PassDirection::forward ? pipeline_.before(chunk)
                                                  : pipeline_.behind(chunk);
}

std::optional<ModelChunk> StageBuilder::taker(const ScheduledPass& pass) const {
  const ModelChunk chunk{stage_, pass.chunk};
  if (pass.direction == PassDirection::weight_gradient) return std::nullopt;
  return pass.direction == PassDirection::forward ? pipeline_.behind(chunk)
                                                  : pipeline_.before(chunk);
}

/// Whether the chunk's output lives from the end of forward to that of backward.
bool StageBuilder::keeps_sent(const ScheduledPass& pass) const {
  const bool ends = pass.direction != PassDirection::input_gradient;
  return ends && step_.framework.keeps_sent && step_.mode == StepMode::training &&
         pipeline_.behind({stage_, pass.chunk}).has_value();
}

void StageBuilder::run_block(int position, const ScheduledPass& pass, int next) {
  const PassRun run = begin_block(position, pass, next);
  queue_.run(run.pass, run.micro_batch, run.layer);
  end_block(position, pass);
}

void StageBuilder::end_block(int position, const ScheduledPass& pass) {
  units_.after(position, pass);
  gradients_.after(position, pass, turn_);
  offload_.after(position, pass);
}

PassRun StageBuilder::begin_block(int position, const ScheduledPass& pass, int next) {
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
  offload_.before(position, pass);
  return {library_.pass(variant), pass.micro_batch, layer};
}

/// Whether no other micro-batch went through the chunk before.
bool StageBuilder::forwards_first(const ScheduledPass& pass) {
  const auto first = first_forward_.try_emplace(pass.chunk, pass.micro_batch).first;
  return first->second == pass.micro_batch;
}

void StageBuilder::run(const ScheduledPass& pass) {
  const StageBlocks& blocks = blocks_[static_cast<std::size_t>(pass.chunk)];
  const auto input = inputs_.find(pass);
  if (input != inputs_.end()) queue_.await_message(input->second);
  const PassSpan span = begin(pass);
  if (is_forward(pass)) {
    for (int p = blocks.begin; p < blocks.end; ++p)
      run_block(p, pass, p + 1 < blocks.end ? p + 1 : -1);
  } else {
    for (int p = blocks.end; p-- > blocks.begin;) run_block(p, pass, p > blocks.begin ? p - 1 : -1);
  }
  end(pass, span);
}

PassSpan StageBuilder::begin(const ScheduledPass& pass) {
  const StageBlocks& blocks = blocks_[static_cast<std::size_t>(pass.chunk)];
  const PassSpan span{part_of(pass.direction), pass.micro_batch, pass.chunk, queue_.size(), 0};
  updates_.begin_pass(pass);
  units_.begin_pass(pass, blocks.begin, blocks.end);
  if (is_forward(pass)) return span;
  const int first = first_micro_batch_.try_emplace(pass.chunk, pass.micro_batch).first->second;
  turn_.first = pass.micro_batch == first;
  turn_.last = makes_weight_gradients(pass) && --gradient_passes_[pass.chunk] == 0;
  return span;
}

void StageBuilder::end(const ScheduledPass& pass, PassSpan span) {
  const StageBlocks& blocks = blocks_[static_cast<std::size_t>(pass.chunk)];
  units_.end_pass(pass, blocks.begin, blocks.end);
  hold_outputs(pass);
  span.end = queue_.size();
  program_.passes.push_back(span);
  if (!is_forward(pass)) gradients_.end_pass(pass, turn_);
}

/// Logits outlive their backward, until the last one.
/// Source: torch.distributed.pipelining stage.py, output_chunks.
void StageBuilder::hold_outputs(const ScheduledPass& pass) {
  const bool ends = !is_forward(pass) && pass.direction != PassDirection::weight_gradient;
  const bool last = ends && !turn_.last && !pipeline_.behind({stage_, pass.chunk});
  if (!last || !step_.framework.keeps_outputs || stages_ == 1) return;
  const int end = blocks_[static_cast<std::size_t>(pass.chunk)].end;
  const Bytes logits = held_bytes(graph_.at(end - 1));
  queue_.allocate(logits);
  held_outputs_ += logits;
}

/// A forward and a backward pass of different micro-batches, layer beside layer; what is no layer
/// runs alone. Source: Megatron-Core core/models/common/model_chunk_schedule_plan.py.
void StageBuilder::run_together(const ScheduledPass& forward, const ScheduledPass& backward) {
  const StageBlocks& ahead = blocks_[static_cast<std::size_t>(forward.chunk)];
  const StageBlocks& back = blocks_[static_cast<std::size_t>(backward.chunk)];
  const PassSpan spans[]{begin(forward), begin(backward)};
  const auto is_layer = [&](int position) {
    return graph_.layer_numbers[static_cast<std::size_t>(position)] != kNoLayer;
  };
  const auto message_of = [&](const ScheduledPass& pass, bool first) {
    const auto input = inputs_.find(pass);
    return first && input != inputs_.end() ? input->second : -1;
  };
  const auto alone = [&](int position, const ScheduledPass& pass, bool first) {
    queue_.await_message(message_of(pass, first));
    run_block(position, pass, -1);
  };
  int f = ahead.begin, b = back.end - 1;
  while (b >= back.begin && !is_layer(b)) alone(b, backward, b == back.end - 1), --b;
  while (f < ahead.end && !is_layer(f)) alone(f, forward, f == ahead.begin), ++f;
  for (; b >= back.begin && is_layer(b) && f < ahead.end && is_layer(f); --b, ++f) {
    PassRun second = begin_block(f, forward, -1);
    PassRun first = begin_block(b, backward, -1);
    first.message = message_of(backward, b == back.end - 1);
    second.message = message_of(forward, f == ahead.begin);
    queue_.run_together(first, second);
    end_block(b, backward);
    end_block(f, forward);
  }
  for (; f < ahead.end; ++f) alone(f, forward, f == ahead.begin);
  for (; b >= back.begin; --b) alone(b, backward, b == back.end - 1);
  end(forward, spans[0]);
  end(backward, spans[1]);
}

bool StageBuilder::overlaps(const PlannedPass& pass, const PlannedPass& next) const {
  return step_.framework.overlap_experts && is_forward(pass.pass) && !is_forward(next.pass) &&
         (pass.pass.micro_batch != next.pass.micro_batch || pass.pass.chunk != next.pass.chunk);
}

/// Block at the end of the pass's chunk that `other` is behind, or ahead of.
Bytes StageBuilder::boundary_bytes(const ScheduledPass& pass, const ModelChunk& other) const {
  const StageBlocks& blocks = blocks_[static_cast<std::size_t>(pass.chunk)];
  const bool ahead = pipeline_.part(other) < pipeline_.part({stage_, pass.chunk});
  return ahead ? input_bytes(graph_.at(blocks.begin)) : output_bytes(graph_.at(blocks.end - 1));
}

StageMessage StageBuilder::message(const ScheduledPass& pass, const ModelChunk& other) const {
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
std::vector<StageMessage> StageBuilder::messages(const ScheduledPass& pass,
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
void StageBuilder::exchange(const Exchange& exchange) {
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

void StageBuilder::run_passes() {
  const PipelinePlan plan = plan_pipeline(step_, stage_);
  for (const PlannedPass& planned : plan.passes) {
    if (makes_weight_gradients(planned.pass)) ++gradient_passes_[planned.pass.chunk];
  }
  updates_.begin();
  exchange(plan.first);
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const PlannedPass& planned = plan.passes[i];
    if (i + 1 == plan.passes.size() || !overlaps(planned, plan.passes[i + 1])) {
      run(planned.pass);
      exchange(planned.behind);
      continue;
    }
    const PlannedPass& other = plan.passes[++i];
    Exchange ahead = planned.behind, behind = planned.behind;  // what `other` needs comes first
    ahead.sent.clear();
    behind.received.clear();
    exchange(ahead);
    run_together(planned.pass, other.pass);
    exchange(behind);
    exchange(other.behind);
  }
  queue_.free(held_outputs_);
}

}  // namespace tessera
