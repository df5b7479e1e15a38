#pragma once

#include <filesystem>
#include <string>

#include "predictor/weights/weights.h"

namespace tessera {

/// Where `tessera train` writes.
struct TrainTarget {
  std::filesystem::path weights;
  std::filesystem::path tables;  ///< folder; empty = tables are printed alone
};

/// `out`: a weights file, empty = the shipped one; `tables`: a folder, empty = results/predictor
/// where the shipped weights are trained. Throws InputError, ahead of a fit that takes minutes,
/// where the file cannot take a section.
TrainTarget train_target(const std::string& out, const std::string& tables);

/// Replaces the sections that `trained` holds, says so, and names another section of the file that
/// this version cannot read, which has to be trained as well.
void write_sections(const PredictorWeights& trained, const std::filesystem::path& file);

}  // namespace tessera
