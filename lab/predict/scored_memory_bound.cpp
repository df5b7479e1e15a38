// Files in the format of memory_bound_fp16.csv.
#include <map>
#include <optional>

#include "lab/predict/memory_bound_predictor.h"
#include "lab/predict/scored_files.h"

namespace tessera {
namespace {

std::string group_name(const MemoryBoundRow& row) {
  return std::string(name_of(row.op)) + (row.calls > 1 ? " twice" : "") + " fp16";
}

}  // namespace

KernelScores score_memory_bound(const ScoreRequest& request) {
  const MemoryBoundTable table = read_memory_bound(request.csv);
  KernelScores scores{.text = table.text, .header = table.header};
  std::map<std::string, std::optional<MemoryBoundPredictor>> predictors;
  for (const MemoryBoundRow& row : table.rows) {
    KernelScore& score = add_score(scores, row.line, row.gpu, group_name(row), row.seconds);
    fill(score, [&] {
      if (request.form == PredictorForm::roofline)
        return row.calls * Bytes(row.bytes) / request.lookup(row.gpu).memory_bandwidth;
      require_16_bit_form(request.form);
      auto& predictor = predictors[row.gpu];
      if (!predictor) predictor.emplace(request.lookup(row.gpu), request.weights);
      score.predicted_as = "kernels of a server of 2023 (vLLM), which no training step launches";
      const KernelPrediction prediction = predictor->predict(row);
      score.half_width = log_half_width(prediction.spread);
      return row.calls * prediction.duration;
    });
  }
  for (const BadRow& row : table.bad_rows) scores.rows.push_back(unread(row.line, row.reason));
  return scores;
}

}  // namespace tessera
