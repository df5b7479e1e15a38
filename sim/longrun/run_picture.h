#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/reliability/cluster_run.h"

namespace tessera {

/// How an activity looks and what people call it, in pictures and pages.
struct ActivityLook {
  std::string_view words, colour;
};
const ActivityLook& look_of(Activity activity);

/// What the job did, as an SVG file: a line of equal length for each day (or several days, at most
/// 62 lines), coloured by activity, with a legend that says how much of the time each took.
/// Checkpoints much shorter than a pixel show as part of the training around them.
std::string timeline_picture(const std::string& title, const std::vector<ActivitySpan>& timeline);

}  // namespace tessera
