#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/memory/tensor_lives.h"

namespace tessera {

/// What each op of a stage's compute stream makes and reads, and what making it again takes.
/// Tensors are positions in `TensorLives::all()`; those that one op makes, uses and frees are none.
class OpUses {
 public:
  OpUses(const Program& program, int stage, const TensorLives& lives);

  std::span<const std::int32_t> made_by(std::int32_t op) const { return of(makes_, op); }
  std::span<const std::int32_t> read_by(std::int32_t op) const { return of(reads_, op); }
  std::int32_t maker(std::int32_t tensor) const { return maker_[static_cast<std::size_t>(tensor)]; }
  /// Kernels of the compute stream.
  bool computes(std::int32_t op) const { return computes_[static_cast<std::size_t>(op)] != 0; }
  /// Running it again makes the same from the same inputs, which nobody overwrites.
  bool can_rerun(std::int32_t op) const { return can_rerun_[static_cast<std::size_t>(op)] != 0; }
  /// Only ops of the compute stream use it: it may leave the device.
  bool can_leave(std::int32_t tensor) const {
    return can_leave_[static_cast<std::size_t>(tensor)] != 0;
  }
  /// Memory beside the tensors that may leave, in the order of the program and above its static
  /// memory: held before `op`, and the most while it runs.
  Bytes besides_before(std::int32_t op) const { return besides_[static_cast<std::size_t>(op)]; }
  Bytes besides_during(std::int32_t op) const { return most_[static_cast<std::size_t>(op)]; }
  std::int32_t ops() const { return static_cast<std::int32_t>(computes_.size()); }

 private:
  struct Lists {
    std::vector<std::size_t> begin{0};
    std::vector<std::int32_t> tensors;
  };

  static std::span<const std::int32_t> of(const Lists& lists, std::int32_t op) {
    const auto at = static_cast<std::size_t>(op);
    return std::span(lists.tensors).subspan(lists.begin[at], lists.begin[at + 1] - lists.begin[at]);
  }
  void sort_uses(const TensorLives& lives);
  void find_reruns(const Program& program, int stage, const TensorLives& lives);
  void count_besides(const Program& program, int stage, const TensorLives& lives);

  std::vector<std::int32_t> maker_;  ///< by tensor
  Lists makes_, reads_;
  std::vector<char> computes_, can_rerun_, can_leave_;
  std::vector<Bytes> besides_, most_;
};

}  // namespace tessera
