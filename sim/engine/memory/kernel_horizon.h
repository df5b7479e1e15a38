#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/memory/memory_host.h"

namespace tessera {

/// The kernels of a GPU's compute stream, one behind the other, as far as they are known ahead.
class KernelHorizon {
 public:
  explicit KernelHorizon(const MemoryHost& host);

  /// Of the kernels of ops from `from` on, up to before `to`; 0 where `from` is -1.
  Seconds between(std::int32_t from, std::int32_t to) const;
  /// The last op with kernels before `op`; the first one of all where there is none.
  std::int32_t last_before(std::int32_t op) const;

 private:
  std::vector<Seconds> ahead_;  ///< by op: time of all kernels before it
  std::vector<std::int32_t> ops_;
};

}  // namespace tessera
