#pragma once

#include <cstdint>
#include <vector>

#include "workloads/parallel/pass.h"
#include "workloads/program.h"

namespace tessera {

/// One end of a message between neighbouring stages.
struct StageMessage {
  Phase phase = Phase::forward;
  int peer_stage = 0;
  int tag = 0;
  int micro_batch = 0;
  Bytes bytes;
  bool host_sync = false;
};

/// The ops of one rank in the order in which its host submits them. Keeps track of what the next op
/// on each stream has to wait for.
class OpQueue {
 public:
  /// `layer` is -1 outside of transformer layers.
  void run(const Pass& pass, int micro_batch, int layer);
  /// Sends what the compute stream made last.
  void send(const StageMessage& message);
  /// Kernels behind it wait for the message.
  void receive(const StageMessage& message);
  /// A collective over what the compute stream made last; kernels behind it wait.
  void collective(OpKind kind, GroupKind group, Phase phase, Bytes bytes, bool host_sync = false);

  std::vector<ProgramOp> finish() && { return std::move(ops_); }

 private:
  std::int32_t push(const ProgramOp& op);
  void start(const ProgramOp& collective);
  void wait_for_collective() { awaited_collective_ = last_collective_; }

  std::vector<ProgramOp> ops_;
  std::int32_t last_kernels_ = -1;
  std::int32_t last_collective_ = -1;
  std::int32_t awaited_collective_ = -1;  ///< the next kernels need it
  std::int32_t awaited_message_ = -1;     ///< likewise
};

}  // namespace tessera
