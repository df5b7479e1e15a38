#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/engine/clock/paced_work.h"
#include "sim/engine/communication/collective_board.h"
#include "sim/trace/launch_dates.h"
#include "workloads/program/program.h"

namespace tessera {

class Gpu;

/// An in-order queue of a GPU. Two rules: an op starts when it is the head of its stream, its host
/// has launched it and the ops it waits for have ended; when it ends, who waits for it is woken.
/// Streams are passive: they move only inside actions of the clock.
///
/// Fills cache lines of its own: of large jobs, the streams of a thousand GPUs take turns in them.
class alignas(64) Stream final : public CollectiveMember {
 public:
  Stream(Gpu& gpu, StreamKind kind, std::span<const std::int32_t> queue)
      : gpu_(gpu), kind_(kind), head_(queue.data()), end_(queue.data() + queue.size()) {}

  /// Starts the head if it may start.
  void advance();
  /// The load of the GPU has changed: kernels that run end earlier or later.
  void change_pace_of_kernels();
  /// Likewise a collective, since the kernels beside it are others.
  void change_pace_of_collective();
  /// Whether the head waits for `op`, or Gpu::kRoom.
  bool awaits(std::int32_t op) const { return awaited_ == op; }
  /// The last op that has ended; -1: none yet.
  std::int32_t last_ended() const { return last_ended_; }
  /// Of the kernels that run.
  double product_share() const { return product_share_; }

  int rank() const override;
  void collective_started() override;
  void collective_ended(Seconds all_joined, int last_rank) override;
  double stretch_of_collectives() const override;
  void prefetch() const override;

  /// Why the stream has not run empty, such as "gpu 2 stream compute op 3 waits for op 2"; nothing
  /// if it has.
  std::optional<std::string> blocked() const;

 private:
  static constexpr std::int32_t kNone = -1;

  void await(std::int32_t op);
  bool is_launched(std::int32_t op);
  void begin(std::int32_t op);
  void execute(const ProgramOp& op);
  void run_kernels(const TimedSegment& segment);
  /// Ahead of the head: results of `op` were given up.
  void run_again(std::int32_t op);
  void ran_again();
  void end() { end(started_, kNone); }
  void end(Seconds transfer_start, int last_rank);
  void join_collective();
  bool on_host() const { return kind_ == StreamKind::host; }
  std::string reason() const;

  // Streams of communication need the first cache line alone.
  Gpu& gpu_;
  StreamKind kind_;
  std::int32_t running_ = kNone;
  std::int32_t awaited_ = kNone;                 ///< op that the head waits for; or Gpu::kRoom
  std::int32_t last_ended_ = kNone;              ///< ops of a stream end in their order
  const std::int32_t* head_;                     ///< in the queue: the next op to start
  const std::int32_t* end_;                      ///< of the queue
  Seconds started_;                              ///< the op that runs
  const PlannedTransfer* collective_ = nullptr;  ///< that runs; null: none
  double product_share_ = 0;                     ///< of the kernels that run
  PacedWork kernels_;                            ///< that run
  LaunchDates launches_;                         ///< of heads that came here before their launch
};

}  // namespace tessera
