#pragma once

#include <string>

#include "lab/validate/models/score_baselines.h"

namespace tessera {

/// For a person: a line per run with the error of every predictor, then errors by GPU, model, GPU
/// and model, and over all.
std::string baseline_table(const BaselineComparison& comparison);

/// A row of dots per GPU and model, |error| from left to right on a logarithmic scale: an SVG file.
std::string baseline_picture(const BaselineComparison& comparison);

}  // namespace tessera
