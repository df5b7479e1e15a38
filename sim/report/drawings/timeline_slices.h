#pragma once

#include <cstdint>
#include <vector>

#include "sim/report/time_category.h"
#include "sim/trace/timeline_index.h"

namespace tessera {

/// A bar of the picture.
struct TimelineSlice {
  TimeCategory kind = TimeCategory::forward;  ///< `other_idle`: waits for others
  Seconds begin;
  Seconds end;
  std::int32_t micro_batch = -1;  ///< -1: none, or several in one bar
};

/// The bars of one stream, in order of time. Neighbours of one kind with less than `resolution`
/// between them become one bar; of different micro-batches only where one of the two is itself
/// shorter than that.
std::vector<TimelineSlice> timeline_slices(const TimelineIndex& index, int rank, StreamKind stream,
                                           Seconds resolution);

}  // namespace tessera
