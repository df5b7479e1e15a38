#include "sim/engine/errors/time_limit_error.h"

#include <utility>

#include "hw/units/text.h"
#include "sim/engine/errors/message_with_lines.h"

namespace tessera {
namespace {

std::string text_of(const SimulationProgress& progress) {
  const std::string text =
      "gave up after " + to_short_text(progress.limit) +
      " of simulation (simulation.time_limit, less the time of planning): at " +
      to_short_text(progress.simulated) + " of the step, after " + std::to_string(progress.events) +
      " events";
  return with_lines(text, progress.unfinished);
}

}  // namespace

TimeLimitError::TimeLimitError(SimulationProgress progress)
    : std::runtime_error(text_of(progress)), progress_(std::move(progress)) {}

}  // namespace tessera
