#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/memory/memory_replay.h"

namespace tessera {

/// A tensor of a rank's step from the op that makes it to the op that frees it.
struct TensorLife {
  Allocation allocation;
  std::vector<std::int32_t> users;  ///< ops that need it on the device, ascending: its maker first,
                                    ///< who frees it last
  std::int32_t last_writer = -1;    ///< of these
};

/// All tensors of the blocks that a rank runs, and which of them each op needs. Buffers of
/// communication and the optimizer's temporaries are none of them.
class TensorLives {
 public:
  TensorLives(const Program& program, int stage);

  const std::vector<TensorLife>& all() const { return lives_; }
  /// Positions in `all()`.
  std::span<const std::int32_t> of_op(std::int32_t op) const {
    const auto at = static_cast<std::size_t>(op);
    return std::span(of_ops_).subspan(first_of_op_[at], first_of_op_[at + 1] - first_of_op_[at]);
  }

 private:
  std::vector<TensorLife> lives_;
  std::vector<std::int32_t> of_ops_;
  std::vector<std::size_t> first_of_op_;  ///< by op
};

}  // namespace tessera
