// What MemoryPressure gives up and has made again, and what that and copies cost.
#include <algorithm>

#include "sim/engine/device/gpu.h"
#include "sim/engine/memory/memory_pressure.h"

namespace tessera {
namespace {

/// What exceeds the time beside which it is hidden.
double exposed(double seconds, double hidden) {
  return std::max(0.0, seconds - hidden);
}

/// Alone on its links.
Seconds solo_time(const Transfer& copy) {
  return copy.is_closed_form() ? copy.delay + copy.moving
                               : copy.delay + Seconds(copy.bytes / copy.rate.value());
}

}  // namespace

std::int32_t MemoryPressure::rerun_needed_by(std::int32_t op) const {
  for (const std::int32_t tensor : lives_.of_op(op))
    if (tensors_[static_cast<std::size_t>(tensor)].place == Place::given_up)
      return reruns_.of_tensor(tensor);
  return -1;
}

/// Kernels that run again begin behind those that run.
std::int32_t MemoryPressure::rerun() const {
  return next_rerun_ >= 0 ? rerun_at(next_rerun_).op : -1;
}

void MemoryPressure::rerun_began() {
  const Seconds now = gpu_.context().clock.now();
  running_ = rerun();
  gpu_.memory().begin_segment(now, taken_by(running_));
  reran_.push_back({gpu_.rank(), running_, Bytes(0), now, now});
}

/// What was given up is there again; second copies of the other results go.
void MemoryPressure::rerun_ended() {
  PressureRerun& ran = reran_.back();
  ran.end = gpu_.context().clock.now();
  for (const std::int32_t at : rerun_at(next_rerun_).makes) {
    Tensor& tensor = tensors_[static_cast<std::size_t>(at)];
    if (tensor.place != Place::given_up) continue;
    tensor.place = Place::device;
    tensor.made_again = true;
    on_device_.push_back(at);
    ran.bytes += bytes(at);
  }
  gpu_.memory().end_segment(ran.end, ran.bytes);
  running_ = next_rerun_ = -1;
}

/// Of results that are on the device and were not made again before.
Bytes MemoryPressure::freed_by(std::int32_t rerun, std::int32_t until) const {
  Bytes sum;
  for (const std::int32_t tensor : rerun_at(rerun).makes)
    if (!tensors_[static_cast<std::size_t>(tensor)].made_again && can_go(tensor, until))
      sum += bytes(tensor);
  return sum;
}

std::int32_t MemoryPressure::cheapest_rerun(std::int32_t until) const {
  std::int32_t best = -1;
  double best_price = 0;
  for (const std::int32_t rerun : can_rerun_) {
    if (rerun == next_rerun_ || freed_by(rerun, until) == Bytes(0)) continue;
    const double price = price_of_rerun(rerun, until);
    if (best >= 0 && price >= best_price) continue;
    best = rerun;
    best_price = price;
  }
  return best;
}

Bytes MemoryPressure::give_up(std::int32_t rerun, std::int32_t until) {
  Bytes freed;
  for (const std::int32_t at : rerun_at(rerun).makes) {
    Tensor& tensor = tensors_[static_cast<std::size_t>(at)];
    if (tensor.made_again || !can_go(at, until)) continue;
    tensor.place = Place::given_up;
    std::erase(on_device_, at);
    freed += bytes(at);
  }
  gpu_.memory().change(gpu_.context().clock.now(), -freed);
  return freed;
}

/// Nothing need leave now for what can be given up in time: results that ops from `op` on will have
/// made by `until`, where that is cheaper than a copy. Returns how many bytes.
Bytes MemoryPressure::give_up_later(Bytes missing, std::int32_t op, std::int32_t until,
                                    Forecast& ahead) const {
  const MemoryLimit& limit = gpu_.context().timed.memory_limit;
  Bytes later;
  if (!limit.recompute) return later;
  const std::int32_t other = limit.swap ? farthest(until) : -1;
  for (std::int32_t made = op; made < until && later < missing; ++made) {
    const std::int32_t rerun = rerun_of_op_[static_cast<std::size_t>(made)];
    if (rerun < 0 || ahead.given_up_later.contains(rerun)) continue;
    Bytes freed;
    for (const std::int32_t tensor : rerun_at(rerun).makes)
      if (lives_.all()[static_cast<std::size_t>(tensor)].users[1] > until) freed += bytes(tensor);
    const auto price = [&] {
      return gpu_.rerun_time(made).value() / static_cast<double>(freed.value());
    };
    if (freed == Bytes(0) || (other >= 0 && price() >= price_of_copy(other, until))) continue;
    ahead.given_up_later.insert(rerun);
    later += freed;
  }
  return later;
}

Seconds MemoryPressure::kernel_time(std::int32_t from, std::int32_t to) const {
  if (from < 0 || to <= from) return {};
  return kernel_time_[static_cast<std::size_t>(to)] - kernel_time_[static_cast<std::size_t>(from)];
}

double MemoryPressure::price_of_rerun(std::int32_t rerun, std::int32_t until) const {
  return gpu_.rerun_time(rerun_at(rerun).op).value() /
         static_cast<double>(freed_by(rerun, until).value());
}

double MemoryPressure::copy_seconds(std::int32_t tensor, bool out) const {
  const OpKind kind = out ? OpKind::copy_out : OpKind::copy_in;
  const PlannedTransfer& copy =
      gpu_.context().plan.pressure_copy(gpu_.rank(), gpu_.program().stage, kind, bytes(tensor));
  return solo_time(copy.transfer).value() * slowdown_[out ? 1 : 0];
}

/// By how much later the op that waits for room, and the one that uses the tensor next, can begin
/// because of this copy. Out it goes behind what leaves already, beside the kernels up to `until`;
/// back it comes with what else is needed then, beside the segment before: at the limit room comes
/// no earlier.
double MemoryPressure::price_of_copy(std::int32_t tensor, std::int32_t until) const {
  const auto size = static_cast<double>(bytes(tensor).value());
  const auto added = [&](Bytes before, bool out, Seconds hidden) {
    const double per_byte = copy_seconds(tensor, out) / size;
    const auto others = static_cast<double>(before.value());
    return exposed((others + size) * per_byte, hidden.value()) -
           exposed(others * per_byte, hidden.value());
  };
  const std::int32_t use = next_use(tensor);
  const auto at = std::ranges::lower_bound(kernel_ops_, use) - kernel_ops_.begin();
  const auto first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at - 1));
  const std::int32_t since = std::max({kernel_ops_[first], running_, until});
  Bytes besides;
  for (const std::int32_t other : away_)
    if (next_use(other) > since && next_use(other) <= use) besides += bytes(other);
  return (added(leaving_bytes_, true, kernel_time(running_, until)) +
          added(besides, false, kernel_time(since, use))) /
         size;
}

}  // namespace tessera
