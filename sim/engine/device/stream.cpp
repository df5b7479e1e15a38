#include "sim/engine/device/stream.h"

#include <algorithm>

#include "sim/engine/device/gpu.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

int rank_of_stage(int stage, const Gpu& gpu) {
  const ParallelLayout& layout = gpu.context().timed.program.layout;
  RankPosition position = position_of(gpu.rank(), layout);
  position.pipeline = stage;
  return rank_of(position, layout);
}

/// Before its last member joins, a collective keeps its multiprocessors and moves nothing.
DeviceLoad while_waiting(const DeviceLoad& load) {
  return {.multiprocessors = load.multiprocessors, .bandwidth = 0};
}

}  // namespace

void Stream::advance() {
  if (running_ != kNone || head_ == end_) return;
  const std::int32_t op = *head_;
  if (!gpu_.is_in_turn(op) || !gpu_.is_launched(op)) return;  // the queue or the host calls again
  if (gpu_.launches().done > gpu_.context().clock.now() && !is_launched(op)) return;
  std::int32_t missing = gpu_.first_missing(op);
  if (missing == kNone && !gpu_.has_room_for(op)) missing = Gpu::kRoom;
  await(missing);
  if (missing == kNone) begin(op);
  if (missing == Gpu::kRoom && kind_ == StreamKind::compute && gpu_.rerun() != kNone)
    run_again(gpu_.rerun());
}

void Stream::await(std::int32_t op) {
  awaited_ = op;
  gpu_.await(kind_, op != kNone);
}

/// Told by its date. If not, the stream advances when it is.
bool Stream::is_launched(std::int32_t op) {
  SimClock& clock = gpu_.context().clock;
  const Seconds date = launches_.of(op, gpu_.launches(), gpu_.queues().launches);
  if (date <= clock.now()) return true;
  clock.at(date, [this] { advance(); });
  return false;
}

void Stream::begin(std::int32_t op) {
  ++head_;
  running_ = op;
  started_ = gpu_.context().clock.now();
  const ProgramOp& begun = gpu_.op(op);
  if (begun.allocated > Bytes(0)) gpu_.memory().change(started_, begun.allocated);
  execute(begun);
  if (begun.kind != OpKind::kernels) gpu_.leave_queue(op);
}

// Nothing here ends the op before it returns, so ops of no duration cannot recurse.
void Stream::execute(const ProgramOp& op) {
  const DeviceContext& context = gpu_.context();
  switch (op.kind) {
    case OpKind::kernels: {
      const TimedSegment& segment = gpu_.timed_segment(op);
      product_share_ = segment.product_share;
      gpu_.memory().begin_segment(context.clock.now(),
                                  context.timed.program.segment(op.segment).peak_above_start);
      gpu_.kernels_run(kind_, !on_host());
      run_kernels(segment);
      gpu_.change_pace_of_collectives();
      break;
    }
    case OpKind::all_reduce:
    case OpKind::reduce_scatter:
    case OpKind::all_gather:
    case OpKind::broadcast:
    case OpKind::all_to_all:
    case OpKind::ring_shift:
      join_collective();
      break;
    case OpKind::send:
      context.messages.send(gpu_.transfer(running_), op.tag, [this] { end(); });
      break;
    case OpKind::recv:
      context.messages.receive({rank_of_stage(op.peer_stage, gpu_), gpu_.rank(), op.tag},
                               [this] { end(); });
      break;
    case OpKind::copy_out:
    case OpKind::copy_in:
      context.messages.copy(gpu_.transfer(running_), [this] { end(); });
      break;
  }
}

/// Until its last kernel starts a segment holds the hardware queue that streams share: each of its
/// kernels waits there for the one before it.
void Stream::run_kernels(const TimedSegment& segment) {
  SimClock& clock = gpu_.context().clock;
  const Seconds work = gpu_.context().timed.paces.duration(gpu_.rank(), running_, segment);
  const double stretch = on_host() ? 1 : gpu_.stretch_of_kernels(product_share_);
  const Seconds last_alone =
      gpu_.holds_up_another(running_) ? segment.last_kernel() : segment.duration;
  if (last_alone >= segment.duration) {
    kernels_.start(clock, Seconds(0), work, stretch, [this] { end(); });
    return gpu_.leave_queue(running_);
  }
  const Seconds last = work * (last_alone / segment.duration);
  kernels_.start(clock, Seconds(0), work - last, stretch, [this, last] {
    kernels_.start(gpu_.context().clock, Seconds(0), last, gpu_.stretch_of_kernels(product_share_),
                   [this] { end(); });
    gpu_.leave_queue(running_);
  });
}

