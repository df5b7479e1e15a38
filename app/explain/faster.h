#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/scenario/scenario.h"

namespace tessera {

/// Parts of a machine that could be faster.
enum class Resource : std::uint8_t {
  flops,             ///< arithmetic of the GPUs: every peak, the clocks, the power for them
  memory_bandwidth,  ///< of the GPUs
  host,              ///< what the host needs to launch kernels and collectives
  nvlink,            ///< bandwidth of NVLinks
  pcie,              ///< bandwidth of PCIe, chip-to-chip and socket links
  network,           ///< bandwidth of NICs and of the fabric between nodes
  latency,           ///< of all links
};
constexpr int kResourceCount = 7;
std::array<Resource, kResourceCount> all_resources();
/// "flops", "memory_bandwidth", ...
std::string_view label_of(Resource resource);
/// What is made faster, in words.
std::string_view meaning_of(Resource resource);

/// `scenario` on a machine whose `resource` is `factor` (> 0) times as fast.
Scenario with_faster(Scenario scenario, Resource resource, double factor);

/// Whether the machine has any of it: a single GPU has no links.
bool has_resource(const Scenario& scenario, Resource resource);

}  // namespace tessera
