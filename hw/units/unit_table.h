#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hw/units/text.h"

namespace tessera {

/// A unit is `factor * 10^exponent` base units. The power of ten is kept apart so that decimal
/// prefixes shift the decimal point of the text instead of multiplying by an inexact 1e-6.
struct Unit {
  std::string_view symbol;
  int exponent = 0;
  double factor = 1;     ///< a power of two, 60 or 3600: exact
  bool printed = false;  ///< used by to_text; printed units have factor 1 and ascend
};

/// Units that a text of `dimension` may carry; the base unit comes first.
std::span<const Unit> units_of(Dimension dimension);

/// What the dimension is called in messages: "bandwidth".
std::string_view name_of(Dimension dimension);

/// "B, kB, MB": the accepted symbols, for messages.
std::string listed_units(Dimension dimension);

}  // namespace tessera
