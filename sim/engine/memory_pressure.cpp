#include "sim/engine/memory_pressure.h"

#include <algorithm>

#include "sim/engine/gpu.h"

namespace tessera {
namespace {

/// Segments that are looked ahead: about two layers.
constexpr int kHorizon = 8;

}  // namespace

MemoryPressure::MemoryPressure(Gpu& gpu, const TensorLives& lives)
    : gpu_(gpu), lives_(lives), tensors_(lives.all().size()) {}

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
  Bytes needed = taken_by(op);
  bool complete = true;
  for (const std::int32_t tensor : lives_.of_op(op)) {
    if (tensors_[static_cast<std::size_t>(tensor)].place == Place::leaving) stay(tensor);
    const Place place = tensors_[static_cast<std::size_t>(tensor)].place;
    if (place == Place::host) needed += bytes(tensor);
    if (place != Place::device && place != Place::nowhere) complete = false;
  }
  const Bytes missing = needed - room();
  if (needed > Bytes(0) && missing > Bytes(0)) {
    if (missing > leaving_bytes_) make_room(missing - leaving_bytes_, op);
    shortages_[op] = {gpu_.rank(), op, needed, missing};
    return false;
  }
  shortages_.erase(op);
  if (complete) {
    begin(op);
    return true;
  }
  for (const std::int32_t tensor : lives_.of_op(op))
    if (tensors_[static_cast<std::size_t>(tensor)].place == Place::host) come_back(tensor);
  return false;
}

void MemoryPressure::begin(std::int32_t op) {
  for (const std::int32_t at : lives_.of_op(op)) {
    Tensor& tensor = tensors_[static_cast<std::size_t>(at)];
    if (tensor.place == Place::nowhere) on_device_.push_back(at);
    tensor.place = Place::device;
    ++tensor.next_user;
  }
  if (gpu_.op(op).kind != OpKind::kernels) return;
  running_ = op;
  look_ahead(op);
}

void MemoryPressure::ended(std::int32_t op) {
  if (op == running_) running_ = -1;
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
  Bytes level = gpu_.memory().used() - leaving_bytes_ + net_of(op);
  Bytes spare = limit - gpu_.memory().used() - taken_by(op);
  const auto ops = static_cast<std::int32_t>(gpu_.program().ops.size());
  int looked = 0;
  for (std::int32_t next = op + 1; next < ops && looked < kHorizon; ++next) {
    if (gpu_.op(next).kind != OpKind::kernels) continue;
    ++looked;
    for (const std::int32_t tensor : lives_.of_op(next)) {
      if (tensors_[static_cast<std::size_t>(tensor)].place != Place::host) continue;
      level += bytes(tensor);
      if (bytes(tensor) > spare) continue;
      spare -= bytes(tensor);
      come_back(tensor);
    }
    const Bytes peak = level + taken_by(next);
    if (peak > limit) {
      const Bytes before = leaving_bytes_;
      make_room(peak - limit, next);
      level -= leaving_bytes_ - before;
    }
    spare = std::min(spare, limit - level - taken_by(next));
    level += net_of(next);
  }
}

void MemoryPressure::make_room(Bytes missing, std::int32_t until) {
  if (!gpu_.context().timed.memory_limit.swap) return;
  while (missing > Bytes(0)) {
    const std::int32_t tensor = farthest(until);
    if (tensor < 0) return;
    missing -= bytes(tensor);
    leave(tensor);
  }
}

std::int32_t MemoryPressure::farthest(std::int32_t until) const {
  const Bytes host_room = gpu_.context().timed.memory_limit.host_bytes - host_bytes_;
  std::int32_t best = -1;
  for (const std::int32_t tensor : on_device_) {
    const Tensor& candidate = tensors_[static_cast<std::size_t>(tensor)];
    if (candidate.place != Place::device || bytes(tensor) > host_room) continue;
    if (is_used_by(tensor, running_) || next_use(tensor) <= until) continue;
    if (best < 0 || next_use(tensor) > next_use(best) ||
        (next_use(tensor) == next_use(best) && bytes(tensor) > bytes(best)))
      best = tensor;
  }
  return best;
}

void MemoryPressure::leave(std::int32_t tensor) {
  tensors_[static_cast<std::size_t>(tensor)].place = Place::leaving;
  host_bytes_ += bytes(tensor);
  leaving_bytes_ += bytes(tensor);
  leaving_.push_back(tensor);
  if (leaving_.size() == 1) start(true);
}

/// A departure that has not begun is called off.
void MemoryPressure::stay(std::int32_t tensor) {
  if (leaving_.front() == tensor) return;
  tensors_[static_cast<std::size_t>(tensor)].place = Place::device;
  host_bytes_ -= bytes(tensor);
  leaving_bytes_ -= bytes(tensor);
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
  std::find_if(copies_.rbegin(), copies_.rend(), [&](const PressureCopy& copy) {
    return copy.out == out;
  })->end = now;
  if (out) {
    tensors_[static_cast<std::size_t>(tensor)].place = Place::host;
    leaving_bytes_ -= bytes(tensor);
    std::erase(on_device_, tensor);
    gpu_.memory().change(now, -bytes(tensor));
  } else {
    tensors_[static_cast<std::size_t>(tensor)].place = Place::device;
    host_bytes_ -= bytes(tensor);
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