void Stream::run_again(std::int32_t op) {
  await(kNone);
  running_ = op;
  product_share_ = gpu_.timed_segment(gpu_.op(op)).product_share;
  gpu_.rerun_began();
  gpu_.kernels_run(kind_, true);
  kernels_.start(gpu_.context().clock, Seconds(0), gpu_.rerun_time(op),
                 gpu_.stretch_of_kernels(product_share_), [this] { ran_again(); });
  gpu_.change_pace_of_collectives();
}

void Stream::ran_again() {
  gpu_.kernels_run(kind_, false);
  running_ = kNone;
  gpu_.rerun_ended();
  advance();
  gpu_.change_pace_of_collectives();
}

void Stream::change_pace_of_kernels() {
  kernels_.change(gpu_.stretch_of_kernels(product_share_));
}

void Stream::change_pace_of_collective() {
  if (collective_ == nullptr) return;
  gpu_.context().collectives.change_pace(*collective_, gpu_.sequence(running_));
}

int Stream::rank() const {
  return gpu_.rank();
}

void Stream::join_collective() {
  collective_ = &gpu_.transfer(running_);
  gpu_.change_load({}, while_waiting(collective_->transfer.load));
  gpu_.context().collectives.join(*this, *collective_, gpu_.sequence(running_));
}

void Stream::collective_started() {
  const DeviceLoad& load = collective_->transfer.load;
  gpu_.change_load(while_waiting(load), load);
}

void Stream::collective_ended(Seconds all_joined, int last_rank) {
  gpu_.change_load(collective_->transfer.load, {});
  collective_ = nullptr;
  end(all_joined, last_rank);
}

double Stream::stretch_of_collectives() const {
  return gpu_.stretch_of_collectives();
}

void Stream::prefetch() const {
  gpu_.prefetch(running_);
}

void Stream::end(Seconds transfer_start, int last_rank) {
  const std::int32_t ended = running_;
  const ProgramOp& op = gpu_.op(ended);
  const DeviceContext& context = gpu_.context();
  const Seconds now = context.clock.now();
  gpu_.records()[static_cast<std::size_t>(ended)] = {.start = started_,
                                                     .end = now,
                                                     .transfer_start = transfer_start,
                                                     .op = ended,
                                                     .last_rank = last_rank};
  if (op.freed > Bytes(0)) gpu_.memory().change(now, Bytes(0) - op.freed);
  if (op.kind == OpKind::kernels) {
    gpu_.kernels_run(kind_, false);
    gpu_.memory().end_segment(now, context.timed.program.segment(op.segment).net_memory);
  }
  running_ = kNone;
  last_ended_ = ended;
  gpu_.end(ended);
  advance();
  if (op.kind == OpKind::kernels) gpu_.change_pace_of_collectives();
}

std::optional<std::string> Stream::blocked() const {
  if (running_ == kNone && head_ == end_) return std::nullopt;
  const std::int32_t op = running_ != kNone ? running_ : *head_;
  return "gpu " + std::to_string(gpu_.rank()) + " stream " + std::string(label_of(kind_)) + " op " +
         std::to_string(op) + " waits for " + reason();
}

std::string Stream::reason() const {
  if (running_ == kNone && !gpu_.is_launched(*head_)) {
    return "its host, which waits for op " + std::to_string(gpu_.host_waits_for());
  }
  if (running_ == kNone && awaited_ == kNone) {
    return gpu_.is_in_turn(*head_) ? "its launch" : "its turn in the hardware queue";
  }
  if (running_ == kNone && awaited_ == Gpu::kRoom) return "room in the GPU's memory";
  if (running_ == kNone) return "op " + std::to_string(awaited_);
  const ProgramOp& op = gpu_.op(running_);
  if (op.kind == OpKind::kernels) {
    return "its kernels (" + gpu_.context().timed.program.segment(op.segment).name + ")";
  }
  if (op.kind == OpKind::send) {
    return "the arrival of its message " + std::to_string(op.tag) + " at stage " +
           std::to_string(op.peer_stage);
  }
  if (op.kind == OpKind::recv) {
    return "message " + std::to_string(op.tag) + " from stage " + std::to_string(op.peer_stage);
  }
  if (is_copy(op.kind)) return "its copy";
  const std::int32_t sequence = gpu_.sequence(running_);
  return gpu_.context().collectives.missing(gpu_.transfer(running_), sequence) + " in collective " +
         std::to_string(sequence) + " (" + std::string(label_of(op.kind)) + ") of their " +
         std::string(label_of(op.group)) + " group";
}

}  // namespace tessera
