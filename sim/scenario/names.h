#pragma once

#include <string_view>

#include "predictor/kernel_predictor.h"
#include "workloads/step_options.h"

namespace tessera {

/// The words of scenario files and reports.
std::string_view name_of(StepMode mode);
std::string_view name_of(PredictorForm form);
std::string_view name_of(Recompute recompute);

/// The inverse of `name_of`. Throws InputError that lists the accepted names.
PredictorForm predictor_form_of(std::string_view name);

}  // namespace tessera
