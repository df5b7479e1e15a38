#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "sim/engine/memory/copy_lanes.h"
#include "sim/engine/memory/eviction_policy.h"
#include "sim/engine/memory/kernel_horizon.h"
#include "sim/engine/memory/memory_host.h"
#include "sim/engine/memory/memory_keeper.h"
#include "sim/engine/memory/op_uses.h"
#include "sim/engine/memory/reruns.h"
#include "sim/engine/memory/residency.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// What a stage knows of its memory before it runs.
struct StageMemory {
  StageMemory(const Program& program, int stage)
      : lives(program, stage), reruns(program, stage, lives), uses(program, stage, lives) {}
  TensorLives lives;
  Reruns reruns;
  OpUses uses;
};

/// The keeper of policy `rule`. What goes is its choice (eviction_policy.h): a tensor to host
/// memory, which costs what neither the way out nor the way back hides beside kernels, or the
/// results of a forward op, which costs the time to run it again ahead of their first use. Whoever
/// needs a tensor waits until it is back. Ops close ahead are provided for: their room is made,
/// their tensors return, while others run.
class MemoryPressure final : public MemoryKeeper {
 public:
  MemoryPressure(MemoryHost host, const StageMemory& memory);

  bool admit(std::int32_t op) override;
  void ended(std::int32_t op) override;
  std::int32_t rerun() const override;
  Seconds rerun_time(std::int32_t op) const override { return host_.rerun_time(op); }
  void rerun_began() override;
  void rerun_ended() override;

  std::vector<MemoryShortage> shortages() const override;
  const std::vector<PressureCopy>& copies() const override { return lanes_.made(); }
  const std::vector<PressureRerun>& reran() const override { return reran_; }
  const std::vector<MemoryStall>& stalls() const override { return stalls_; }

 private:
  using Place = Residency::Place;
  static constexpr int kHorizon = 8;  ///< segments that are looked ahead: about two layers
  /// Memory as the ops close ahead will find it.
  struct Forecast {
    Bytes level;                     ///< in use
    Bytes spare;                     ///< that nobody takes until then
    std::set<std::int32_t> counted;  ///< tensors that `level` holds though they are not there yet
    std::set<std::int32_t> given_up_later;  ///< reruns whose results it holds no more
  };

  Bytes room() const { return host_.limit().bytes - host_.ledger.claimed(); }
  EvictionView view() const;
  const Rerun& rerun_at(std::int32_t rerun) const {
    return reruns_.all()[static_cast<std::size_t>(rerun)];
  }
  std::int32_t rerun_needed_by(std::int32_t op) const;

  bool provide(std::int32_t op, std::span<const std::int32_t> tensors, Bytes taken,
               std::int32_t until);
  void begin(std::int32_t op);
  void look_ahead(std::int32_t op);
  /// Of buffers that ops launched ahead of `op` free when they end.
  Bytes returning_before(std::int32_t op) const;
  /// What `next` needs comes back as far as there is room to spare, and counts as there. Returns
  /// what it takes besides, or what has to run again ahead of it.
  Bytes bring_back_for(std::int32_t next, Forecast& ahead);
  /// What `rerun` makes again counts as there; 0: an op before has it run.
  Bytes count_again(const Rerun& rerun, Forecast& ahead) const;
  /// Starts the departure of at least `missing` bytes if there are so many, of tensors that nobody
  /// needs before op `until`; returns how many.
  Bytes make_room(Bytes missing, std::int32_t until);
  Bytes give_up(std::int32_t rerun, std::int32_t until);
  Bytes give_up_later(Bytes missing, std::int32_t op, std::int32_t until, Forecast& ahead) const;
  Bytes used_behind(std::int32_t rerun, std::int32_t until) const;
  void leave(std::int32_t tensor);
  void come_back(std::int32_t tensor);
  void arrived(CopyWay way, std::int32_t tensor);

  MemoryHost host_;
  const TensorLives& lives_;
  const Reruns& reruns_;
  Residency residency_;
  KernelHorizon horizon_;
  CopyLanes lanes_;
  std::vector<std::int32_t> rerun_of_op_;  ///< position in `reruns_.all()`; -1: none
  std::set<std::int32_t> returning_;       ///< collectives that free buffers and have not ended
  std::vector<std::int32_t> can_rerun_;    ///< that ran, no result of theirs was used
  std::int32_t next_rerun_ = -1;           ///< has room, or runs
  std::int32_t running_ = -1;              ///< kernels
  std::map<std::int32_t, MemoryShortage> shortages_;  ///< by op that waits for room
  std::map<std::int32_t, Seconds> waiting_since_;     ///< kernels that wait for memory alone
  std::vector<PressureRerun> reran_;
  std::vector<MemoryStall> stalls_;
};

}  // namespace tessera
