#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/clock/sim_clock.h"
#include "sim/engine/communication/collective_board.h"
#include "sim/engine/communication/message_board.h"
#include "sim/engine/device/stage_queues.h"
#include "sim/engine/device/stream.h"
#include "sim/engine/memory/memory_keeper.h"
#include "sim/engine/memory/memory_ledger.h"
#include "sim/engine/memory/memory_pressure.h"
#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// What all GPUs of a simulation share.
struct DeviceContext {
  const TimedProgram& timed;
  SimClock& clock;
  const CommunicationPlan& plan;
  CollectiveBoard& collectives;
  MessageBoard& messages;
  Transfers& transfers;
  /// Called when a GPU has ended its last op; may be empty.
  std::function<void()> on_gpu_end = {};
};

/// Some of a GPU's streams; most of the time none or one.
class StreamSet {
 public:
  bool empty() const { return bits_ == 0; }
  void set(StreamKind stream, bool in) {
    const auto bit = static_cast<std::uint32_t>(1U << static_cast<unsigned>(stream));
    bits_ = in ? bits_ | bit : bits_ & ~bit;
  }
  /// Calls `visit` with the number of each that is in the set now.
  void for_each(auto&& visit) const {
    for (std::uint32_t rest = bits_; rest != 0; rest &= rest - 1) {
      visit(static_cast<std::size_t>(std::countr_zero(rest)));
    }
  }

 private:
  std::uint32_t bits_ = 0;
};

/// The device of one rank: streams, ended ops, memory. Its host (host_process.h) launches the ops.
class alignas(64) Gpu {
 public:
  /// `records` holds one entry per op of the rank's program.
  /// `memory`: of the rank's stage, where it is limited; else null.
  Gpu(int rank, const StageQueues& queues, const DeviceContext& context,
      std::span<OpRecord> records, MemorySamples samples, const StageMemory* memory);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int rank() const { return rank_; }
  const DeviceContext& context() const { return context_; }
  const RankProgram& program() const { return program_; }
  const StageQueues& queues() const { return queues_; }
  const ProgramOp& op(std::int32_t op) const { return program_.ops[static_cast<std::size_t>(op)]; }
  std::int32_t sequence(std::int32_t op) const {
    return queues_.sequence[static_cast<std::size_t>(op)];
  }
  /// The transfer that a collective or send starts.
  const PlannedTransfer& transfer(std::int32_t op) const {
    return context_.plan.of(rank_, number_, op);
  }
  /// The segment of `op` as this GPU runs it.
  const TimedSegment& timed_segment(const ProgramOp& op) const {
    const auto number = static_cast<std::size_t>(op.segment.index());
    return context_.timed.paces.segment(rank_, number, context_.timed.segments[number]);
  }
  std::span<OpRecord> records() { return records_; }
  MemoryLedger& memory() { return memory_; }

  // For the host process.
  /// The host launches the ops of `run`, up to number `end`.
  void launch(const LaunchRun& run, std::int32_t end) {
    launches_ = run;
    launched_ = end;
  }
  /// Looks at what was launched since; in maestro.
  void advance();
  bool has_ended(std::int32_t op) const { return op <= stream_of(op).last_ended(); }
  /// Runs `action` when `op` ends; one at a time.
  void when_ended(std::int32_t op, Action action);

