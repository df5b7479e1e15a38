#include "sim/engine/memory/tensor_keeper.h"

#include <algorithm>
#include <utility>

namespace tessera {

TensorKeeper::TensorKeeper(MemoryHost host, const StageMemory& memory)
    : host_(std::move(host)),
      lives_(memory.lives),
      uses_(memory.uses),
      horizon_(host_),
      store_(host_, memory.lives, memory.uses),
      static_(host_.ledger.used()),
      planned_(memory.lives.all().size(), 0),
      last_return_(memory.lives.all().size(), 0) {}

bool TensorKeeper::admit(std::int32_t op) {
  protected_.clear();
  const bool ready = uses_.computes(op) ? admit_kernels(op) : admit_other(op);
  if (ready) {
    begin(op);
  } else if (host_.runs_kernels(op)) {
    waiting_since_.try_emplace(op, host_.clock.now());
  }
  return ready;
}

bool TensorKeeper::admit_kernels(std::int32_t op) {
  if (rerun_ != kNone) return false;  // it begins, or runs
  if (rescued_ != op && !turns_in_circles()) {
    if (provide(op)) return true;
    if (!is_stuck()) return false;
  }
  rescued_ = op;
  return provide_alone(op);
}

bool TensorKeeper::provide(std::int32_t op) {
  if (wants_plan(op)) plan_from(op);
  if (!follow_plan(op)) return false;
  const auto inputs = uses_.read_by(op);
  protected_.assign(inputs.begin(), inputs.end());
  if (!bring(inputs, op)) return false;
  return make_room(host_.taken_by(op), op);
}

bool TensorKeeper::admit_other(std::int32_t op) {
  const Bytes taken = host_.taken_by(op);
  if (taken <= Bytes(0)) return true;
  if (taken <= room()) {
    shortages_.erase(op);
    return true;
  }
  if (rerun_ != kNone) {
    const auto stay = uses_.read_by(rerun_);
    protected_.assign(stay.begin(), stay.end());
  }
  if (plans_ == 0 && host_.limit().policy == PressurePolicy::planner) {
    for (std::int32_t next = last_begun_ + 1; next < host_.ops(); ++next) {
      if (!uses_.computes(next)) continue;
      plan_from(next);
      break;
    }
  }
  return make_room(taken, op);
}

void TensorKeeper::begin(std::int32_t op) {
  shortages_.erase(op);
  if (uses_.computes(op)) drop_spare();
  store_.begin(op);
  if (!host_.runs_kernels(op)) return;
  if (const auto waited = waiting_since_.find(op); waited != waiting_since_.end()) {
    stalls_.push_back({host_.rank, op, waited->second, host_.clock.now()});
    waiting_since_.erase(waited);
  }
  if (!uses_.computes(op)) {
    beside_ = op;
    return;
  }
  running_ = last_begun_ = op;
  follow_plan_past(op);
  rescued_ = kNone;
  reruns_of_.clear();
  returns_of_.clear();
  if (host_.limit().policy == PressurePolicy::capuchin) look_ahead(op);
}

/// What was made again for something else, and has served.
void TensorKeeper::drop_spare() {
  std::erase_if(spare_, [&](std::int32_t tensor) {
    if (!store_.is_here(tensor) || store_.has_use(tensor)) return true;
    if (!store_.is_ready(tensor) || store_.is_leaving(tensor)) return false;
    store_.drop(tensor);
    return true;
  });
}

void TensorKeeper::ended(std::int32_t op) {
  if (op == beside_) beside_ = kNone;
  if (op != running_) return;
  running_ = kNone;
  std::vector<std::int32_t> dropped;
  for (std::size_t i = next_step_; i < steps_.size(); ++i) {
    const PlanStep& step = steps_[i];
    if (step.action == remat::Action::compute || step.action == remat::Action::copy_in) break;
    if (step.action == remat::Action::drop) dropped.push_back(step.id);
  }
  store_.end(op, [&](std::int32_t tensor) {
    const bool is_planned = planned_[static_cast<std::size_t>(tensor)] != 0;
    return is_planned &&
           (returns_by_plan(tensor) || std::ranges::find(dropped, tensor) == dropped.end());
  });
  while (next_step_ < steps_.size() && perform_at_once(steps_[next_step_])) ++next_step_;
}

void TensorKeeper::rerun_began() {
  const Seconds now = host_.clock.now();
  running_ = rerun_;
  host_.ledger.begin_segment(now, host_.taken_by(running_));
  ++reruns_of_[running_];
  reran_.push_back({host_.rank, running_, Bytes(0), now, now});
}

void TensorKeeper::rerun_ended() {
  PressureRerun& ran = reran_.back();
  ran.end = host_.clock.now();
  ran.bytes = store_.made_again(rerun_);
  host_.ledger.end_segment(ran.end, ran.bytes);
  const auto made = uses_.made_by(rerun_);
  if (!of_plan_) spare_.insert(spare_.end(), made.begin(), made.end());
  for (const std::int32_t tensor : made) {
    const bool is_planned = planned_[static_cast<std::size_t>(tensor)] != 0;
    if (of_plan_ && !is_planned && !store_.has_use(tensor)) store_.drop(tensor);
  }
  running_ = rerun_ = kNone;
  of_plan_ = false;
}

bool TensorKeeper::bring(std::span<const std::int32_t> tensors, std::int32_t op) {
  bool complete = true;
  for (const std::int32_t tensor : tensors) {
    store_.stay(tensor);
    if (!store_.is_ready(tensor) && !bring_one(tensor, op)) complete = false;
    if (rerun_ != kNone) return false;
  }
  return complete;
}

bool TensorKeeper::bring_one(std::int32_t tensor, std::int32_t op) {
  if (store_.is_arriving(tensor)) return false;
  if (store_.host_copy(tensor) == TensorStore::HostCopy::complete) {
    if (make_room(store_.bytes(tensor), op)) come_back(tensor);
  } else {
    prepare_rerun(uses_.maker(tensor), op);
  }
  return false;
}

void TensorKeeper::come_back(std::int32_t tensor) {
  ++returns_of_[tensor];
  store_.come_back(tensor);
  if (!store_.has_use(tensor)) spare_.push_back(tensor);
}

void TensorKeeper::prepare_rerun(std::int32_t made_by, std::int32_t op) {
  if (!uses_.can_rerun(made_by)) {  // a plan gave it up that was not kept to
    shortages_[op] = {host_.rank, op, host_.taken_by(made_by), Bytes(0)};
    return;
  }
  const auto inputs = uses_.read_by(made_by);
  protected_.insert(protected_.end(), inputs.begin(), inputs.end());
  if (!bring(inputs, op)) return;
  const Bytes taken = host_.taken_by(made_by);
  if (make_room(taken, op) || make_room_by_copies(taken, inputs, op)) rerun_ = made_by;
}

bool TensorKeeper::make_room(Bytes needed, std::int32_t op) {
  const auto lacking = [&] { return needed - room() - store_.leaving(); };
  while (lacking() > Bytes(0) && evict_one(true)) {
  }
  if (needed <= room()) {
    shortages_.erase(op);
    return true;
  }
  shortages_[op] = {host_.rank, op, needed, needed - room()};
  return false;
}

/// For a rerun: all but its operands may go, for as long as it runs.
bool TensorKeeper::make_room_by_copies(Bytes needed, std::span<const std::int32_t> stay,
                                       std::int32_t op) {
  if (!host_.limit().swap || needed - room() <= store_.leaving()) return false;
  const std::vector<std::int32_t> before = protected_;
  protected_.assign(stay.begin(), stay.end());
  while (needed - room() - store_.leaving() > Bytes(0) && evict_one(false)) {
  }
  protected_ = before;
  if (needed > room()) return false;
  shortages_.erase(op);
  return true;
}

std::vector<std::int32_t> TensorKeeper::candidates() const {
  std::vector<std::int32_t> list;
  const auto is_used = [&](std::int32_t op, std::int32_t tensor) {
    return op != kNone &&
           (std::ranges::binary_search(uses_.read_by(op), tensor) || uses_.maker(tensor) == op);
  };
  for (const std::int32_t tensor : store_.here()) {
    if (!store_.is_ready(tensor) || store_.is_leaving(tensor)) continue;
    if (is_used(running_, tensor) || is_used(rerun_, tensor)) continue;
    if (std::ranges::find(protected_, tensor) == protected_.end()) list.push_back(tensor);
  }
  return list;
}

bool TensorKeeper::evict_one(bool may_drop) {
  const std::vector<std::int32_t> list = candidates();
  const RoomView view{
      .host = host_,
      .store = store_,
      .uses = uses_,
      .horizon = horizon_,
      .op = std::max(0, last_begun_),
      .candidates = list,
      .may_copy = host_.limit().swap,
      .again = [&](std::int32_t tensor) { return may_drop ? again(tensor) : Seconds(-1); }};
  const PressurePolicy policy = host_.limit().policy;
  const Choice choice = policy == PressurePolicy::dtr        ? dtr_choice(view)
                        : policy == PressurePolicy::capuchin ? capuchin_choice(view)
                                                             : farthest_choice(view);
  if (choice.way == Departure::none) return false;
  departed_ = true;
  if (choice.way == Departure::drop) {
    store_.drop(choice.tensor);
  } else {
    store_.leave(choice.tensor);
  }
  return true;
}

Seconds TensorKeeper::again(std::int32_t tensor) const {
  if (!host_.limit().recompute) return Seconds(-1);
  if (!store_.has_use(tensor)) {  // a plan holds it for what it makes again, or nobody needs it
    return Seconds(planned_[static_cast<std::size_t>(tensor)] != 0 ? -1 : 0);
  }
  std::vector<std::int32_t> ops;
  const std::int32_t use = store_.next_use(tensor);
  if (!count_again(tensor, use, ops)) return Seconds(-1);
  Seconds sum;
  for (const std::int32_t op : ops) sum += host_.rerun_time(op);
  return sum;
}

/// Adds the ops to run for `tensor` at op `until`.
bool TensorKeeper::count_again(std::int32_t tensor, std::int32_t until,
                               std::vector<std::int32_t>& ops) const {
  constexpr std::size_t kLongest = 64;
  const std::int32_t maker = uses_.maker(tensor);
  if (std::ranges::find(ops, maker) != ops.end()) return true;
  if (!uses_.can_rerun(maker) || ops.size() == kLongest) return false;
  ops.push_back(maker);
  return std::ranges::all_of(uses_.read_by(maker), [&](std::int32_t input) {
    const bool there =
        store_.is_here(input) || store_.host_copy(input) == TensorStore::HostCopy::complete;
    if (there && store_.has_use(input) && store_.last_use(input) >= until) return true;
    return count_again(input, until, ops);
  });
}

std::vector<MemoryShortage> TensorKeeper::shortages() const {
  std::vector<MemoryShortage> list;
  if (store_.copies()) return list;
  for (const auto& [op, shortage] : shortages_) list.push_back(shortage);
  return list;
}

std::unique_ptr<MemoryKeeper> make_keeper(MemoryHost host, const StageMemory& memory) {
  if (host.limit().policy == PressurePolicy::rule)
    return std::make_unique<MemoryPressure>(std::move(host), memory);
  return std::make_unique<TensorKeeper>(std::move(host), memory);
}

}  // namespace tessera
