#pragma once

#include <string>
#include <vector>

#include "app/explain/sensitivity.h"
#include "sim/report/provenance.h"
#include "sim/report/text/step_story.h"

namespace tessera {

/// What `tessera explain-step` prints.
struct StepExplanation {
  std::string gpu;
  int gpus = 1;
  StepStory story;
  std::vector<Sensitivity> sensitivities;  ///< empty where none were asked for
  Provenance provenance;
};

/// For people: ranks with equal shares share a line.
std::string explanation_text(const StepExplanation& explanation, bool notes = false);

/// Schema `tessera.step_story/1`: step_time_s, bound_by, ranks[], critical_path (classes[], ops[],
/// pieces[]), sensitivities[], definitions. SI units.
std::string explanation_json(const StepExplanation& explanation);

/// The class that takes most of the critical path.
TimeClass bound_by(const StepStory& story);

/// What the classes mean, by their names.
std::string_view definition_of(TimeClass time_class);
extern const char* const kCriticalPathDefinition;
extern const char* const kElasticityDefinition;

}  // namespace tessera
