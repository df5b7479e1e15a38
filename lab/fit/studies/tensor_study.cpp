#include "lab/fit/studies/tensor_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string_view>

#include "predictor/tensor/tensor_effect.h"

namespace tessera {
namespace {

using Predicted = std::function<double(const TensorSample&)>;
using Chosen = std::function<bool(const TensorSample&)>;

constexpr double kLong = 50e-6;      ///< [s]
constexpr double kDrawFrom = 20e-6;  ///< least duration of kernels that calibrate a GPU [s]
constexpr double kFloor = 3e-6;      ///< of a kernel, for the baseline [s]
constexpr int kDraws = 10;

bool is_long(const TensorSample& s) {
  return s.seconds >= kLong;
}
bool is_large(const TensorSample& s) {
  return is_long(s) && s.shape.m > 1024;
}

struct Regime {
  const char* name;
  bool (*holds)(const TensorSample&);
};
constexpr std::array<Regime, 5> kRegimes{{
    {">= 50 us", is_long},
    {">= 50 us, m <= 64", [](const TensorSample& s) { return is_long(s) && s.shape.m <= 64; }},
    {">= 50 us, 64 < m <= 1024",
     [](const TensorSample& s) { return is_long(s) && s.shape.m > 64 && s.shape.m <= 1024; }},
    {">= 50 us, m > 1024", is_large},
    {"< 50 us", [](const TensorSample& s) { return !is_long(s); }},
}};

double signed_error_pct(const TensorSample& sample, const Predicted& predicted) {
  return 100 * (predicted(sample) / sample.seconds - 1);
}

TensorError error_of(const std::vector<TensorSample>& samples, const Predicted& predicted) {
  std::vector<double> errors;
  errors.reserve(samples.size());
  double sum = 0;
  for (const TensorSample& sample : samples) {
    errors.push_back(std::abs(signed_error_pct(sample, predicted)));
    sum += errors.back();
  }
  if (errors.empty()) return {};
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::ranges::nth_element(errors, middle);
  return {static_cast<std::int64_t>(errors.size()), sum / static_cast<double>(errors.size()),
          *middle};
}

double roofline(const TensorSample& sample, const TensorTraits& gpu) {
  return std::max(sample.shape.flops() / gpu.flops, sample.shape.bytes / gpu.bandwidth);
}

/// Median of measured over roofline time, kernels of 50 us and longer.
double roofline_constant(const TensorData& data, const std::vector<TensorSample>& samples) {
  std::vector<double> ratios;
  for (const TensorSample& sample : samples)
    if (is_long(sample))
      ratios.push_back(sample.seconds / roofline(sample, data.stacks[sample.stack].traits));
  if (ratios.empty()) return 1;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
}

/// The model with one library effect for all rows of a GPU.
Predicted with_stack(const TensorData& data, const TensorParameters<double>& shared,
                     const TensorGpuEffect<double>& gpu, const TensorStackEffect<double>& stack) {
  return [=, &data](const TensorSample& sample) {
    const TensorTraits& traits = data.stacks[sample.stack].traits;
    return tensor_gemm_seconds(sample.shape, traits, shared, gpu, stack) + stack.launch_seconds;
  };
}

/// All predictions that one table compares, for one GPU.
struct Contenders {
  Predicted form, any_stack, roofline, with_a_floor;
};

Contenders contenders(const TensorData& data, const TensorFit& fit, int gpu,
                      const std::vector<TensorSample>& trained) {
  const TensorStackEffect<double> mean =
      unknown_stack(tensor_weights_of(data, fit), data.gpus[gpu].id);
  const double constant = roofline_constant(data, trained);
  const Predicted bound = [=, &data](const TensorSample& sample) {
    return constant * roofline(sample, data.stacks[sample.stack].traits);
  };
  return {.form =
              [&data, &fit](const TensorSample& sample) {
                return fit.timed_seconds(sample, data.stacks[sample.stack]);
              },
          .any_stack = with_stack(data, fit.shared, fit.gpus[gpu], mean),
          .roofline = bound,
          .with_a_floor = [bound](const TensorSample& s) { return bound(s) + kFloor; }};
}

void add_row(std::vector<TensorErrorRow>& rows, TensorErrorRow row,
             const std::vector<TensorSample>& samples, const Contenders& by) {
  row.form = error_of(samples, by.form);
  row.any_stack = error_of(samples, by.any_stack);
  row.roofline = error_of(samples, by.roofline);
  row.with_a_floor = error_of(samples, by.with_a_floor);
  if (row.form.n > 0) rows.push_back(std::move(row));
}

Chosen of_gpu(const TensorData& data, int gpu) {
  return [&data, gpu](const TensorSample& s) { return data.stacks[s.stack].gpu == gpu; };
}

std::vector<TensorErrorRow> held_out_errors(const TensorData& data, const TensorFit& fit,
                                            TensorHoldout holdout) {
  std::vector<TensorErrorRow> rows;
  for (int gpu = 0; gpu < static_cast<int>(data.gpus.size()); ++gpu) {
    const std::vector<TensorSample> own = filtered(data.samples, of_gpu(data, gpu));
    const auto kept_out = [&](const TensorSample& s) { return held_out(s.shape, holdout); };
    const std::vector<TensorSample> unseen = filtered(own, kept_out);
    const Contenders by = contenders(
        data, fit, gpu, filtered(own, [&](const TensorSample& s) { return !kept_out(s); }));
    for (const Regime& regime : kRegimes)
      add_row(rows, {.gpu = data.gpus[gpu].id, .regime = regime.name},
              filtered(unseen, regime.holds), by);
    for (std::size_t stack = 0; stack < data.stacks.size(); ++stack) {
      if (data.stacks[stack].gpu != gpu) continue;
      for (const Regime* regime : {&kRegimes.front(), &kRegimes.back()})
        add_row(
            rows,
            {.gpu = data.gpus[gpu].id, .stack = data.stacks[stack].name, .regime = regime->name},
            filtered(unseen,
                     [&](const TensorSample& s) {
                       return s.stack == static_cast<int>(stack) && regime->holds(s);
                     }),
            by);
    }
  }
  return rows;
}

/// `weights` with the spreads of `from`, which holds the same GPUs.
TensorWeights with_spreads(TensorWeights weights, const TensorWeights& from) {
  for (std::size_t i = 0; i < weights.gpus.size(); ++i) {
    weights.gpus[i].stack_spread = from.gpus[i].stack_spread;
    weights.gpus[i].long_spread = from.gpus[i].long_spread;
    weights.gpus[i].short_spread = from.gpus[i].short_spread;
  }
  return weights;
}

/// Scores one way to predict a GPU after another one was fitted.
class Transfer {
 public:
  Transfer(const TensorData& data, const TensorTraining& training, int source, int target)
      : data_(data),
        source_(source),
        target_(target),
        own_(filtered(data.samples, of_gpu(data, source))),
        fit_(fit_tensor_gemm(data, own_)),
        copied_(unknown_stack(tensor_weights_of(data, fit_), data.gpus[source].id)),
        by_generation_(copied_) {
    by_generation_.quantisation =
        unknown_stack(training.weights, data.gpus[target].id).quantisation;
    for (const TensorSample& sample : filtered(data.samples, of_gpu(data, target)))
      (held_out(sample.shape, TensorHoldout::shapes) ? scored_ : drawn_from_).push_back(sample);
    std::erase_if(drawn_from_, [](const TensorSample& s) { return s.seconds < kDrawFrom; });
  }

