// Files in the formats of fp32.csv, fp32_conv.csv and tensor_core.csv.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "hw/units/input_error.h"
#include "lab/predict/scored_files.h"
#include "lab/predict/served_kernels.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/measured/timed_call.h"
#include "predictor/product_format.h"
#include "predictor/tensor/tensor_gemm_predictor.h"

namespace tessera {
namespace {

/// Products that were replayed from a graph, of the row's library where it was measured on that
/// GPU.
class LibraryPredictors {
 public:
  LibraryPredictors(const ScoreRequest& request, const std::vector<std::string>& gpus)
      : request_(request), gpus_(gpus) {}

  /// Durations leave start and drain out. Empty for other calls.
  const TensorGemmPredictor* find(const KernelMeasurement& row) {
    const bool possible = request_.form == PredictorForm::tessera && request_.weights.tensor_gemm &&
                          row.op == MeasuredOp::linear && row.load == Load::isolated &&
                          row.timing != CallTiming::isolated && row.precision != Precision::fp32;
    if (!possible) return nullptr;
    auto& predictor = predictors_[{row.gpu, row.precision, row.stack}];
    if (!predictor)
      predictor.emplace(request_.lookup(gpus_[row.gpu]), row.precision,
                        *request_.weights.tensor_gemm,
                        was_measured(row) ? row.stack : std::string_view());
    predictor->keep_warm(row.warm_sets);
    return &*predictor;
  }

  bool was_measured(const KernelMeasurement& row) const {
    if (!request_.weights.tensor_gemm) return false;
    for (const TensorGpuWeights& measured : request_.weights.tensor_gemm->gpus)
      for (const TensorStackWeights& stack : measured.stacks)
        if (measured.gpu == gpus_[row.gpu] && stack.name == row.stack &&
            stack.precision == row.precision)
          return true;
    return false;
  }

 private:
  const ScoreRequest& request_;
  const std::vector<std::string>& gpus_;
  std::map<std::tuple<std::uint16_t, Precision, std::string_view>,
           std::optional<TensorGemmPredictor>>
      predictors_;
};

/// Predictors of the file's GPUs, under both loads.
class Predictors {
 public:
  Predictors(const ScoreRequest& request, const std::vector<std::string>& gpus)
      : request_(request), ids_(gpus) {
    for (const std::string& id : gpus) {
      OfGpu& of_gpu = gpus_.emplace_back();
      try {
        const GpuSpec gpu = request.lookup(id);
        for (const Load load : {Load::sustained, Load::isolated})
          of_gpu.by_load[static_cast<std::size_t>(load)] =
              make_predictor(request.form, gpu, request.weights, load);
      } catch (const InputError& error) {
        of_gpu.unknown = error.problems().front();
      }
    }
  }

  /// Throws InputError for a GPU that is not in the catalog.
  const KernelPredictor& of(const KernelMeasurement& row) const {
    const OfGpu& of_gpu = gpus_[row.gpu];
    if (of_gpu.unknown) throw InputError(*of_gpu.unknown);
    return *of_gpu.by_load[static_cast<std::size_t>(row.load)];
  }

  /// A call in one of the server's formats: what makes the operands, and the product.
  ServedTime in_format(const KernelMeasurement& row) {
    auto found = servers_.find({row.gpu, row.load});
    if (found == servers_.end())
      found = servers_
                  .emplace(std::pair(row.gpu, row.load),
                           ServedKernels(request_, request_.lookup(ids_[row.gpu]), {}, row.load))
                  .first;
    found->second.keep_warm(row.warm_sets);
    std::vector<ServingKernel> kernels;
    add_product(product_format(row.format), row.m, row.n, row.k, row.stack, kernels);
    return found->second.timed(kernels);
  }

 private:
  struct OfGpu {
    std::array<std::unique_ptr<KernelPredictor>, 2> by_load;
    std::optional<Problem> unknown;
  };
  const ScoreRequest& request_;
  const std::vector<std::string>& ids_;
  std::vector<OfGpu> gpus_;
  std::map<std::pair<std::uint16_t, Load>, ServedKernels> servers_;
};

/// Position of the operator's name, with the format where it is not fp32.
class GroupNames {
 public:
  explicit GroupNames(std::vector<std::string>& names) : names_(names) {}

  std::uint16_t position(MeasuredOp op, Precision precision, std::string_view format = {}) {
    const auto [entry, added] =
        positions_.try_emplace({op, precision, format}, static_cast<std::uint16_t>(names_.size()));
    if (added) {
      names_.emplace_back(name_of(op));
      if (!format.empty())
        names_.back() += " " + std::string(format);
      else if (precision != Precision::fp32)
        names_.back() += " " + std::string(name_of(precision));
    }
    return entry->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::tuple<MeasuredOp, Precision, std::string_view>, std::uint16_t> positions_;
};

}  // namespace

KernelScores score_operators(const ScoreRequest& request) {
  const MeasurementFile file = read_measurements(request.csv, UnreadRows::kept);
  KernelScores scores{.text = file.text, .header = file.header, .gpus = file.gpus};
  Predictors predictors(request, file.gpus);
  LibraryPredictors libraries(request, file.gpus);
  GroupNames names(scores.ops);
  for (std::size_t op = 0; op < kMeasuredOps; ++op)  // groups in this order
    names.position(static_cast<MeasuredOp>(op), Precision::fp32);
  scores.rows.reserve(file.rows.size());
  for (const KernelMeasurement& row : file.rows) {
    KernelScore& score = scores.rows.emplace_back(
        KernelScore{.line = row.line,
                    .gpu = row.gpu,
                    .group = names.position(row.op, row.precision, row.format),
                    .measured_us = row.latency_us,
                    .predicted_as = {},
                    .skipped = {}});
    fill(score, [&] {
      if (!row.format.empty()) {
        score.predicted_as = "quantization and an fp8 product at the rate of the format";
        const ServedTime call = predictors.in_format(row);
        score.half_width = log_half_width(call.spread);
        return call.time;
      }
      if (!row.stack.empty() && row.precision != Precision::fp32 && !libraries.was_measured(row))
        score.predicted_as = std::string(row.stack) + ": mean of the measured libraries";
      if (const TensorGemmPredictor* library = libraries.find(row)) {
        const KernelPrediction prediction = library->predict(kernel_of(row));
        score.half_width = log_half_width(prediction.spread);
        return prediction.duration + library->launch_seconds();
      }
      score.half_width = log_half_width(predictors.of(row).predict(kernel_of(row)).spread);
      return timed_call(predictors.of(row), row);
    });
  }
  for (const auto& [line, reason] : file.bad_rows) scores.rows.push_back(unread(line, reason));
  return scores;
}

}  // namespace tessera
