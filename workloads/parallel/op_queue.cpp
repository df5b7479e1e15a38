#include "workloads/parallel/op_queue.h"

#include <utility>

#include "hw/units/deadline.h"

namespace tessera {
namespace {

StreamKind stream_of(GroupKind group) {
  switch (group) {
    case GroupKind::tensor:
      return StreamKind::tensor_comm;
    case GroupKind::context:
      return StreamKind::context_comm;
    case GroupKind::expert:
      return StreamKind::expert_comm;
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
  op.stream = stream_of(op.group);
  op.waits = {last_kernels_, awaited_collective_ >= 0 ? awaited_collective_ : awaited_other_};
  last_collective_ = push(op);
}

void OpQueue::run(const Pass& pass, int micro_batch, int layer) {
  for (const PassPiece& piece : pass) {
    if (piece.kind == GraphOpKind::wait) {
      wait_for_collective();
    } else if (piece.kind == GraphOpKind::collective) {
      ProgramOp op;
      op.kind = piece.collective;
      op.phase = piece.phase;
      op.group = piece.group;
      op.bytes = piece.bytes;
      op.micro_batch = micro_batch;
      op.layer = layer;
      start(op);
    } else {
      ProgramOp op;
      op.phase = piece.phase;
      if (awaited_other_ >= 0 && awaited_collective_ >= 0 && awaited_message_ >= 0)
        join(std::exchange(awaited_collective_, -1), std::exchange(awaited_other_, -1));
      const std::int32_t first = awaited_collective_ >= 0 ? std::exchange(awaited_collective_, -1)
                                                          : std::exchange(awaited_other_, -1);
      const std::int32_t second = awaited_message_ >= 0 ? std::exchange(awaited_message_, -1)
                                                        : std::exchange(awaited_other_, -1);
      op.waits = {first, second};
      op.segment = piece.segment;
      op.host_sync = piece.host_sync;
      op.micro_batch = micro_batch;
      op.layer = layer;
      last_kernels_ = push(op);
    }
  }
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
