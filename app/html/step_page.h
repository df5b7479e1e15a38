#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/explain/sensitivity.h"
#include "sim/plan/timed_program.h"
#include "sim/report/provenance.h"
#include "sim/report/step_report.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// How much of a timeline a page holds.
struct StepPageLimits {
  std::size_t slices = 200'000;
  int memory_ranks = 64;
  int category_ranks = 16;  ///< the first so many show their memory by category
  std::size_t category_samples = 800;
  std::size_t memory_samples = 4000;  ///< of a rank; of more, the highest of neighbours are kept
};

/// The report of one simulated step as an HTML file: figures with their definitions, where the time
/// of each GPU goes, the timeline with the critical path, memory over time, kernels and segments,
/// provenance. Where the timeline has more slices than `limits` allow, it holds the first GPU of
/// every pipeline stage first, then others in order, and says so. `sensitivities`, where there are
/// any, become what would help.
std::string step_page(const StepReport& report, const Provenance& provenance,
                      const TimedProgram& timed, const Timeline& timeline,
                      const StepPageLimits& limits = {},
                      const std::vector<Sensitivity>& sensitivities = {});

/// What the page of a server draws while a slider moves: the first screen, the timeline and the
/// memory.
nlohmann::ordered_json live_step_document(const StepReport& report, const Provenance& provenance,
                                          const TimedProgram& timed, const Timeline& timeline);

}  // namespace tessera
