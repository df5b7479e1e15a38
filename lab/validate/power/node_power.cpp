#include "lab/validate/power/node_power.h"

#include <algorithm>
#include <cstdlib>

#include "hw/units/formatted.h"
#include "lab/validate/row_reader.h"
#include "sim/config/load.h"
#include "sim/process/answer.h"
#include "sim/step/run_step.h"

namespace tessera {

namespace {

struct NodeWatts {
  double mean = 0, peak = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeWatts, mean, peak)

NodeWatts node_watts(const std::vector<std::string>& settings, const Catalog& catalog,
                     const PredictorWeights& weights) {
  const Scenario scenario = load_scenario("llama-2-7b_8xh100_dp8", settings, catalog);
  return forked([&] {
    const StepReport report = run_step(plan_step(scenario, weights)).report;
    const StepEnergy energy = report.energy.value_or(StepEnergy());
    return NodeWatts{energy.node_mean.value(), energy.node_peak.value()};
  });
}

/// The most of micro-batches of 1, 2 and 4 sequences.
NodeWatts busiest_training(const Catalog& catalog, const PredictorWeights& weights) {
  NodeWatts most;
  for (const int micro_batch : {1, 2, 4}) {
    const NodeWatts of =
        node_watts({"model=llama-2-13b", "training.mode=training", "training.precision=bf16",
                    "training.framework=fsdp", "training.data_parallel.sharding=parameters",
                    "training.recompute=full", "training.sequence_length=4096",
                    "training.global_batch=" + std::to_string(8 * micro_batch)},
                   catalog, weights);
    most = {std::max(most.mean, of.mean), std::max(most.peak, of.peak)};
  }
  return most;
}

class NodePowerRows {
 public:
  NodePowerRows(const CsvTable& table, const Catalog& catalog, const PredictorWeights& weights)
      : table_(table), catalog_(catalog), weights_(weights) {}

  std::vector<NodePowerFigure> figures() {
    std::vector<Problem> problems;
    std::vector<NodePowerFigure> figures;
    double rated_kw = 0;
    for (const CsvTable::Row& row : table_.rows) {
      const RowReader fields(table_, row, problems);
      if (!is_node_of_h100(fields)) continue;
      const double value = std::strtod(fields.text("value").c_str(), nullptr);
      if (fields.text("quantity") == "rated node power") rated_kw = value;
      if (fields.text("measured") != "meter") continue;
      figures.push_back({.where = fields.where(), .what = fields.text("quantity")});
      score(value, rated_kw, figures.back());
    }
    return figures;
  }

 private:
  static bool is_node_of_h100(const RowReader& fields) {
    return fields.text("gpu") == "H100-SXM5-80GB" && fields.text("n_gpus") == "8";
  }

  void score(double value, double rated_kw, NodePowerFigure& figure) {
    const bool share = figure.what == "largest mean share of the rated 10.2 kW";
    if (share && rated_kw <= 0) {
      figure.skipped = "the file has no rated power ahead of it";
    } else if (share || figure.what == "largest node power") {
      const NodeWatts watts = busiest();
      figure.job = "Llama 2 13B, bf16, FSDP";
      figure.measured_kw = share ? value / 100 * rated_kw : value;
      figure.predicted_kw = (share ? watts.mean : watts.peak) / 1e3;
    } else if (figure.what.starts_with("error of")) {
      figure.skipped = "of another model";
    } else {
      figure.skipped = "what fed the images is not stated, and decides at small batches";
    }
  }

  NodeWatts busiest() {
    if (busiest_.mean <= 0) busiest_ = busiest_training(catalog_, weights_);
    return busiest_;
  }

  const CsvTable& table_;
  const Catalog& catalog_;
  const PredictorWeights& weights_;
  NodeWatts busiest_;
};

}  // namespace

std::vector<NodePowerFigure> score_node_power(const std::filesystem::path& file,
                                              const Catalog& catalog,
                                              const PredictorWeights& weights) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"gpu", "n_gpus", "quantity", "value", "measured"});
  return NodePowerRows(table, catalog, weights).figures();
}

std::string node_power_table(const std::vector<NodePowerFigure>& figures) {
  std::string text =
      "nodes of eight H100: power as published beside ours, nothing fitted to it\n\n"
      "                                               kW\n"
      "figure                                   measured predicted  error [%]\n";
  for (const NodePowerFigure& figure : figures) {
    if (!figure.skipped.empty()) continue;
    text += formatted("%-40.40s %8.2f %9.2f %+10.1f\n", figure.what.c_str(), figure.measured_kw,
                      figure.predicted_kw, figure.error_pct());
  }
  text += "\nnot scored\n";
  for (const NodePowerFigure& figure : figures)
    if (!figure.skipped.empty()) text += "  " + figure.what + ":\n    " + figure.skipped + "\n";
  return text;
}

}  // namespace tessera