  // For the streams.
  /// Has the processor fetch what changes when `op` ends.
  void prefetch(std::int32_t op) const {
    __builtin_prefetch(this);
    __builtin_prefetch(&in_turn_);
    __builtin_prefetch(&memory_);
    __builtin_prefetch(&loads_);
    __builtin_prefetch(records_.data() + op, 1);
    __builtin_prefetch(streams_.data());
  }
  bool is_launched(std::int32_t op) const { return op < launched_; }
  const LaunchRun& launches() const { return launches_; }
  /// What a collective takes changes: kernels change their pace, and with them collectives.
  void change_load(const DeviceLoad& from, const DeviceLoad& to);
  /// Time of kernels now over their time alone.
  double stretch_of_kernels(double product_share) const {
    return loads_.empty() ? 1 : KernelsBeside(loads_.sum(), product_share).stretch();
  }
  /// Time of collectives beside the kernels that run over their time alone.
  double stretch_of_collectives() const { return stretch_of_collectives_; }
  /// Other kernels run than before, or none.
  void change_pace_of_collectives() {
    if (loads_.sum().bandwidth > 0 || stretch_of_collectives_ != 1) set_pace_of_collectives();
  }
  /// An op that `op` waits for and that has not ended; -1 if there is none.
  std::int32_t first_missing(std::int32_t op) const;
  /// Whether what `op` takes and needs is, or fits, on the device. If not, room is being made, and
  /// streams that await `kRoom` are called again.
  bool has_room_for(std::int32_t op) { return !pressure_ || pressure_->admit(op); }
  static constexpr std::int32_t kRoom = -2;
  /// Forward op that has to run again, now, ahead of the head of the compute stream; -1: none.
  std::int32_t rerun() const { return pressure_ ? pressure_->rerun() : -1; }
  void rerun_began() { pressure_->rerun_began(); }
  void rerun_ended();
  Seconds rerun_time(std::int32_t op) const { return pressure_->rerun_time(op); }
  void room_changed();
  void end(std::int32_t op);
  Seconds last_end() const { return last_end_; }
  /// The head of `stream` waits for an op, or for room.
  void await(StreamKind stream, bool waits) { waiting_.set(stream, waits); }
  /// Whether `stream` runs kernels, from now on.
  void kernels_run(StreamKind stream, bool run) { with_kernels_.set(stream, run); }

  /// All streams but those of copies share one hardware queue.
  bool has_single_queue() const { return in_turn_ != kNoQueue; }
  /// Whether the op behind `op` in that queue could start while `op` still runs.
  bool holds_up_another(std::int32_t op) const {
    return has_single_queue() && queues_.holds_up_another[static_cast<std::size_t>(op)] != 0;
  }
  /// Whether everything that was launched into the hardware queue ahead of `op` has left it.
  bool is_in_turn(std::int32_t op) const {
    return op == in_turn_ || !has_single_queue() || is_copy(this->op(op).kind);
  }
  /// `op` runs, or its last kernel does: the hardware queue goes on to the next op.
  void leave_queue(std::int32_t op) {
    if (op == in_turn_) next_in_queue();
  }
  /// Null where memory is not limited.
  const MemoryKeeper* pressure() const { return pressure_.get(); }
  /// One line per stream that has not run empty.
  std::vector<std::string> blocked() const;
  /// Op that the host waits for; -1 if it does not.
  std::int32_t host_waits_for() const { return host_waits_for_; }

 private:
  static constexpr std::int32_t kNoQueue = -1;

  const Stream& stream_of(std::int32_t op) const {
    return streams_[static_cast<std::size_t>(this->op(op).stream)];
  }
  MemoryHost memory_host();
  void set_pace_of_collectives();
  void next_in_queue();

  // What every op needs comes first: a thousand GPUs take turns in the processor's caches.
  const DeviceContext& context_;
  const RankProgram& program_;
  int number_;  ///< of it, in Program::stages
  const StageQueues& queues_;
  std::span<OpRecord> records_;
  std::vector<Stream> streams_;
  std::int32_t in_turn_ = kNoQueue;  ///< op at the head of the hardware queue that streams share
  std::int32_t launched_ = 0;        ///< ops
  std::int32_t host_waits_for_ = -1;
  std::size_t left_;  ///< ops that have not ended
  // Beside the streams: most ends and loads concern few of them.
  StreamSet waiting_;  ///< for an op
  StreamSet with_kernels_;
  int rank_;
  Seconds last_end_;
  LaunchRun launches_;  ///< the last that the host began
  MemoryLedger memory_;
  std::unique_ptr<MemoryKeeper> pressure_;
  double stretch_of_collectives_ = 1;
  DeviceLoads loads_;
  Action wake_host_;
};

}  // namespace tessera
