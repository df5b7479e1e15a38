#pragma once

#include <string_view>

#include "sim/report/time_category.h"

namespace tessera {

/// How a class of time looks and what people call it, in every drawing: reports, pictures, traces.
struct ClassLook {
  std::string_view words;        ///< "waits for tensor groups"
  std::string_view colour;       ///< "#rrggbb"
  std::string_view viewer_name;  ///< the nearest colour that chrome://tracing has a name for
};

/// Colours that differ for the colour-blind too: any two are at least 0.088 apart in OKLab as seen
/// with protanopia or deuteranopia, and on pages black or white. What waits is grey.
const ClassLook& look_of(TimeCategory category);

/// The class whose colour an op has while it does what it is there for: kernels by their phase,
/// communication by the group that it is exposed to. What waits for others is
/// `TimeCategory::other_idle`.
TimeCategory class_of(const ProgramOp& op);

}  // namespace tessera
