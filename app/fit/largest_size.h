#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hw/units/quantity.h"

namespace tessera {

/// Up to which size of something a step fits.
struct LargestSize {
  std::int64_t fits = 0;  ///< by the simulated memory; 0: not even the smallest
  std::int64_t sure = 0;  ///< by the upper end of its interval
  std::string limit;      ///< what ends it ahead of the memory; empty: the memory does
};

/// What a step of some size needs; nothing where no step has that size.
using NeedOfSize = std::function<std::optional<Bytes>(std::int64_t size)>;

/// The sizes tried are multiples of `unit`, up to `most` of them; `first` of them first.
struct SizeRange {
  std::int64_t unit = 1;
  std::int64_t most = 1;
  std::int64_t first = 1;
};

/// The largest size up to which `need` is within `capacity`, and within it after `high`. Needs are
/// taken to grow with the size, about as a straight line: about eight of them are asked for.
LargestSize largest_size(const NeedOfSize& need, SizeRange range, Bytes capacity,
                         const std::function<Bytes(Bytes)>& high);

/// The same where `guess` is known to be near: the needs of its sizes and of those behind them
/// alone are asked for, as long as they agree.
LargestSize confirmed_size(const NeedOfSize& need, const LargestSize& guess, SizeRange range,
                           Bytes capacity, const std::function<Bytes(Bytes)>& high);

}  // namespace tessera
