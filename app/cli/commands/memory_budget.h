#pragma once

#include <optional>
#include <string>

#include "app/shell/parsed_option.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"

namespace tessera {

/// "60%" of a budget's option: 0.6; nothing for other texts. Throws InputError where it is no share
/// above 0.
inline std::optional<double> share_after(const char* option, const std::string& text) {
  const std::size_t end = text.find_last_not_of(' ');
  if (end == std::string::npos || text[end] != '%') return std::nullopt;
  const double share = parsed_option(option, text, parse_ratio);
  if (!(share > 0))
    throw InputError({option, "is " + text,
                      "give a size as 40GiB, or a share as 60% of what is held above the states "
                      "without a plan"});
  return share;
}

/// That share of what a step or a graph with this peak holds above `states`, and these.
inline Bytes share_of_activations(double share, Bytes states, Bytes peak) {
  const auto above = static_cast<double>((peak - states).value());
  return states + Bytes(static_cast<std::int64_t>(share * above));
}

}  // namespace tessera
