#include "workloads/parallel/op_queue.h"

#include <utility>

namespace tessera {
namespace {

StreamKind stream_of(GroupKind group) {
  return group == GroupKind::tensor ? StreamKind::tensor_comm : StreamKind::data_comm;
}

}  // namespace

std::int32_t OpQueue::push(const ProgramOp& op) {
  ops_.push_back(op);
  return static_cast<std::int32_t>(ops_.size()) - 1;
}

void OpQueue::start_all_reduce(GroupKind group, Phase phase, Bytes bytes, int micro_batch,
                               int layer) {
  ProgramOp op;
  op.kind = OpKind::all_reduce;
  op.stream = stream_of(group);
  op.phase = phase;
  op.waits = {last_kernels_, awaited_collective_};
  op.group = group;
  op.bytes = bytes;
  op.micro_batch = micro_batch;
  op.layer = layer;
  last_collective_ = push(op);
}

void OpQueue::run(const Pass& pass, int micro_batch, int layer) {
  for (const PassPiece& piece : pass) {
    if (piece.kind == GraphOpKind::wait) {
      wait_for_collective();
    } else if (piece.kind == GraphOpKind::all_reduce) {
      start_all_reduce(piece.group, piece.phase, piece.bytes, micro_batch, layer);
    } else {
      ProgramOp op;
      op.phase = piece.phase;
      op.waits = {std::exchange(awaited_collective_, -1), std::exchange(awaited_message_, -1)};
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

void OpQueue::all_reduce(GroupKind group, Phase phase, Bytes bytes, bool host_sync) {
  start_all_reduce(group, phase, bytes, -1, -1);
  ops_.back().host_sync = host_sync;
  wait_for_collective();
}

}  // namespace tessera
