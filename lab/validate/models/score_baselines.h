#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lab/fit/fp32/dataset.h"
#include "lab/validate/models/score_models.h"

namespace tessera {

/// Who predicts whole models, in the order of tables and pictures.
inline constexpr std::array<const char*, 4> kModelPredictors{"Tessera", "NeuSight", "regression",
                                                             "plain MLP"};

/// A measured run beside all predictions of it.
struct ComparedRun {
  ModelRun run;
  std::array<std::optional<double>, kModelPredictors.size()> error_pct;  ///< signed
};

/// Errors of one predictor.
struct PredictorErrors {
  std::string predictor;  ///< of kModelPredictors
  std::string by, key;    ///< "gpu", "model" and its value; "all"; "published": rows that NeuSight
                          ///< predicted
  ErrorSummary errors;
};

struct BaselineComparison {
  std::vector<ComparedRun> rows;        ///< measured and simulated ones, in the order of the file
  std::vector<PredictorErrors> groups;  ///< group by group, each with all predictors
};

/// Simulates every run of `ours` twice more, with the kernel times of a plain MLP and of one
/// regression per operator, both trained on `gpus`, `jobs` at a time. Everything but the kernels is
/// ours: the operators of a model, the host, collectives.
BaselineComparison score_baselines(const ModelValidation& ours, const ScenarioOfRun& scenario_of,
                                   const PredictorWeights& weights,
                                   const std::vector<const GpuData*>& gpus, int jobs);

}  // namespace tessera
