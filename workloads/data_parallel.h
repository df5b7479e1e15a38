#pragma once

#include <cstdint>

#include "hw/units/quantity.h"

namespace tessera {

/// What data-parallel ranks divide among themselves instead of each holding all of it; every value
/// includes the ones before. Rajbhandari et al., "ZeRO", SC 2020; Zhao et al., "PyTorch FSDP",
/// VLDB 2023.
enum class Sharding : std::uint8_t {
#include "configs/schema/words/sharding.inc"
};

/// How data-parallel ranks run one step together. A framework profile has one; a scenario's
/// `training.data_parallel` says what it changes.
struct DataParallel {
#include "configs/schema/fields/data_parallel.inc"

  bool operator==(const DataParallel&) const = default;
};

}  // namespace tessera
