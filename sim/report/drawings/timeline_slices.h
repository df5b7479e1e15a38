#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// What a slice of a timeline picture shows; one colour each, in the order of the legend.
enum class SliceKind : std::uint8_t {
  forward,
  loss,
  backward,
  gradient_reduction,
  optimizer,
  tensor_collective,
  data_collective,
  other_collective,  ///< over pipeline, embedding and world groups
  message,
  copy,     ///< to or from host memory
  waiting,  ///< for the other members of a collective, or for the sender of a message
};
constexpr int kSliceKindCount = 11;

std::string_view label_of(SliceKind kind);

/// A bar of the picture.
struct TimelineSlice {
  SliceKind kind = SliceKind::forward;
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
