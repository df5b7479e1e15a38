#include "sim/engine/memory/eviction_policy.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::int32_t kNone = -1;

/// What exceeds the time beside which it is hidden.
double exposed(double seconds, double hidden) {
  return std::max(0.0, seconds - hidden);
}

/// Seconds per byte.
double price_of_rerun(const EvictionView& view, std::int32_t rerun, std::int32_t until) {
  return view.host.rerun_time(view.rerun_at(rerun).op).value() /
         static_cast<double>(freed_by(view, rerun, until).value());
}

std::int32_t cheapest_rerun(const EvictionView& view, std::int32_t until) {
  std::int32_t best = kNone;
  double best_price = 0;
  for (const std::int32_t rerun : view.can_rerun) {
    if (rerun == view.next_rerun || freed_by(view, rerun, until) == Bytes(0)) continue;
    const double price = price_of_rerun(view, rerun, until);
    if (best >= 0 && price >= best_price) continue;
    best = rerun;
    best_price = price;
  }
  return best;
}

/// Bytes that have to be back by `use` because ops behind `since` use them.
Bytes needed_with(const Residency& residency, std::int32_t since, std::int32_t use) {
  Bytes sum;
  for (const std::int32_t other : residency.away()) {
    const std::int32_t next = residency.next_use(other);
    if (next > since && next <= use) sum += residency.bytes(other);
  }
  return sum;
}

}  // namespace

bool can_go(const EvictionView& view, std::int32_t tensor, std::int32_t until) {
  const Residency& residency = view.residency;
  if (residency.place(tensor) != Residency::Place::device) return false;
  if (view.next_rerun >= 0 && residency.is_used_by(tensor, view.rerun_at(view.next_rerun).op))
    return false;
  if (residency.is_in_use(tensor) || residency.is_used_by(tensor, view.running)) return false;
  return residency.next_use(tensor) > until;
}

Bytes freed_by(const EvictionView& view, std::int32_t rerun, std::int32_t until) {
  Bytes sum;
  for (const std::int32_t tensor : view.rerun_at(rerun).makes) {
    if (!view.residency.was_made_again(tensor) && can_go(view, tensor, until))
      sum += view.residency.bytes(tensor);
  }
  return sum;
}

std::int32_t farthest_tensor(const EvictionView& view, std::int32_t until) {
  const Residency& residency = view.residency;
  if (!view.host.limit().swap) return kNone;
  const Bytes host_room = view.host.limit().host_bytes - residency.host_bytes();
  std::int32_t best = kNone;
  for (const std::int32_t tensor : residency.on_device()) {
    if (residency.bytes(tensor) > host_room || !can_go(view, tensor, until)) continue;
    if (best == kNone || residency.next_use(tensor) > residency.next_use(best) ||
        (residency.next_use(tensor) == residency.next_use(best) &&
         residency.bytes(tensor) > residency.bytes(best)))
      best = tensor;
  }
  return best;
}

// By how much later the op that waits for room, and the one that uses the tensor next, can begin
// because of this copy. Out it goes behind what leaves already, beside the kernels up to `until`;
// back it comes with what else is needed then, beside the segment before: at the limit room comes
// no earlier.
double price_of_copy(const EvictionView& view, std::int32_t tensor, std::int32_t until) {
  const Residency& residency = view.residency;
  const auto size = static_cast<double>(residency.bytes(tensor).value());
  const auto added = [&](Bytes before, CopyWay way, Seconds hidden) {
    const double per_byte = view.lanes.seconds(way, residency.bytes(tensor)) / size;
    const auto others = static_cast<double>(before.value());
    return exposed((others + size) * per_byte, hidden.value()) -
           exposed(others * per_byte, hidden.value());
  };
  const std::int32_t use = residency.next_use(tensor);
  const std::int32_t since = std::max({view.horizon.last_before(use), view.running, until});
  const Bytes besides = needed_with(residency, since, use);
  return (added(residency.leaving_bytes(), CopyWay::out,
                view.horizon.between(view.running, until)) +
          added(besides, CopyWay::in, view.horizon.between(since, use))) /
         size;
}

Eviction cheapest_eviction(const EvictionView& view, std::int32_t until) {
  const std::int32_t tensor = farthest_tensor(view, until);
  const std::int32_t rerun = cheapest_rerun(view, until);
  if (tensor == kNone) return {.rerun = rerun};
  const bool gives_up =
      rerun >= 0 && price_of_rerun(view, rerun, until) < price_of_copy(view, tensor, until);
  return gives_up ? Eviction{.rerun = rerun} : Eviction{.tensor = tensor};
}

}  // namespace tessera
