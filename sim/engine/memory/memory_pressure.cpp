#include "sim/engine/memory/memory_pressure.h"

#include <algorithm>

#include "sim/engine/device/gpu.h"

namespace tessera {
MemoryPressure::MemoryPressure(Gpu& gpu, const StageMemory& memory)
    : gpu_(gpu),
      lives_(memory.lives),
      reruns_(memory.reruns),
      tensors_(memory.lives.all().size()),
      rerun_of_op_(gpu.program().ops.size(), -1) {
  for (std::size_t i = 0; i < reruns_.all().size(); ++i)
    rerun_of_op_[static_cast<std::size_t>(reruns_.all()[i].op)] = static_cast<std::int32_t>(i);
  Seconds ahead;
  for (std::int32_t op = 0; op < static_cast<std::int32_t>(gpu.program().ops.size()); ++op) {
    kernel_time_.push_back(ahead);
    const ProgramOp& counted = gpu.op(op);
    if (counted.kind != OpKind::kernels || counted.stream != StreamKind::compute) continue;
    kernel_ops_.push_back(op);
    ahead += gpu.context().timed.duration_of(gpu.rank(), op, counted.segment);
  }
}

Bytes MemoryPressure::bytes(std::int32_t tensor) const {
  return lives_.all()[static_cast<std::size_t>(tensor)].allocation.bytes;
}

/// Highest memory of an op above that before it.
Bytes MemoryPressure::taken_by(std::int32_t op) const {
  const ProgramOp& taking = gpu_.op(op);
  if (taking.kind != OpKind::kernels) return taking.allocated;
  return taking.allocated + gpu_.context().timed.program.segment(taking.segment).peak_above_start;
}
Bytes MemoryPressure::net_of(std::int32_t op) const {
  const ProgramOp& taking = gpu_.op(op);
  const Bytes besides = taking.allocated - taking.freed;
  if (taking.kind != OpKind::kernels) return besides;
  return besides + gpu_.context().timed.program.segment(taking.segment).net_memory;
}

Bytes MemoryPressure::room() const {
  return gpu_.context().timed.memory_limit.bytes - gpu_.memory().claimed();
}

std::int32_t MemoryPressure::next_use(std::int32_t tensor) const {
  const auto at = static_cast<std::size_t>(tensor);
  return lives_.all()[at].users[tensors_[at].next_user];
}

bool MemoryPressure::is_used_by(std::int32_t tensor, std::int32_t op) const {
  return op >= 0 && std::ranges::find(lives_.of_op(op), tensor) != lives_.of_op(op).end();
}

bool MemoryPressure::admit(std::int32_t op) {
  const std::int32_t first = rerun_needed_by(op);
  const bool ready = first < 0 && provide(op, lives_.of_op(op), taken_by(op), op);
  if (first >= 0) {
    next_rerun_ = first;  // what it needs stays, and what `op` needs may leave once more
    const Rerun& rerun = rerun_at(first);
    if (!provide(op, rerun.needs, taken_by(rerun.op), -1)) next_rerun_ = -1;
  }
  if (ready) {
    begin(op);
  } else if (gpu_.op(op).kind == OpKind::kernels) {
    waiting_since_.try_emplace(op, gpu_.context().clock.now());
  }
  return ready;
}

/// Whether `tensors` are there and `taken` fits besides, for `op` or what has to run ahead of it.
/// What is used up to `op` leaves only where nothing else is left to, and what is used up to
/// `until` not at all.
bool MemoryPressure::provide(std::int32_t op, std::span<const std::int32_t> tensors, Bytes taken,
                             std::int32_t until) {
  Bytes needed = taken;
  bool complete = true;
  for (const std::int32_t tensor : tensors) {
    if (tensors_[static_cast<std::size_t>(tensor)].place == Place::leaving) stay(tensor);
    const Place place = tensors_[static_cast<std::size_t>(tensor)].place;
    if (place == Place::host) needed += bytes(tensor);
    if (place != Place::device && place != Place::nowhere) complete = false;
  }
  if (needed > Bytes(0)) {
    const auto lacking = [&] { return needed - room() - leaving_bytes_; };
    if (lacking() > Bytes(0)) make_room(lacking(), op);
    if (lacking() > Bytes(0) && until < op) make_room(lacking(), until);
  }
  const Bytes missing = needed - room();
  if (needed > Bytes(0) && missing > Bytes(0)) {
    shortages_[op] = {gpu_.rank(), op, needed, missing};
    return false;
  }
  shortages_.erase(op);
  if (complete) return true;
  for (const std::int32_t tensor : tensors)
    if (tensors_[static_cast<std::size_t>(tensor)].place == Place::host) come_back(tensor);
  return false;
}

void MemoryPressure::begin(std::int32_t op) {
  for (const std::int32_t at : lives_.of_op(op)) {
    Tensor& tensor = tensors_[static_cast<std::size_t>(at)];
    if (tensor.place == Place::nowhere) on_device_.push_back(at);
    tensor.place = Place::device;
    if (tensor.next_user == 1 && reruns_.of_tensor(at) >= 0)
      std::erase(can_rerun_, reruns_.of_tensor(at));
    ++tensor.next_user;
  }
  if (gpu_.op(op).kind != OpKind::kernels) return;
  if (const auto waited = waiting_since_.find(op); waited != waiting_since_.end()) {
    stalls_.push_back({gpu_.rank(), op, waited->second, gpu_.context().clock.now()});
    waiting_since_.erase(waited);
  }
  running_ = op;
  look_ahead(op);
}

void MemoryPressure::ended(std::int32_t op) {
  if (op == running_) running_ = -1;
  const std::int32_t rerun = rerun_of_op_[static_cast<std::size_t>(op)];
  if (rerun >= 0 && gpu_.context().timed.memory_limit.recompute) can_rerun_.push_back(rerun);
  for (const std::int32_t at : lives_.of_op(op)) {
    const auto tensor = static_cast<std::size_t>(at);
    if (tensors_[tensor].next_user < lives_.all()[tensor].users.size()) continue;
    tensors_[tensor].place = Place::nowhere;
    std::erase(on_device_, at);
  }
}

// The levels are those that follow if nothing else left or returned.
void MemoryPressure::look_ahead(std::int32_t op) {
  const Bytes limit = gpu_.context().timed.memory_limit.bytes;
  Forecast ahead{.level = gpu_.memory().used() - leaving_bytes_ + net_of(op),
                 .spare = limit - gpu_.memory().used() - taken_by(op),
                 .counted = {},
                 .given_up_later = {}};
  const auto ops = static_cast<std::int32_t>(gpu_.program().ops.size());
  int looked = 0;
  for (std::int32_t next = op + 1; next < ops && looked < kHorizon; ++next) {
    if (gpu_.op(next).kind != OpKind::kernels) continue;
    ++looked;
    const Bytes taken = bring_back_for(next, ahead);
    const Bytes missing = ahead.level + taken - limit;
    if (missing > Bytes(0)) ahead.level -= give_up_later(missing, op, next, ahead);
    if (ahead.level + taken > limit) ahead.level -= make_room(ahead.level + taken - limit, next);
    ahead.spare = std::min(ahead.spare, limit - ahead.level - taken);
    ahead.level += net_of(next);
  }
}

Bytes MemoryPressure::bring_back_for(std::int32_t next, Forecast& ahead) {
  const auto bring_back = [&](std::int32_t tensor) {
    if (tensors_[static_cast<std::size_t>(tensor)].place != Place::host) return;
    if (ahead.counted.insert(tensor).second) ahead.level += bytes(tensor);
    if (bytes(tensor) > ahead.spare) return;
    ahead.spare -= bytes(tensor);
    come_back(tensor);
  };
  Bytes taken = taken_by(next);
  for (const std::int32_t tensor : lives_.of_op(next)) {
    bring_back(tensor);
    if (tensors_[static_cast<std::size_t>(tensor)].place != Place::given_up) continue;
    const Rerun& rerun = rerun_at(reruns_.of_tensor(tensor));
    std::ranges::for_each(rerun.needs, bring_back);
    Bytes again;
    for (const std::int32_t made : rerun.makes) {
      const bool is_given_up = tensors_[static_cast<std::size_t>(made)].place == Place::given_up;
      if (is_given_up && ahead.counted.insert(made).second) again += bytes(made);
    }
    if (again == Bytes(0)) continue;  // an op before has it run
    ahead.level += again;
    taken = std::max(taken, taken_by(rerun.op) - again);
  }
  return taken;
}

Bytes MemoryPressure::make_room(Bytes missing, std::int32_t until) {
  const MemoryLimit& limit = gpu_.context().timed.memory_limit;
  Bytes going;
  while (going < missing) {
    const std::int32_t tensor = limit.swap ? farthest(until) : -1;
    const std::int32_t rerun = cheapest_rerun(until);
    if (tensor < 0 && rerun < 0) break;
    const bool gives_up =
        tensor < 0 || (rerun >= 0 && price_of_rerun(rerun, until) < price_of_copy(tensor, until));
    if (gives_up) {
      going += give_up(rerun, until);
    } else {
      going += bytes(tensor);
      leave(tensor);
    }
  }
  return going;
}

std::int32_t MemoryPressure::farthest(std::int32_t until) const {
  const Bytes host_room = gpu_.context().timed.memory_limit.host_bytes - host_bytes_;
  std::int32_t best = -1;
  for (const std::int32_t tensor : on_device_) {
    if (bytes(tensor) > host_room || !can_go(tensor, until)) continue;
    if (best < 0 || next_use(tensor) > next_use(best) ||
        (next_use(tensor) == next_use(best) && bytes(tensor) > bytes(best)))
      best = tensor;
  }
  return best;
}

/// Nobody needs it on the device now, nor up to `until`.
bool MemoryPressure::can_go(std::int32_t tensor, std::int32_t until) const {
  if (tensors_[static_cast<std::size_t>(tensor)].place != Place::device) return false;
  if (next_rerun_ >= 0 && is_used_by(tensor, rerun_at(next_rerun_).op)) return false;
  return !is_used_by(tensor, running_) && next_use(tensor) > until;
}

void MemoryPressure::leave(std::int32_t tensor) {
  tensors_[static_cast<std::size_t>(tensor)].place = Place::leaving;
  host_bytes_ += bytes(tensor);
  leaving_bytes_ += bytes(tensor);
  away_.push_back(tensor);
  leaving_.push_back(tensor);
  if (leaving_.size() == 1) start(true);
}

/// A departure that has not begun is called off.
void MemoryPressure::stay(std::int32_t tensor) {
  if (leaving_.front() == tensor) return;
  tensors_[static_cast<std::size_t>(tensor)].place = Place::device;
  host_bytes_ -= bytes(tensor);
  leaving_bytes_ -= bytes(tensor);
  std::erase(away_, tensor);
  std::erase(leaving_, tensor);
}

void MemoryPressure::come_back(std::int32_t tensor) {
  tensors_[static_cast<std::size_t>(tensor)].place = Place::returning;
  gpu_.memory().change(gpu_.context().clock.now(), bytes(tensor));
  on_device_.push_back(tensor);
  returning_.push_back(tensor);
  if (returning_.size() == 1) start(false);
}

void MemoryPressure::start(bool out) {
  const DeviceContext& context = gpu_.context();
  const Bytes size = bytes((out ? leaving_ : returning_).front());
  copies_.push_back({gpu_.rank(), out, size, context.clock.now(), {}});
  const OpKind kind = out ? OpKind::copy_out : OpKind::copy_in;
  const PlannedTransfer& copy =
      context.plan.pressure_copy(gpu_.rank(), gpu_.program().stage, kind, size);
  context.transfers.start(copy.transfer, [this, out] { arrived(out); });
}

void MemoryPressure::arrived(bool out) {
  Copies& queue = out ? leaving_ : returning_;
  const std::int32_t tensor = queue.front();
  queue.pop_front();
  const Seconds now = gpu_.context().clock.now();
  PressureCopy& copy = *std::find_if(copies_.rbegin(), copies_.rend(),
                                     [&](const PressureCopy& made) { return made.out == out; });
  copy.end = now;
  slowdown_[out ? 1 : 0] *= (now - copy.start).value() / copy_seconds(tensor, out);
  if (out) {
    tensors_[static_cast<std::size_t>(tensor)].place = Place::host;
    leaving_bytes_ -= bytes(tensor);
    std::erase(on_device_, tensor);
    gpu_.memory().change(now, -bytes(tensor));
  } else {
    tensors_[static_cast<std::size_t>(tensor)].place = Place::device;
    host_bytes_ -= bytes(tensor);
    std::erase(away_, tensor);
  }
  if (!queue.empty()) start(out);
  gpu_.room_changed();
}

std::vector<MemoryShortage> MemoryPressure::shortages() const {
  std::vector<MemoryShortage> list;
  if (!leaving_.empty() || !returning_.empty()) return list;
  for (const auto& [op, shortage] : shortages_) list.push_back(shortage);
  return list;
}

}  // namespace tessera
