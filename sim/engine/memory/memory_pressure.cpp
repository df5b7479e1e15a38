#include "sim/engine/memory/memory_pressure.h"

#include <algorithm>
#include <utility>

namespace tessera {

MemoryPressure::MemoryPressure(MemoryHost host, const StageMemory& memory)
    : host_(std::move(host)),
      lives_(memory.lives),
      reruns_(memory.reruns),
      residency_(memory.lives),
      horizon_(host_),
      lanes_(host_, [this](CopyWay way, std::int32_t tensor) { arrived(way, tensor); }),
      rerun_of_op_(host_.program.ops.size(), -1) {
  for (std::size_t i = 0; i < reruns_.all().size(); ++i)
    rerun_of_op_[static_cast<std::size_t>(reruns_.all()[i].op)] = static_cast<std::int32_t>(i);
  for (std::int32_t op = 0; op < host_.ops(); ++op)
    if (is_collective(host_.op(op).kind) && host_.op(op).freed > Bytes(0)) returning_.insert(op);
}

EvictionView MemoryPressure::view() const {
  return {.host = host_,
          .residency = residency_,
          .reruns = reruns_,
          .horizon = horizon_,
          .lanes = lanes_,
          .can_rerun = can_rerun_,
          .running = running_,
          .next_rerun = next_rerun_};
}

bool MemoryPressure::admit(std::int32_t op) {
  const std::int32_t first = rerun_needed_by(op);
  const bool ready = first < 0 && provide(op, lives_.of_op(op), host_.taken_by(op), op);
  if (first >= 0) {
    next_rerun_ = first;  // what it needs stays, and what `op` needs may leave once more
    const Rerun& rerun = rerun_at(first);
    if (!provide(op, rerun.needs, host_.taken_by(rerun.op), -1)) next_rerun_ = -1;
  }
  if (ready) {
    begin(op);
  } else if (host_.runs_kernels(op)) {
    waiting_since_.try_emplace(op, host_.clock.now());
  }
  return ready;
}

/// Whether `tensors` are there and `taken` fits besides, for `op` or what has to run ahead of it.
/// What is used up to `op` leaves only where nothing else is left to, and what is used up to
/// `until` not at all; nothing leaves for what collectives that were launched before will free.
bool MemoryPressure::provide(std::int32_t op, std::span<const std::int32_t> tensors, Bytes taken,
                             std::int32_t until) {
  Bytes needed = taken;
  bool complete = true;
  for (const std::int32_t tensor : tensors) {
    if (residency_.place(tensor) == Place::leaving && lanes_.call_off(tensor))
      residency_.stay(tensor);
    const Place place = residency_.place(tensor);
    if (place == Place::host) needed += residency_.bytes(tensor);
    if (place != Place::device && place != Place::nowhere) complete = false;
  }
  if (needed > Bytes(0)) {
    const Bytes coming = returning_before(op);
    const auto lacking = [&] { return needed - room() - residency_.leaving_bytes() - coming; };
    if (lacking() > Bytes(0)) make_room(lacking(), op);
    if (lacking() > Bytes(0) && until < op) make_room(lacking(), until);
  }
  const Bytes missing = needed - room();
  if (needed > Bytes(0) && missing > Bytes(0)) {
    shortages_[op] = {host_.rank, op, needed, missing};
    return false;
  }
  shortages_.erase(op);
  if (complete) return true;
  for (const std::int32_t tensor : tensors)
    if (residency_.place(tensor) == Place::host) come_back(tensor);
  return false;
}

void MemoryPressure::begin(std::int32_t op) {
  for (const std::int32_t tensor : lives_.of_op(op)) {
    const bool is_first_use = residency_.uses_begun(tensor) == 1;
    if (is_first_use && reruns_.of_tensor(tensor) >= 0)
      std::erase(can_rerun_, reruns_.of_tensor(tensor));
    residency_.use(tensor);
  }
  if (!host_.runs_kernels(op)) return;
  if (const auto waited = waiting_since_.find(op); waited != waiting_since_.end()) {
    stalls_.push_back({host_.rank, op, waited->second, host_.clock.now()});
    waiting_since_.erase(waited);
  }
  if (host_.op(op).stream != StreamKind::compute) return;  // others are launched at other places
  running_ = op;
  look_ahead(op);
}

void MemoryPressure::ended(std::int32_t op) {
  if (op == running_) running_ = -1;
  returning_.erase(op);
  const std::int32_t rerun = rerun_of_op_[static_cast<std::size_t>(op)];
  if (rerun >= 0 && host_.limit().recompute) can_rerun_.push_back(rerun);
  for (const std::int32_t tensor : lives_.of_op(op)) residency_.release(tensor);
}

Bytes MemoryPressure::returning_before(std::int32_t op) const {
  Bytes sum;
  for (const std::int32_t before : returning_) {
    if (before >= op) break;
    sum += host_.op(before).freed;
  }
  return sum;
}

// The levels are those that follow if nothing else left or returned. Collectives are taken to end
// where they were launched: an op that comes too early waits.
void MemoryPressure::look_ahead(std::int32_t op) {
  const Bytes limit = host_.limit().bytes;
  const Bytes used = host_.ledger.used();
  Forecast ahead{
      .level = used - residency_.leaving_bytes() + host_.net_of(op) - returning_before(op),
      .spare = limit - used - host_.taken_by(op),
      .counted = {},
      .given_up_later = {}};
  int looked = 0;
  for (std::int32_t next = op + 1; next < host_.ops() && looked < kHorizon; ++next) {
    if (returning_.contains(next)) ahead.level -= host_.op(next).freed;
    if (!host_.runs_kernels(next)) continue;
    ++looked;
    const Bytes taken = bring_back_for(next, ahead);
    const Bytes missing = ahead.level + taken - limit;
    if (missing > Bytes(0)) ahead.level -= give_up_later(missing, op, next, ahead);
    if (ahead.level + taken > limit) ahead.level -= make_room(ahead.level + taken - limit, next);
    ahead.spare = std::min(ahead.spare, limit - ahead.level - taken);
    ahead.level += host_.net_of(next);
  }
}

Bytes MemoryPressure::bring_back_for(std::int32_t next, Forecast& ahead) {
  const auto bring_back = [&](std::int32_t tensor) {
    if (residency_.place(tensor) != Place::host) return;
    const Bytes bytes = residency_.bytes(tensor);
    if (ahead.counted.insert(tensor).second) ahead.level += bytes;
    if (bytes > ahead.spare) return;
    ahead.spare -= bytes;
    come_back(tensor);
  };
  Bytes taken = host_.taken_by(next);
  for (const std::int32_t tensor : lives_.of_op(next)) {
    bring_back(tensor);
    if (residency_.place(tensor) != Place::given_up) continue;
    const Rerun& rerun = rerun_at(reruns_.of_tensor(tensor));
    std::ranges::for_each(rerun.needs, bring_back);
    const Bytes again = count_again(rerun, ahead);
    if (again > Bytes(0)) taken = std::max(taken, host_.taken_by(rerun.op) - again);
  }
  return taken;
}

Bytes MemoryPressure::count_again(const Rerun& rerun, Forecast& ahead) const {
  Bytes again;
  for (const std::int32_t made : rerun.makes) {
    const bool is_given_up = residency_.place(made) == Place::given_up;
    if (is_given_up && ahead.counted.insert(made).second) again += residency_.bytes(made);
  }
  ahead.level += again;
  return again;
}

Bytes MemoryPressure::make_room(Bytes missing, std::int32_t until) {
  Bytes going;
  while (going < missing) {
    const Eviction next = cheapest_eviction(view(), until);
    if (next.rerun >= 0) {
      going += give_up(next.rerun, until);
    } else if (next.tensor >= 0) {
      going += residency_.bytes(next.tensor);
      leave(next.tensor);
    } else {
      break;
    }
  }
  return going;
}

Bytes MemoryPressure::give_up(std::int32_t rerun, std::int32_t until) {
  Bytes freed;
  for (const std::int32_t tensor : rerun_at(rerun).makes) {
    if (residency_.was_made_again(tensor) || !can_go(view(), tensor, until)) continue;
    residency_.give_up(tensor);
    freed += residency_.bytes(tensor);
  }
  host_.ledger.change(host_.clock.now(), -freed);
  return freed;
}

/// Nothing need leave now for what can be given up in time: results that ops from `op` on will have
/// made by `until`, where that is cheaper than a copy. Returns how many bytes.
Bytes MemoryPressure::give_up_later(Bytes missing, std::int32_t op, std::int32_t until,
                                    Forecast& ahead) const {
  Bytes later;
  if (!host_.limit().recompute) return later;
  const std::int32_t other = farthest_tensor(view(), until);
  for (std::int32_t made = op; made < until && later < missing; ++made) {
    const std::int32_t rerun = rerun_of_op_[static_cast<std::size_t>(made)];
    if (rerun < 0 || ahead.given_up_later.contains(rerun)) continue;
    const Bytes freed = used_behind(rerun, until);
    const auto price = [&] {
      return host_.rerun_time(made).value() / static_cast<double>(freed.value());
    };
    if (freed == Bytes(0) || (other >= 0 && price() >= price_of_copy(view(), other, until)))
      continue;
    ahead.given_up_later.insert(rerun);
    later += freed;
  }
  return later;
}

/// Bytes of the results of `rerun` that nobody uses up to `until` once they are made.
Bytes MemoryPressure::used_behind(std::int32_t rerun, std::int32_t until) const {
  Bytes sum;
  for (const std::int32_t tensor : rerun_at(rerun).makes) {
    const bool is_used_behind = lives_.all()[static_cast<std::size_t>(tensor)].users[1] > until;
    if (is_used_behind) sum += residency_.bytes(tensor);
  }
  return sum;
}

void MemoryPressure::leave(std::int32_t tensor) {
  residency_.leave(tensor);
  lanes_.add(CopyWay::out, tensor, residency_.bytes(tensor));
}

void MemoryPressure::come_back(std::int32_t tensor) {
  residency_.come_back(tensor);
  host_.ledger.change(host_.clock.now(), residency_.bytes(tensor));
  lanes_.add(CopyWay::in, tensor, residency_.bytes(tensor));
}

void MemoryPressure::arrived(CopyWay way, std::int32_t tensor) {
  if (way == CopyWay::in) return residency_.came_back(tensor);
  residency_.left(tensor);
  host_.ledger.change(host_.clock.now(), -residency_.bytes(tensor));
}

std::int32_t MemoryPressure::rerun_needed_by(std::int32_t op) const {
  for (const std::int32_t tensor : lives_.of_op(op))
    if (residency_.place(tensor) == Place::given_up) return reruns_.of_tensor(tensor);
  return -1;
}

/// Kernels that run again begin behind those that run.
std::int32_t MemoryPressure::rerun() const {
  return next_rerun_ >= 0 ? rerun_at(next_rerun_).op : -1;
}

void MemoryPressure::rerun_began() {
  const Seconds now = host_.clock.now();
  running_ = rerun();
  host_.ledger.begin_segment(now, host_.taken_by(running_));
  reran_.push_back({host_.rank, running_, Bytes(0), now, now});
}

/// What was given up is there again; second copies of the other results go.
void MemoryPressure::rerun_ended() {
  PressureRerun& ran = reran_.back();
  ran.end = host_.clock.now();
  for (const std::int32_t tensor : rerun_at(next_rerun_).makes) {
    if (residency_.place(tensor) != Place::given_up) continue;
    residency_.made_again(tensor);
    ran.bytes += residency_.bytes(tensor);
  }
  host_.ledger.end_segment(ran.end, ran.bytes);
  running_ = next_rerun_ = -1;
}

std::vector<MemoryShortage> MemoryPressure::shortages() const {
  std::vector<MemoryShortage> list;
  if (!lanes_.idle()) return list;
  for (const auto& [op, shortage] : shortages_) list.push_back(shortage);
  return list;
}

}  // namespace tessera