  /// Of the intervals that weights without the target give for it.
  TensorCoverage coverage(const TensorTraining& training) const {
    TensorWeights weights = with_spreads(tensor_weights_of(data_, fit_), training.weights);
    weights.gpus = {weights.gpus[source_]};
    return tensor_coverage(data_, weights, target_);
  }

  std::vector<TensorTransferRow> rows() const {
    const double constant = roofline_constant(data_, own_);
    std::vector<TensorTransferRow> rows{
        row("roofline * constant of the source",
            [&](const TensorSample& sample) {
              return constant * roofline(sample, data_.stacks[sample.stack].traits);
            }),
        row("form, whole-wave share of the source",
            with_stack(data_, fit_.shared, fit_.gpus[source_], copied_)),
        row("form, whole-wave share by generation",
            with_stack(data_, fit_.shared, fit_.gpus[source_], by_generation_))};
    for (const std::size_t kernels : {5, 20, 100})
      if (drawn_from_.size() >= kernels * kDraws) rows.push_back(calibrated(kernels));
    return rows;
  }

 private:
  TensorTransferRow row(std::string method, const Predicted& predicted) const {
    TensorTransferRow row{.source = data_.gpus[source_].id,
                          .target = data_.gpus[target_].id,
                          .method = std::move(method)};
    const std::vector<TensorSample> longer = filtered(scored_, is_long);
    row.longer = error_of(longer, predicted);
    row.large = error_of(filtered(scored_, is_large), predicted);
    row.shorter =
        error_of(filtered(scored_, [](const TensorSample& s) { return !is_long(s); }), predicted);
    for (const TensorSample& sample : longer)
      row.bias_pct += signed_error_pct(sample, predicted) / static_cast<double>(longer.size());
    return row;
  }

