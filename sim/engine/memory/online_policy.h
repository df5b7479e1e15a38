#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "sim/engine/memory/kernel_horizon.h"
#include "sim/engine/memory/tensor_store.h"

namespace tessera {

/// What a policy sees that makes room by single tensors, in the moment.
struct RoomView {
  const MemoryHost& host;
  const TensorStore& store;
  const OpUses& uses;
  const KernelHorizon& horizon;
  std::int32_t op = 0;                         ///< that runs next on the compute stream
  std::span<const std::int32_t> candidates;    ///< on the device, and not needed now
  bool may_copy = true;                        ///< and host memory has room
  std::function<Seconds(std::int32_t)> again;  ///< to make a tensor again; < 0: impossible
};

enum class Departure : std::uint8_t { none, drop, copy };

struct Choice {
  std::int32_t tensor = -1;
  Departure way = Departure::none;
};

/// The tensor used last of all leaves, by whichever way loses less time (Belady, 1966).
Choice farthest_choice(const RoomView& view);
/// Kirisame et al., ICLR 2021: the least h = time to make it again / (bytes x staleness) goes; a
/// copy where nothing can be made again.
Choice dtr_choice(const RoomView& view);
/// Peng et al., ASPLOS 2020: the copy with the most free time between way out and way back, if
/// that is above zero; else the cheaper of that copy's stall and the most bytes per second of
/// making again.
Choice capuchin_choice(const RoomView& view);

}  // namespace tessera
