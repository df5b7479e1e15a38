#include "lab/cli/commands/trained_section.h"

#include <spdlog/spdlog.h>

#include "app/shell/home.h"
#include "hw/units/input_error.h"
#include "predictor/weights/weights_update.h"

namespace tessera {

TrainTarget train_target(const std::string& out, const std::string& tables) {
  TrainTarget target{.weights = out, .tables = tables};
  if (out.empty()) {
    target.weights = weights_file();
    if (tables.empty()) target.tables = home() / "results" / "predictor";
  }
  require_updatable(target.weights);
  return target;
}

void write_sections(const PredictorWeights& trained, const std::filesystem::path& file) {
  update_weights(trained, file);
  spdlog::info("wrote {}", file.string());
  try {
    load_weights(file);
  } catch (const InputError& error) {
    spdlog::warn("{}", error.what());
  }
}

}  // namespace tessera
