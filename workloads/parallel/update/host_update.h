#pragma once

#include <cstdint>

#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pass_library.h"

namespace tessera {

/// What the CPU reads and writes of its memory for an update of `elements` parameters: gradients in
/// fp32 (twice more, where they are clipped), weight and both moments each way, and the cast of
/// weights that travel in their own format.
Bytes moved_by_host(const StepOptions& step, std::int64_t elements);

/// An update by the CPU (`StepOptions::offload_optimizer`): moments and master weights live in host
/// memory. Gradients are there already where they are scattered (GradientReduction), else they go
/// down in fp32 behind their sum. The CPU updates the rank's shard in the time that it takes to
/// move the bytes (Segment::host_moved); then the weights come back, in fp32 where the GPU holds
/// whole ones, and are cast there; where the host keeps them (`offload_parameters`) they stay.
/// Sources: Ren et al., "ZeRO-Offload", ATC 2021; DeepSpeed runtime/zero/stage_1_and_2.py,
/// csrc/adam/cpu_adam.cpp (recalled). Nothing of it overlaps with the next step (delayed updates
/// are off by default), nor the copies with the update.
class HostUpdate {
 public:
  /// All have to outlive it.
  HostUpdate(PassLibrary& library, const StepOptions& step, OpQueue& queue)
      : library_(library), step_(step), queue_(queue) {}

  /// Updates `elements`, the rank's shard, whose sums are behind the op `sums`.
  void run(std::int64_t elements, std::int32_t sums);

 private:
  std::int32_t take_gradients(std::int64_t elements);
  ProgramOp copy(OpKind kind, Bytes bytes) const;

  PassLibrary& library_;
  const StepOptions& step_;
  OpQueue& queue_;
};

}  // namespace tessera
