#include "workloads/parallel/op_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hw/units/deadline.h"

namespace tessera {
namespace {

/// Counts and marks of tokens have a communicator of their own beside that of the tokens
/// (Megatron-Core's tp_ep_group and ep_group): they do not wait for tokens of another micro-batch
/// that are under way.
StreamKind stream_of(GroupKind group, OpKind kind) {
  switch (group) {
    case GroupKind::tensor:
      return StreamKind::tensor_comm;
    case GroupKind::context:
      return StreamKind::context_comm;
    case GroupKind::expert_tensor:
      return StreamKind::expert_comm;
    case GroupKind::expert:
      return kind == OpKind::all_to_all ? StreamKind::expert_comm : StreamKind::tensor_comm;
    default:
      return StreamKind::data_comm;
  }
}

}  // namespace

std::int32_t OpQueue::push(const ProgramOp& op) {
  poll_deadline();
  ops_.push_back(op);
  ops_.back().allocated += std::exchange(allocated_, Bytes(0));
  return static_cast<std::int32_t>(ops_.size()) - 1;
}

void OpQueue::await(std::int32_t op, SegmentId join_segment) {
  join_ = join_segment;
  if (awaited_other_ >= 0) join(awaited_other_, op);
  awaited_other_ = awaited_other_ >= 0 ? -1 : op;
}

/// Kernels that are none, and wait for two ops: those behind them wait by order of their stream.
void OpQueue::join(std::int32_t first, std::int32_t second) {
  ProgramOp op;
  op.segment = join_;
  op.waits = {first, second};
  push(op);
}

void OpQueue::start(const ProgramOp& collective) {
  ProgramOp op = collective;
  op.stream = stream_of(op.group, op.kind);
  op.waits = {last_kernels_, awaited_collective_ >= 0 ? awaited_collective_ : awaited_other_};
  last_collective_ = push(op);
}

void OpQueue::run(const Pass& pass, int micro_batch, int layer) {
  for (const PassPiece& piece : pass) run_piece(piece, micro_batch, layer);
}

void OpQueue::run_piece(const PassPiece& piece, int micro_batch, int layer) {
  if (piece.kind == GraphOpKind::wait) return wait_for_collective();
  ProgramOp op;
  op.phase = piece.phase;
  op.micro_batch = micro_batch;
  op.layer = layer;
  if (piece.kind == GraphOpKind::collective) {
    op.kind = piece.collective;
    op.group = piece.group;
    op.bytes = piece.bytes;
    return start(op);
  }
  if (awaited_other_ >= 0 && awaited_collective_ >= 0 && awaited_message_ >= 0)
    join(std::exchange(awaited_collective_, -1), std::exchange(awaited_other_, -1));
  const std::int32_t first = awaited_collective_ >= 0 ? std::exchange(awaited_collective_, -1)
                                                      : std::exchange(awaited_other_, -1);
  const std::int32_t second = awaited_message_ >= 0 ? std::exchange(awaited_message_, -1)
                                                    : std::exchange(awaited_other_, -1);
  op.waits = {first, second};
  op.segment = piece.segment;
  op.host_sync = piece.host_sync;
  last_kernels_ = push(op);
}

void OpQueue::set_lane(const Lane& lane) {
  last_kernels_ = lane.last_kernels;
  last_collective_ = lane.last_collective;
  awaited_collective_ = lane.awaited_collective;
  awaited_message_ = lane.awaited_message;
}

bool OpQueue::waits_for_tokens(const PassPiece& piece) const {
  if (piece.kind != GraphOpKind::wait || last_collective_ < 0) return false;
  const ProgramOp& awaited = ops_[static_cast<std::size_t>(last_collective_)];
  return awaited.group == GroupKind::expert && awaited.kind == OpKind::all_to_all;
}

void OpQueue::run_together(const PassRun& first, const PassRun& second) {
  const std::array<const PassRun*, 2> runs{&first, &second};
  std::array<std::size_t, 2> next{0, 0};
  std::array<Lane, 2> lanes{lane(), lane()};
  for (std::size_t i = 0; i < 2; ++i) {
    lanes[i].awaited_message = runs[i]->message;
    lanes[i].awaited_collective = i == 0 ? lanes[i].awaited_collective : -1;
  }
  const auto ended = [&](std::size_t i) { return next[i] == runs[i]->pass.size(); };
  for (std::size_t now = 0; !ended(0) || !ended(1); now = 1 - now) {
    set_lane(lanes[now]);
    while (!ended(now)) {
      const PassPiece& piece = runs[now]->pass[next[now]++];
      const bool other_goes_on = waits_for_tokens(piece);
      run_piece(piece, runs[now]->micro_batch, runs[now]->layer);
      if (other_goes_on && !ended(1 - now)) break;
    }
    lanes[now] = lane();
  }
  Lane both = lanes[0];
  for (std::int32_t Lane::*part : {&Lane::last_kernels, &Lane::last_collective,
                                   &Lane::awaited_collective, &Lane::awaited_message})
    both.*part = std::max(lanes[0].*part, lanes[1].*part);
  set_lane(both);
}

void OpQueue::send(const StageMessage& message) {
  ProgramOp op;
  op.kind = OpKind::send;
  op.stream = StreamKind::pipeline_send;
  op.phase = message.phase;
  op.waits = {last_kernels_, awaited_collective_};
  op.bytes = message.bytes;
  op.peer_stage = message.peer_stage;
  op.tag = message.tag;
  op.micro_batch = message.micro_batch;
  op.host_sync = message.host_sync;
  push(op);
}

std::int32_t OpQueue::receive(const StageMessage& message) {
  ProgramOp op;
  op.kind = OpKind::recv;
  op.stream = StreamKind::pipeline_recv;
  op.phase = message.phase;
  op.waits = {message.after_kernels ? last_kernels_ : -1, -1};
  op.bytes = message.bytes;
  op.peer_stage = message.peer_stage;
  op.tag = message.tag;
  op.micro_batch = message.micro_batch;
  op.host_sync = message.host_sync;
  return push(op);
}

void OpQueue::collective(OpKind kind, GroupKind group, Phase phase, Bytes bytes, bool host_sync) {
  ProgramOp op;
  op.kind = kind;
  op.phase = phase;
  op.group = group;
  op.bytes = bytes;
  op.host_sync = host_sync;
  start(op);
  wait_for_collective();
}

}  // namespace tessera
