#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/engine/memory/memory_host.h"
#include "sim/trace/timeline.h"

namespace tessera {

enum class CopyWay : std::uint8_t { in, out };

/// The copies between a GPU and its host that memory pressure starts: one at a time each way, over
/// links that other GPUs, planned copies and NICs share.
class CopyLanes {
 public:
  using Arrived = std::function<void(CopyWay way, std::int32_t tensor)>;

  CopyLanes(MemoryHost& host, Arrived arrived) : host_(host), arrived_(std::move(arrived)) {}

  void add(CopyWay way, std::int32_t tensor, Bytes bytes);
  /// Calls a departure off; false: it has begun.
  bool call_off(std::int32_t tensor);
  bool idle() const { return lanes_[0].empty() && lanes_[1].empty(); }
  /// What a copy of `bytes` would take: alone on its links, times the slowdown of the last one.
  double seconds(CopyWay way, Bytes bytes) const;
  const std::vector<PressureCopy>& made() const { return made_; }

 private:
  struct Copy {
    std::int32_t tensor;
    Bytes bytes;
  };
  /// In order; the first one runs.
  using Lane = std::deque<Copy>;

  Lane& lane(CopyWay way) { return lanes_[static_cast<std::size_t>(way)]; }
  void start(CopyWay way);
  void end(CopyWay way);

  MemoryHost& host_;
  Arrived arrived_;
  std::array<Lane, 2> lanes_;
  std::array<double, 2> slowdown_{1, 1};  ///< by way: of the last copy, over its time alone
  std::vector<PressureCopy> made_;
};

}  // namespace tessera
