#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/trace/timeline.h"
#include "workloads/memory/tensor_lives.h"

namespace tessera {

class Gpu;

/// What a GPU still lacks when nothing more can leave it.
struct MemoryShortage {
  int rank = 0;
  std::int32_t op = 0;
  Bytes needed;   ///< by the op: what it takes, and brings back
  Bytes missing;  ///< of that
};

/// Keeps one GPU within its limit while the step runs. An allocation that would cross the limit
/// raises pressure: the tensors whose next use lies farthest ahead leave for host memory (Belady,
/// 1966), the op waits until there is room, and whoever needs one of them waits for its way back.
/// Each direction has one copy at a time, over links that other GPUs, planned copies and NICs
/// share. Ops close ahead are provided for: their room is made, their tensors return, while others
/// run.
class MemoryPressure {
 public:
  MemoryPressure(Gpu& gpu, const TensorLives& lives);

  /// Whether `op` may begin: all it needs is there, all it takes fits. Else copies are started.
  bool admit(std::int32_t op);
  void ended(std::int32_t op);

  /// Ops that wait for room although nothing is on its way.
  std::vector<MemoryShortage> shortages() const;
  const std::vector<PressureCopy>& copies() const { return copies_; }

 private:
  enum class Place : std::uint8_t { nowhere, device, leaving, host, returning };
  struct Tensor {
    Place place = Place::nowhere;
    std::uint32_t next_user = 0;  ///< in `TensorLife::users`
  };
  /// The copies of one direction, in order; the first one runs.
  using Copies = std::deque<std::int32_t>;

  Bytes bytes(std::int32_t tensor) const;
  Bytes taken_by(std::int32_t op) const;
  Bytes net_of(std::int32_t op) const;
  Bytes room() const;
  std::int32_t next_use(std::int32_t tensor) const;
  bool is_used_by(std::int32_t tensor, std::int32_t op) const;

  void begin(std::int32_t op);
  void look_ahead(std::int32_t op);
  /// Starts the departure of at least `missing` bytes if there are so many, of tensors that nobody
  /// needs before op `until`.
  void make_room(Bytes missing, std::int32_t until);
  std::int32_t farthest(std::int32_t until) const;
  void leave(std::int32_t tensor);
  void stay(std::int32_t tensor);
  void come_back(std::int32_t tensor);
  void start(bool out);
  void arrived(bool out);

  Gpu& gpu_;
  const TensorLives& lives_;
  std::vector<Tensor> tensors_;
  std::vector<std::int32_t> on_device_;  ///< tensors
  Copies leaving_, returning_;
  Bytes leaving_bytes_;  ///< of `leaving_`
  Bytes host_bytes_;     ///< held by what left
  std::int32_t running_ = -1;  ///< kernels
  std::map<std::int32_t, MemoryShortage> shortages_;  ///< by op that waits for room
  std::vector<PressureCopy> copies_;
};

}  // namespace tessera