  /// The GPU's own slowdowns from the kernels of one draw, the rest as by generation.
  TensorGpuEffect<double> calibrated_on(std::size_t kernels, std::uint64_t draw) const {
    std::mt19937_64 random(draw);
    std::vector<TensorSample> drawn;
    for (std::size_t i = 0; i < kernels; ++i)
      drawn.push_back(drawn_from_[random() % drawn_from_.size()]);
    return calibrated_tensor_gpu(drawn, data_.stacks[drawn.front().stack].traits, fit_.shared,
                                 fit_.gpus[source_], by_generation_);
  }

  /// Mean over draws.
  TensorTransferRow calibrated(std::size_t kernels) const {
    TensorTransferRow mean;
    for (int draw = 0; draw < kDraws; ++draw) {
      const TensorGpuEffect<double> gpu =
          calibrated_on(kernels, static_cast<std::uint64_t>(draw + 1));
      const TensorTransferRow one = row(std::to_string(kernels) + " kernels of the target",
                                        with_stack(data_, fit_.shared, gpu, by_generation_));
      const double worst = std::max(mean.worst_pct, one.longer.mean_pct);
      if (draw == 0)
        mean = one;
      else
        add(mean, one);
      mean.worst_pct = worst;
    }
    for (TensorError* error : {&mean.longer, &mean.large, &mean.shorter}) {
      error->mean_pct /= kDraws;
      error->median_pct /= kDraws;
    }
    mean.bias_pct /= kDraws;
    return mean;
  }

  static void add(TensorTransferRow& sum, const TensorTransferRow& one) {
    const auto add_error = [](TensorError& to, const TensorError& from) {
      to.mean_pct += from.mean_pct;
      to.median_pct += from.median_pct;
    };
    add_error(sum.longer, one.longer);
    add_error(sum.large, one.large);
    add_error(sum.shorter, one.shorter);
    sum.bias_pct += one.bias_pct;
  }

  const TensorData& data_;
  int source_, target_;
  std::vector<TensorSample> own_, scored_, drawn_from_;
  TensorFit fit_;
  TensorStackEffect<double> copied_, by_generation_;
};

}  // namespace

TensorStudy study_tensor_gemm(const TensorData& data, const TensorTraining& training) {
  const auto kept = [](const TensorSample& sample) {
    return !held_out(sample.shape, TensorHoldout::matrices);
  };
  const TensorFit matrices = fit_tensor_gemm(data, filtered(data.samples, kept));
  TensorStudy study{.shapes = held_out_errors(data, training.shapes, TensorHoldout::shapes),
                    .matrices = held_out_errors(data, matrices, TensorHoldout::matrices),
                    .sums = sums_of_eight(data, training.shapes),
                    .transfers = {},
                    .loads = products_under_load(data, training.weights),
                    .coverage = {}};
  const auto gpus = static_cast<int>(data.gpus.size());
  const TensorWeights judged =
      with_spreads(tensor_weights_of(data, training.shapes), training.weights);
  for (int gpu = 0; gpu < gpus; ++gpu) study.coverage.push_back(tensor_coverage(data, judged, gpu));
  for (int source = 0; source < gpus; ++source) {
    for (int target = 0; target < gpus; ++target) {
      if (source == target) continue;
      const Transfer transfer(data, training, source, target);
      const std::vector<TensorTransferRow> rows = transfer.rows();
      study.coverage.push_back(transfer.coverage(training));
      study.transfers.insert(study.transfers.end(), rows.begin(), rows.end());
    }
  }
  return study;
}

}  // namespace tessera
