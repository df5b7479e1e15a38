#pragma once

#include <cstdint>
#include <vector>

#include "sim/trace/timeline_index.h"

namespace tessera {

/// What a piece of the critical path is spent on.
enum class PathPieceKind : std::uint8_t {
  kernels,      ///< a segment runs
  collective,   ///< from the arrival of its last member to its end
  message,      ///< from the start of the send to its arrival
  copy,         ///< between GPU and host memory
  memory,       ///< kernels wait for room, or for what memory pressure had taken away
  host,         ///< the host launches, one call after the other, until it has launched the next op
  unexplained,  ///< nothing that is known held the next op up; 0 where the records are complete
};

/// A part of the critical path, on one rank.
struct PathPiece {
  PathPieceKind kind = PathPieceKind::kernels;
  std::int32_t rank = 0;
  std::int32_t op =
      -1;  ///< of the rank's program: what ran; memory, host, unexplained: what was held up
  Seconds begin;
  Seconds end;
};

/// The chain of causes that made the step as long as it is, in order of time, from 0 to the end of
/// the last op without a gap: found backwards from that op over what released each op last. An op
/// starts when the op ahead of it in its stream, the ops it waits for and its launch by the host
/// are through; a collective when its last member has come; a receive ends with the send.
/// Shortening anything off this path does not shorten the step. Needs `last_rank` of
/// the records.
std::vector<PathPiece> critical_path(const TimedProgram& timed, const Timeline& timeline,
                                     const TimelineIndex& index);

}  // namespace tessera
