// Files in the format of attention.csv.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "hw/units/input_error.h"
#include "lab/fit/attention/attention_table.h"
#include "lab/predict/attention_stand_in.h"
#include "lab/predict/scored_files.h"
#include "lab/predict/serving_kernels.h"
#include "lab/predict/source_spreads.h"
#include "predictor/attention/attention_predictor.h"

namespace tessera {
namespace {

const char* direction_name(AttentionDirection direction) {
  switch (direction) {
    case AttentionDirection::forward:
      return "attention forward";
    case AttentionDirection::backward:
      return "attention backward";
    case AttentionDirection::forward_backward:
      return "attention forward+backward";
  }
  return "attention";
}

bool hides_keys(const AttentionMeasurement& row) {
  return row.window > 0 && row.window < row.call.seq_kv;
}

/// For tables: direction, format, window.
std::string group_name(const AttentionMeasurement& row) {
  return direction_name(row.call.direction) + std::string(row.eight_bits ? " fp8" : "") +
         (hides_keys(row) ? " window" : "");
}

const char* stand_in_of_cache(AttentionImplementation implementation, bool earlier) {
  if (earlier) return "a cache in fp8 behind a window by Ampere's instructions";
  return quantizes_queries(implementation)
             ? "a cache in fp8 as one in bf16, behind a pass over the queries"
             : "a cache in fp8 as one in bf16";
}

/// What stands in for a kernel that nobody measured; empty where it was.
std::string stand_in_of(const AttentionMeasurement& row, bool earlier) {
  std::string text;
  if (!row.known) text = row.stack + ": the implementation that its name says, else the fastest";
  if (row.eight_bits) text += (text.empty() ? "" : "; ") + std::string("fp8 at 1.5 times bf16");
  if (row.eight_bit_cache && !row.eight_bits)
    text += (text.empty() ? "" : "; ") +
            std::string(stand_in_of_cache(row.call.implementation, earlier));
  if (hides_keys(row))
    text += (text.empty() ? "" : "; ") + std::string("a window as whole blocks of keys");
  return text;
}

Kernel attention_kernel(const AttentionCall& call) {
  Kernel kernel;
  kernel.kind = KernelKind::attention;
  kernel.precision = Precision::bf16;
  kernel.attention = call;
  kernel.flops = Flops(attention_flops(call));
  kernel.bytes_read = Bytes(static_cast<std::int64_t>(attention_bytes(call)));
  return kernel;
}

/// Predictors of attention by GPU, software and setting.
class AttentionPredictors {
 public:
  explicit AttentionPredictors(const ScoreRequest& request) : request_(request) {}

  /// As its kernel runs it: which one that is, its window, its format.
  AttentionMeasurement resolved(AttentionMeasurement row) const {
    const GpuSpec& gpu = request_.lookup(row.gpu);
    if (row.call.causal && row.window < row.call.seq_kv) row.call.window = row.window;
    if (!row.known) row.call.implementation = nearest_implementation(row.stack, gpu);
    row.eight_bits |= row.eight_bit_cache && !(hides_keys(row) && leaves(row)) &&
                      attends_in_cache_format(row.call.implementation, gpu);
    return row;
  }

  /// Of a resolved row, whether it runs an earlier GPU's instructions.
  bool earlier(const AttentionMeasurement& row) const {
    return row.eight_bit_cache && !row.eight_bits && hides_keys(row) && leaves(row);
  }

  KernelPrediction predict(const AttentionMeasurement& row) {
    if (request_.form == PredictorForm::roofline) {
      auto& roofline = rooflines_[{row.gpu, row.eight_bits}];
      if (!roofline) roofline = make_predictor(request_.form, gpu_of(row), request_.weights);
      return roofline->predict(attention_kernel(row.call));
    }
    require_16_bit_form(request_.form);
    if (!request_.weights.attention)
      throw InputError({.where = "weights",
                        .what = "hold no fused attention",
                        .hint = "use the shipped weights, or run tessera train --model attention"});
    auto& predictor = predictors_[{row.gpu, row.stack, row.eight_bits, earlier(row)}];
    if (!predictor)
      predictor.emplace(gpu_of(row), weights_for(row),
                        row.served ? AttentionSetting::serving : AttentionSetting::training,
                        row.stack);
    KernelPrediction prediction = predictor->predict(row.call);
    if (row.eight_bit_cache && !row.eight_bits && quantizes_queries(row.call.implementation))
      prediction.duration += quantization(row);
    const bool own = predictor->measured(row.call);
    const bool fitted = own && !row.eight_bits && !row.eight_bit_cache && row.call.window == 0;
    const double source = own ? source_spread::kOtherAttention : source_spread::kCopiedAttention;
    if (row.served && !fitted) prediction.spread = with_source(prediction.spread, source);
    return prediction;
  }

 private:
  bool leaves(const AttentionMeasurement& row) const {
    return leaves_cache_format(row.call.implementation, request_.lookup(row.gpu));
  }

  /// Of the queries, read in 16 bit and written in 8.
  Seconds quantization(const AttentionMeasurement& row) {
    auto& plain = plain_[row.gpu];
    if (!plain) plain = make_predictor(request_.form, request_.lookup(row.gpu), request_.weights);
    const std::int64_t width = row.call.heads * row.call.head_dim;
    return plain->predict(pointwise(row.call.batch * row.call.seq_q, width, width / 2).kernel)
        .duration;
  }

  AttentionWeights weights_for(const AttentionMeasurement& row) const {
    const AttentionWeights& weights = *request_.weights.attention;
    return row.eight_bits ? fp8_attention_weights(weights) : weights;
  }

  GpuSpec gpu_of(const AttentionMeasurement& row) const {
    const GpuSpec gpu = request_.lookup(row.gpu);
    if (earlier(row)) return gpu_by_earlier_instructions(gpu);
    return row.eight_bits ? gpu_with_fp8_attention(gpu) : gpu;
  }

  const ScoreRequest& request_;
  std::map<std::pair<std::string, bool>, std::unique_ptr<KernelPredictor>> rooflines_;
  std::map<std::string, std::unique_ptr<KernelPredictor>> plain_;
  std::map<std::tuple<std::string, std::string, bool, bool>, std::optional<AttentionPredictor>>
      predictors_;
};

}  // namespace

KernelScores score_attention(const ScoreRequest& request) {
  const AttentionTable table = read_attention_to_predict(request.csv);
  KernelScores scores{.text = table.text, .header = table.header};
  AttentionPredictors predictors(request);
  for (const AttentionMeasurement& as_read : table.rows) {
    AttentionMeasurement row = as_read;
    KernelScore& score = add_score(scores, row.line, row.gpu, group_name(row), row.seconds);
    if (!row.fused) {
      score.skipped = "no model of " + row.stack;
      if (row.stack == "PyTorch standard")
        score.skipped = "unfused attention is products and a softmax, kernels of their own";
      continue;
    }
    fill(score, [&] {
      row = predictors.resolved(row);
      score.predicted_as = stand_in_of(row, predictors.earlier(row));
      const KernelPrediction prediction = predictors.predict(row);
      score.half_width = log_half_width(prediction.spread);
      return prediction.duration;
    });
  }
  for (const BadRow& row : table.bad_rows) scores.rows.push_back(unread(row.line, row.reason));
  return scores;
}

}  // namespace tessera
