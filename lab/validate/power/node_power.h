#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "predictor/weights/weights.h"
#include "sim/config/catalog.h"

namespace tessera {

/// A published figure of a node's power beside ours.
struct NodePowerFigure {
  std::string where;  ///< "training_energy_published.csv:2"
  std::string what;   ///< as the row has it
  std::string job;    ///< what was simulated in its place
  double measured_kw = 0, predicted_kw = 0;
  std::string skipped;  ///< why it is not scored; else empty

  double error_pct() const { return 100 * (predicted_kw / measured_kw - 1); }
};

/// Reads published energies (columns study, model, gpu, n_gpus, quantity, value, unit, measured)
/// and simulates the metered nodes of eight H100. Jobs are stated by name alone: Llama 2 13B stands
/// for them, FSDP in bf16 on a DGX H100, with micro-batches of 1, 2 and 4. Nothing is fitted:
/// boards follow hw/power.h, `host_power` the catalog. Throws InputError for what cannot be read.
std::vector<NodePowerFigure> score_node_power(const std::filesystem::path& file,
                                              const Catalog& catalog,
                                              const PredictorWeights& weights);

/// At most 80 columns wide.
std::string node_power_table(const std::vector<NodePowerFigure>& figures);

}  // namespace tessera
