#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "sim/engine/memory/kernel_horizon.h"
#include "sim/engine/memory/memory_keeper.h"
#include "sim/engine/memory/memory_pressure.h"
#include "sim/engine/memory/online_policy.h"
#include "sim/engine/memory/rest_of_step.h"
#include "sim/engine/memory/tensor_store.h"

namespace tessera {

/// The keeper of the policies that tell tensors apart. What an op needs is brought back on demand:
/// copied, or made again with whatever that needs in turn. Under `planner` the first shortage has
/// the rest of the step planned, and the plan's steps run ahead of each op; where memory is
/// otherwise than the plan took it to be, room is made on demand as under the other policies.
///
/// No deadlock where copies are allowed: an op that nothing brings further is rescued
/// (tensor_keeper_rescue.cpp).
class TensorKeeper final : public MemoryKeeper {
 public:
  TensorKeeper(MemoryHost host, const StageMemory& memory);

  bool admit(std::int32_t op) override;
  void ended(std::int32_t op) override;
  std::int32_t rerun() const override { return rerun_; }
  Seconds rerun_time(std::int32_t op) const override { return host_.rerun_time(op); }
  void rerun_began() override;
  void rerun_ended() override;

  std::vector<MemoryShortage> shortages() const override;
  const std::vector<PressureCopy>& copies() const override { return store_.lanes().made(); }
  const std::vector<PressureRerun>& reran() const override { return reran_; }
  const std::vector<MemoryStall>& stalls() const override { return stalls_; }

 private:
  static constexpr std::int32_t kNone = -1;

  Bytes room() const { return host_.limit().bytes - host_.ledger.claimed(); }

  bool admit_kernels(std::int32_t op);
  /// All that `op` needs is on the device, and there is room for what it takes.
  bool provide(std::int32_t op);
  bool admit_other(std::int32_t op);
  void begin(std::int32_t op);
  void drop_spare();

  /// The first shortage is in sight, or what happened was not as planned.
  bool wants_plan(std::int32_t op);
  /// From which op on the planner has to know: a shortage ahead, less the time in which what will
  /// lack then can be copied out. The number of ops where there is none.
  std::int32_t first_in_sight() const;
  void plan_from(std::int32_t op);
  /// Whether `steps` make again what is gone and has no copy.
  bool brings_back(const RestOfStep& rest, const std::vector<PlanStep>& steps) const;
  /// Steps ahead of `op`; false: one has to wait.
  bool follow_plan(std::int32_t op);
  bool run_plan_again(std::int32_t made_by);
  /// `op` begins: what the plan has up to it is done, or left to demand.
  void follow_plan_past(std::int32_t op);
  void plan_copy_in(std::int32_t tensor);
  /// A plan drops it because of a copy that it outlived: it was overwritten since.
  bool needs_copy(std::int32_t tensor) const;
  /// A step of the plan still to come copies it back.
  bool returns_by_plan(std::int32_t tensor) const {
    return last_return_[static_cast<std::size_t>(tensor)] > next_step_;
  }
  /// Steps that take no time and no room.
  bool perform_at_once(const PlanStep& step);
  void copy_back_early(std::int32_t op);
  void look_ahead(std::int32_t op);

  /// Nothing is under way that could help the op that waits.
  bool is_stuck() const;
  /// The same runs again and again, or comes and goes.
  bool turns_in_circles() const;
  /// `provide` with all else copied out: one absent operand after the other is made again or comes
  /// back.
  bool provide_alone(std::int32_t op);
  /// The op to run for `op`: itself where all that it reads is here or has a copy, else the first
  /// of those that make it again; kNone: there is none.
  std::int32_t first_to_run(std::int32_t op) const;

  /// Has `tensors` on the device, or starts what brings one; false: not yet.
  bool bring(std::span<const std::int32_t> tensors, std::int32_t op);
  bool bring_one(std::int32_t tensor, std::int32_t op);
  void come_back(std::int32_t tensor);
  void prepare_rerun(std::int32_t made_by, std::int32_t op);
  bool make_room(Bytes needed, std::int32_t op);
  bool make_room_by_copies(Bytes needed, std::span<const std::int32_t> stay, std::int32_t op);
  bool evict_one(bool may_drop);
  std::vector<std::int32_t> candidates() const;
  /// Time to make `tensor` again from what will be there at its next use; < 0: impossible.
  Seconds again(std::int32_t tensor) const;
  bool count_again(std::int32_t tensor, std::int32_t until, std::vector<std::int32_t>& ops) const;

  MemoryHost host_;
  const TensorLives& lives_;
  const OpUses& uses_;
  KernelHorizon horizon_;
  TensorStore store_;
  Bytes static_;                   ///< in use when the step begins
  std::int32_t in_sight_ = kNone;  ///< op from which on a shortage is; kNone: not looked for yet
  int plans_ = 0;
  std::int32_t planned_at_ = 0;  ///< op from which the last plan was made
  bool departed_ = false;        ///< room was made that the plan did not foresee
  std::vector<char> planned_;    ///< by tensor: part of the plan
  std::vector<PlanStep> steps_;  ///< of the plan
  std::size_t next_step_ = 0;
  std::vector<std::size_t> last_return_;    ///< by tensor: position of its last copy back; 0: none
  std::deque<std::int32_t> early_;          ///< tensors that come back as soon as there is room
  std::vector<std::int32_t> protected_;     ///< tensors that stay, for what is being provided
  std::vector<std::int32_t> spare_;         ///< made again on demand: goes unless it has a use
  bool of_plan_ = false;                    ///< the rerun
  std::int32_t last_begun_ = kNone;         ///< on the compute stream
  std::int32_t running_ = kNone;            ///< on the compute stream
  std::int32_t beside_ = kNone;             ///< kernels on another stream
  std::int32_t rerun_ = kNone;              ///< has room, or runs
  std::int32_t rescued_ = kNone;            ///< waits with all but its operands copied out
  std::map<std::int32_t, int> reruns_of_;   ///< since an op last began, by op that ran again
  std::map<std::int32_t, int> returns_of_;  ///< and by tensor that came back
  std::map<std::int32_t, MemoryShortage> shortages_;  ///< by op that waits for room
  std::map<std::int32_t, Seconds> waiting_since_;     ///< kernels that wait for memory alone
  std::vector<PressureRerun> reran_;
  std::vector<MemoryStall> stalls_;
};

/// The keeper of the limit's policy.
std::unique_ptr<MemoryKeeper> make_keeper(MemoryHost host, const StageMemory& memory);

}  // namespace tessera
