#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/memory/tensor_lives.h"

namespace tessera {

/// A forward op whose results can be given up: running it once more makes them again.
struct Rerun {
  std::int32_t op = 0;
  std::vector<std::int32_t> makes;  ///< of `TensorLives::all()`, that only backward passes read
  std::vector<std::int32_t> needs;  ///< that other ops made, and nobody writes later
};

/// Parameters are gathered for backward passes: ahead of a rerun they would not be there.
bool gathers_for_backward(const RankProgram& stage);
/// Kernels whose segment has neither messages nor buffers of communication, and makes the same when
/// it runs again.
bool stands_alone(const ProgramOp& op, const Program& program);

/// What a stage's program lets run again, known before it runs. A result that another forward op
/// reads is kept, so no rerun has to wait for another one: what it needs is on the device or in
/// host memory until the last of its results is used.
class Reruns {
 public:
  static constexpr std::int32_t kNone = -1;

  Reruns(const Program& program, int stage, const TensorLives& lives);

  const std::vector<Rerun>& all() const { return all_; }
  /// Position in `all()` of the op that makes `tensor` again; kNone: it cannot be given up.
  std::int32_t of_tensor(std::int32_t tensor) const {
    return of_tensor_[static_cast<std::size_t>(tensor)];
  }

 private:
  std::vector<Rerun> all_;
  std::vector<std::int32_t> of_tensor_;
};

}  // namespace tessera
