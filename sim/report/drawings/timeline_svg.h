#pragma once

#include <string>

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// How a timeline is drawn. Lengths in pixels.
struct SvgOptions {
  std::string title;
  int width = 1200;
  int row_height = 18;     ///< of one stream
  int memory_height = 26;  ///< of the memory curve below the streams of a GPU; 0 = no curve
  int max_gpus = 16;       ///< further GPUs are left out, and the picture says so
};

/// Draws a simulated step as a self-contained SVG: one row per GPU and stream, coloured by phase,
/// with a time axis and a legend. Neighbouring slices of one colour that a pixel cannot tell apart
/// are drawn as one.
std::string timeline_svg(const TimedProgram& timed, const Timeline& timeline,
                         const SvgOptions& options);

}  // namespace tessera
