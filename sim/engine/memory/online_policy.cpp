#include "sim/engine/memory/online_policy.h"

#include <algorithm>

namespace tessera {
namespace {

bool can_copy(const RoomView& view, std::int32_t tensor) {
  const bool has_copy = view.store.host_copy(tensor) != TensorStore::HostCopy::none;
  if (has_copy) return true;
  const Bytes room = view.host.limit().host_bytes - view.store.on_host();
  return view.may_copy && view.store.bytes(tensor) <= room;
}

Seconds until_use(const RoomView& view, std::int32_t tensor) {
  if (!view.store.has_use(tensor)) return view.horizon.between(view.op, view.host.ops() - 1);
  return view.horizon.between(view.op, view.store.next_use(tensor));
}

double copy_seconds(const RoomView& view, std::int32_t tensor) {
  const Bytes bytes = view.store.bytes(tensor);
  const bool is_out = view.store.host_copy(tensor) != TensorStore::HostCopy::none;
  return (is_out ? 0 : view.store.lanes().seconds(CopyWay::out, bytes)) +
         view.store.lanes().seconds(CopyWay::in, bytes);
}

/// With what leaves ahead of it and what returns before it.
double queued_copy_seconds(const RoomView& view, std::int32_t tensor) {
  const auto bytes = static_cast<double>(view.store.bytes(tensor).value());
  const auto leaving = static_cast<double>(view.store.leaving().value());
  const auto away = static_cast<double>(view.store.away().value());
  const bool is_out = view.store.host_copy(tensor) != TensorStore::HostCopy::none;
  const double out = view.store.lanes().seconds(CopyWay::out, view.store.bytes(tensor));
  const double in = view.store.lanes().seconds(CopyWay::in, view.store.bytes(tensor));
  return (is_out ? 0 : out * (1 + leaving / bytes)) + in * (1 + away / bytes);
}

/// Room is short now: whoever lacks it waits until the copy is out.
double wait_seconds(const RoomView& view, std::int32_t tensor) {
  if (view.store.host_copy(tensor) == TensorStore::HostCopy::complete) return 0;
  const Bytes bytes = view.store.bytes(tensor);
  const double ahead = view.store.leaving() / bytes;
  return view.store.lanes().seconds(CopyWay::out, bytes) * (1 + ahead);
}

/// A use that does not come counts as the farthest.
std::int32_t use_of(const RoomView& view, std::int32_t tensor) {
  return view.store.has_use(tensor) ? view.store.next_use(tensor) : view.host.ops();
}

/// Until a copy is out, and by which both copies outlast the time until the use.
double stall_seconds(const RoomView& view, std::int32_t tensor) {
  const double late = copy_seconds(view, tensor) - until_use(view, tensor).value();
  const bool has_copy = view.store.host_copy(tensor) == TensorStore::HostCopy::complete;
  const double out =
      has_copy ? 0 : view.store.lanes().seconds(CopyWay::out, view.store.bytes(tensor));
  return std::max(0.0, late) + out;
}

}  // namespace

Choice farthest_choice(const RoomView& view) {
  Choice best;
  for (const std::int32_t tensor : view.candidates) {
    const bool copies = can_copy(view, tensor);
    const Seconds again = view.again(tensor);
    if (!copies && again < Seconds(0)) continue;
    if (best.tensor >= 0 && use_of(view, tensor) <= use_of(view, best.tensor)) continue;
    const bool drops =
        again >= Seconds(0) && (!copies || again.value() < stall_seconds(view, tensor));
    best = {tensor, drops ? Departure::drop : Departure::copy};
  }
  return best;
}

Choice dtr_choice(const RoomView& view) {
  Choice best;
  double least = 0;
  for (const std::int32_t tensor : view.candidates) {
    const Seconds again = view.again(tensor);
    if (again < Seconds(0)) continue;
    const std::int32_t last = std::clamp(view.store.used_by(tensor), 0, view.op);
    const double stale = std::max(1e-9, view.horizon.between(last, view.op).value());
    const double h =
        again.value() / (static_cast<double>(view.store.bytes(tensor).value()) * stale);
    if (best.tensor >= 0 && h >= least) continue;
    best = {tensor, Departure::drop};
    least = h;
  }
  return best.tensor >= 0 ? best : farthest_choice(view);
}

Choice capuchin_choice(const RoomView& view) {
  Choice freest, cheapest;
  double most_free = 0, best_rate = 0;
  for (const std::int32_t tensor : view.candidates) {
    if (can_copy(view, tensor)) {
      const double free = until_use(view, tensor).value() - queued_copy_seconds(view, tensor);
      if (freest.tensor < 0 || free > most_free) {
        freest = {tensor, Departure::copy};
        most_free = free;
      }
    }
    const Seconds again = view.again(tensor);
    if (again < Seconds(0)) continue;
    const double rate =
        static_cast<double>(view.store.bytes(tensor).value()) / std::max(1e-12, again.value());
    if (cheapest.tensor >= 0 && rate <= best_rate) continue;
    cheapest = {tensor, Departure::drop};
    best_rate = rate;
  }
  if (freest.tensor < 0 || cheapest.tensor < 0) return freest.tensor < 0 ? cheapest : freest;
  const double stall = wait_seconds(view, freest.tensor) + std::max(0.0, -most_free);
  return stall < view.again(cheapest.tensor).value() ? freest : cheapest;
}

}  // namespace tessera
