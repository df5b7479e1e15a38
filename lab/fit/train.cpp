#include "lab/fit/train.h"

#include "hw/units/fnv1a.h"
#include "lab/fit/fp32/logo.h"
#include "lab/fit/fp32/neusight_training.h"
#include "lab/fit/fp32/spread_fit.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {
namespace {

TrainingData provenance_of(const MeasurementFile& file, std::int64_t rows) {
  return {.file = file.path.filename().string(), .fnv1a = fnv1a(*file.text), .rows = rows};
}

}  // namespace

std::vector<std::string> TrainingSet::anomalous_linear() const {
  std::vector<std::string> anomalous;
  for (const GpuData& gpu : gpus)
    if (gpu.linear_anomalous) anomalous.push_back(gpu.spec.id);
  return anomalous;
}

TrainingSet read_training_set(const std::filesystem::path& data_dir, const GpuLookup& lookup) {
  TrainingSet set{.file = read_measurements(kernel_file(data_dir, "fp32.csv"))};
  set.gpus = training_data(set.file, lookup);
  for (const GpuData& gpu : set.gpus) set.rows += static_cast<std::int64_t>(gpu.rows.size());
  set.convolutions = add_convolutions(set.file.path.parent_path(), lookup, set.gpus);
  return set;
}

PredictorWeights train(const TrainingSet& set, const Folds& folds, const TrainOptions& options) {
  PredictorWeights weights = folds.all();
  weights.seed = options.seed;
  weights.rule = options.rule;
  weights.data.push_back(provenance_of(set.file, set.rows));
  if (set.convolutions)
    weights.data.push_back(provenance_of(set.convolutions->file, set.convolutions->rows));
  if (options.baselines) {
    std::vector<const GpuData*> gpus;
    for (const GpuData& gpu : set.gpus) gpus.push_back(&gpu);
    weights.neusight = train_neusight(gpus, options.seed);
  }
  if (folds.depth() != FoldDepth::none && folds.size() > 1) {
    weights.spreads = fit_spreads(folds, options.rule, folds.size());
    weights.logo = leave_one_gpu_out(folds, options);
  }
  return weights;
}

}  // namespace tessera
