#include "sim/engine/memory/copy_lanes.h"

#include <algorithm>

namespace tessera {
namespace {

const PlannedTransfer& planned(const MemoryHost& host, CopyWay way, Bytes bytes) {
  const OpKind kind = way == CopyWay::out ? OpKind::copy_out : OpKind::copy_in;
  return host.plan.pressure_copy(host.rank, host.timed.program.program_number(host.rank), kind,
                                 bytes);
}

/// Alone on its links.
Seconds solo_time(const Transfer& copy) {
  return copy.is_closed_form() ? copy.delay + copy.moving
                               : copy.delay + Seconds(copy.bytes / copy.rate.value());
}

}  // namespace

void CopyLanes::add(CopyWay way, std::int32_t tensor, Bytes bytes) {
  lane(way).push_back({tensor, bytes});
  if (lane(way).size() == 1) start(way);
}

bool CopyLanes::call_off(std::int32_t tensor) {
  Lane& leaving = lane(CopyWay::out);
  if (leaving.front().tensor == tensor) return false;
  std::erase_if(leaving, [&](const Copy& copy) { return copy.tensor == tensor; });
  return true;
}

double CopyLanes::seconds(CopyWay way, Bytes bytes) const {
  return solo_time(planned(host_, way, bytes).transfer).value() *
         slowdown_[static_cast<std::size_t>(way)];
}

void CopyLanes::start(CopyWay way) {
  const Bytes bytes = lane(way).front().bytes;
  made_.push_back({host_.rank, way == CopyWay::out, bytes, host_.clock.now(), {}});
  host_.transfers.start(planned(host_, way, bytes).transfer, [this, way] { end(way); });
}

void CopyLanes::end(CopyWay way) {
  const Copy copy = lane(way).front();
  lane(way).pop_front();
  PressureCopy& made = *std::find_if(
      made_.rbegin(), made_.rend(),
      [&](const PressureCopy& candidate) { return candidate.out == (way == CopyWay::out); });
  made.end = host_.clock.now();
  slowdown_[static_cast<std::size_t>(way)] *=
      (made.end - made.start).value() / seconds(way, copy.bytes);
  arrived_(way, copy.tensor);
  if (!lane(way).empty()) start(way);
  host_.room_changed();
}

}  // namespace tessera
