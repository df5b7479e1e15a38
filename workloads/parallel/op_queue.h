#pragma once

#include <cstdint>
#include <vector>

#include "workloads/parallel/pass.h"
#include "workloads/program/program.h"

namespace tessera {

/// One end of a message between neighbouring stages.
struct StageMessage {
  Phase phase = Phase::forward;
  int peer_stage = 0;
  int tag = 0;
  int micro_batch = 0;
  Bytes bytes;
  bool is_header = false;  ///< the receiver reads it to know the tensor behind it
  bool host_sync = false;
  bool after_kernels = true;  ///< a receive begins when the compute stream got there
};

/// A pass over a block, and where it belongs.
struct PassRun {
  const Pass& pass;
  int micro_batch = -1;
  int layer = -1;             ///< -1 outside of transformer layers
  std::int32_t message = -1;  ///< op that brings what it works on; -1: none
};

/// The ops of one rank in the order in which its host submits them. Keeps track of what the next op
/// on each stream has to wait for.
class OpQueue {
 public:
  /// `layer` is -1 outside of transformer layers.
  void run(const Pass& pass, int micro_batch, int layer);
  /// Two passes that need nothing of each other: each goes on until it needs what an exchange of
  /// experts brings, then the other does. `first` begins.
  void run_together(const PassRun& first, const PassRun& second);
  /// Sends what the compute stream made last.
  void send(const StageMessage& message);
  /// Gives the op that `await_message` takes.
  std::int32_t receive(const StageMessage& message);
  /// What runs next waits for the message.
  void await_message(std::int32_t received) { awaited_message_ = received; }
  /// A collective over what the compute stream made last; kernels behind it wait.
  void collective(OpKind kind, GroupKind group, Phase phase, Bytes bytes, bool host_sync = false);

  /// An op as it is; nothing waits for it yet. Gives its number.
  std::int32_t add(const ProgramOp& op) { return push(op); }
  /// What runs next waits for `op` too. `join` is an empty segment, for more waits than an op has.
  void await(std::int32_t op, SegmentId join);
  /// The next op allocates, and the last kernels free.
  void allocate(Bytes bytes) { allocated_ += bytes; }
  void free(Bytes bytes) { ops_[static_cast<std::size_t>(last_kernels_)].freed += bytes; }
  std::int32_t size() const { return static_cast<std::int32_t>(ops_.size()); }
  /// The last kernels of the compute stream; -1: none yet.
  std::int32_t last_kernels() const { return last_kernels_; }

  std::vector<ProgramOp> finish() && { return std::move(ops_); }

 private:
  /// What the next op of a sequence of passes has to wait for.
  struct Lane {
    std::int32_t last_kernels = -1, last_collective = -1;
    std::int32_t awaited_collective = -1, awaited_message = -1;
  };
  Lane lane() const {
    return {last_kernels_, last_collective_, awaited_collective_, awaited_message_};
  }
  void set_lane(const Lane& lane);
  void run_piece(const PassPiece& piece, int micro_batch, int layer);
  bool waits_for_tokens(const PassPiece& piece) const;
  std::int32_t push(const ProgramOp& op);
  void start(const ProgramOp& collective);
  void join(std::int32_t first, std::int32_t second);
  void wait_for_collective() { awaited_collective_ = last_collective_; }

  std::vector<ProgramOp> ops_;
  std::int32_t last_kernels_ = -1;
  std::int32_t last_collective_ = -1;
  std::int32_t awaited_collective_ = -1;  ///< the next kernels need it
  std::int32_t awaited_message_ = -1;     ///< likewise
  std::int32_t awaited_other_ = -1;       ///< likewise
  SegmentId join_;
  Bytes allocated_;  ///< by the op that comes next
};

}  // namespace tessera
