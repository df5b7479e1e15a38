#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "sim/engine/memory/reruns.h"
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

/// What a stage knows of its memory before it runs.
struct StageMemory {
  StageMemory(const Program& program, int stage)
      : lives(program, stage), reruns(program, stage, lives) {}
  TensorLives lives;
  Reruns reruns;
};

/// Keeps one GPU within its limit while the step runs. An allocation that would cross the limit
/// raises pressure, and the op waits until there is room. Of two ways the one with less time lost
/// per byte is taken: the tensor whose next use lies farthest ahead leaves for host memory (Belady,
/// 1966), which costs what neither the way out nor the way back hides beside kernels; or the
/// results of a forward op are given up, which costs the time to run it again ahead of their first
/// use. Whoever needs a tensor waits until it is back. Each direction has one copy at a time, over
/// links that other GPUs, planned copies and NICs share. Ops close ahead are provided for: their
/// room is made, their tensors return, while others run.
class MemoryPressure {
 public:
  MemoryPressure(Gpu& gpu, const StageMemory& memory);

  /// Whether `op` may begin: all it needs is there, all it takes fits. Else copies are started, or
  /// `rerun()` has to run first.
  bool admit(std::int32_t op);
  void ended(std::int32_t op);
  /// Forward op to run again, now, on the compute stream; -1: none.
  std::int32_t rerun() const;
  void rerun_began();
  void rerun_ended();

  /// Ops that wait for room although nothing is on its way.
  std::vector<MemoryShortage> shortages() const;
  const std::vector<PressureCopy>& copies() const { return copies_; }
  const std::vector<PressureRerun>& reran() const { return reran_; }
  const std::vector<MemoryStall>& stalls() const { return stalls_; }

 private:
  static constexpr int kHorizon = 8;  ///< segments that are looked ahead: about two layers
  enum class Place : std::uint8_t { nowhere, device, leaving, host, returning, given_up };
  struct Tensor {
    Place place = Place::nowhere;
    bool made_again = false;
    std::uint32_t next_user = 0;  ///< in `TensorLife::users`
  };
  /// Memory as the ops close ahead will find it.
  struct Forecast {
    Bytes level;                     ///< in use
    Bytes spare;                     ///< that nobody takes until then
    std::set<std::int32_t> counted;  ///< tensors that `level` holds though they are not there yet
    std::set<std::int32_t> given_up_later;  ///< reruns whose results it holds no more
  };
  /// The copies of one direction, in order; the first one runs.
  using Copies = std::deque<std::int32_t>;

  Bytes bytes(std::int32_t tensor) const;
  Bytes taken_by(std::int32_t op) const;
  Bytes net_of(std::int32_t op) const;
  Bytes room() const;
  std::int32_t next_use(std::int32_t tensor) const;
  bool is_used_by(std::int32_t tensor, std::int32_t op) const;

  bool provide(std::int32_t op, std::span<const std::int32_t> tensors, Bytes taken,
               std::int32_t until);
  void begin(std::int32_t op);
  void look_ahead(std::int32_t op);
  /// What `next` needs comes back as far as there is room to spare, and counts as there. Returns
  /// what it takes besides, or what has to run again ahead of it.
  Bytes bring_back_for(std::int32_t next, Forecast& ahead);
  /// Starts the departure of at least `missing` bytes if there are so many, of tensors that nobody
  /// needs before op `until`; returns how many.
  Bytes make_room(Bytes missing, std::int32_t until);
  std::int32_t farthest(std::int32_t until) const;
  void leave(std::int32_t tensor);
  void stay(std::int32_t tensor);
  void come_back(std::int32_t tensor);
  void start(bool out);
  void arrived(bool out);

  // Reruns are positions in `reruns_.all()`.
  const Rerun& rerun_at(std::int32_t rerun) const {
    return reruns_.all()[static_cast<std::size_t>(rerun)];
  }
  std::int32_t rerun_needed_by(std::int32_t op) const;
  bool can_go(std::int32_t tensor, std::int32_t until) const;
  Bytes freed_by(std::int32_t rerun, std::int32_t until) const;
  std::int32_t cheapest_rerun(std::int32_t until) const;
  Bytes give_up(std::int32_t rerun, std::int32_t until);
  Bytes give_up_later(Bytes missing, std::int32_t op, std::int32_t until, Forecast& ahead) const;

  // Seconds lost per byte that leaves.
  double price_of_rerun(std::int32_t rerun, std::int32_t until) const;
  double price_of_copy(std::int32_t tensor, std::int32_t until) const;
  double copy_seconds(std::int32_t tensor, bool out) const;
  Seconds kernel_time(std::int32_t from, std::int32_t to) const;

  Gpu& gpu_;
  const TensorLives& lives_;
  const Reruns& reruns_;
  std::vector<Tensor> tensors_;
  std::vector<std::int32_t> on_device_;  ///< tensors
  std::vector<std::int32_t> away_;       ///< tensors in host memory, or on a way
  Copies leaving_, returning_;
  Bytes leaving_bytes_;  ///< of `leaving_`
  Bytes host_bytes_;     ///< held by what left
  /// Of the last copy in and out: its time over that alone on its links.
  std::array<double, 2> slowdown_{1, 1};
  std::vector<std::int32_t> rerun_of_op_;  ///< -1: none
  std::vector<std::int32_t> can_rerun_;    ///< that ran, and no result of theirs has been used
  std::int32_t next_rerun_ = -1;           ///< has room, or runs
  std::vector<Seconds> kernel_time_;       ///< by op: of all kernels ahead of it
  std::vector<std::int32_t> kernel_ops_;
  std::int32_t running_ = -1;                         ///< kernels
  std::map<std::int32_t, MemoryShortage> shortages_;  ///< by op that waits for room
  std::map<std::int32_t, Seconds> waiting_since_;     ///< kernels that wait for memory alone
  std::vector<PressureCopy> copies_;
  std::vector<PressureRerun> reran_;
  std::vector<MemoryStall> stalls_;
};

}  // namespace tessera
