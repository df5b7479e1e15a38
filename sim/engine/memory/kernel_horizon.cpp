#include "sim/engine/memory/kernel_horizon.h"

#include <algorithm>
#include <cstddef>

namespace tessera {

KernelHorizon::KernelHorizon(const MemoryHost& host) {
  Seconds ahead;
  for (std::int32_t op = 0; op < host.ops(); ++op) {
    ahead_.push_back(ahead);
    const ProgramOp& counted = host.op(op);
    if (counted.kind != OpKind::kernels || counted.stream != StreamKind::compute) continue;
    ops_.push_back(op);
    ahead += host.timed.duration_of(host.rank, op, counted.segment);
  }
}

Seconds KernelHorizon::between(std::int32_t from, std::int32_t to) const {
  if (from < 0 || to <= from) return {};
  return ahead_[static_cast<std::size_t>(to)] - ahead_[static_cast<std::size_t>(from)];
}

std::int32_t KernelHorizon::last_before(std::int32_t op) const {
  const auto at = std::ranges::lower_bound(ops_, op) - ops_.begin();
  return ops_[static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at - 1))];
}

}  // namespace tessera
