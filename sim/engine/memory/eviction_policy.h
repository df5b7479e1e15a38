#pragma once

#include <cstdint>
#include <span>

#include "sim/engine/memory/copy_lanes.h"
#include "sim/engine/memory/kernel_horizon.h"
#include "sim/engine/memory/reruns.h"
#include "sim/engine/memory/residency.h"

namespace tessera {

/// What a policy sees of a GPU that lacks room. Reruns are positions in `reruns.all()`.
struct EvictionView {
  const MemoryHost& host;
  const Residency& residency;
  const Reruns& reruns;
  const KernelHorizon& horizon;
  const CopyLanes& lanes;
  std::span<const std::int32_t> can_rerun;  ///< that ran, and no result of theirs has been used
  std::int32_t running = -1;                ///< op
  std::int32_t next_rerun = -1;             ///< has room, or runs

  const Rerun& rerun_at(std::int32_t rerun) const {
    return reruns.all()[static_cast<std::size_t>(rerun)];
  }
};

/// What goes next: a tensor to host memory, or the results of a rerun; -1, -1: nothing may go.
struct Eviction {
  std::int32_t tensor = -1;
  std::int32_t rerun = -1;
};

/// Nobody needs the tensor on the device now, nor up to op `until`.
bool can_go(const EvictionView& view, std::int32_t tensor, std::int32_t until);
/// Results of `rerun` that giving them up would free: on the device, and not made again before.
Bytes freed_by(const EvictionView& view, std::int32_t rerun, std::int32_t until);
/// The tensor whose next use lies farthest ahead (Belady, 1966); -1: none, or swapping is off.
std::int32_t farthest_tensor(const EvictionView& view, std::int32_t until);
/// Seconds by which ops begin later for each byte that leaves by copy.
double price_of_copy(const EvictionView& view, std::int32_t tensor, std::int32_t until);

/// The way with less time lost per byte, the copy of the farthest tensor or the cheapest rerun, for
/// room at op `until`. Depends on nothing but `view`: the place of another policy.
Eviction cheapest_eviction(const EvictionView& view, std::int32_t until);

}  // namespace tessera
