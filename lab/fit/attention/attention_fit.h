#pragma once

#include <string>
#include <vector>

#include "lab/fit/attention/attention_table.h"
#include "lab/fit/fp32/dataset.h"
#include "predictor/attention/attention_model.h"
#include "predictor/attention/attention_weights.h"

namespace tessera {

/// Calls of one stack on one GPU that share all parameters.
struct AttentionGroup {
  std::string gpu, stack;
  AttentionImplementation implementation = AttentionImplementation::flash2;
  bool causal_alone = false;  ///< holds no full attention
  bool full_alone = false;    ///< holds no causal attention
  bool served = false;
  bool by_eye = false;
  AttentionGpu traits;
  std::vector<const AttentionMeasurement*> rows;
};

/// Forward calls of fused attention by GPU and stack; servers' causal and full attention run
/// different kernels and are groups of their own.
std::vector<AttentionGroup> attention_groups(const AttentionTable& table, const GpuLookup& lookup);

/// Effects that an ablation takes out of the form.
struct AttentionAblation {
  const char* name = "";
  std::vector<std::pair<AttentionParameter, double>> fixed;  ///< unconstrained values
};

struct AttentionFit {
  std::vector<AttentionVector> parameters;  ///< per group
  double mean_absolute = 0;                 ///< weighted mean |log error|
};

/// Of the rows of `groups` that are not held out. The norms, the share of traffic and that of
/// the KV cache are common to all groups. Every `stride`-th row of a group is used.
AttentionFit fit_attention(const std::vector<AttentionGroup>& groups,
                           const AttentionAblation& ablation = {}, std::size_t stride = 1);

/// `copied`, adapted to a few calls on another GPU: efficiency, exponentials, quantisation, longest
/// block, launch and conversion move as far as the calls insist against normal priors around the
/// copied values.
AttentionVector adapt_attention(const AttentionVector& copied, const AttentionGpu& gpu,
                                const std::vector<const AttentionMeasurement*>& calls);

/// Log of predicted over measured time of a forward call, from unconstrained parameters.
template <class T>
T attention_residual(const AttentionShape& shape, double seconds, const AttentionGpu& gpu,
                     bool served, std::span<const T> x) {
  using std::log;
  const auto p = AttentionParameters<T>::from_unconstrained(x);
  return log(attention_time(shape, gpu, p, served).total) - T(std::log(seconds));
}

}  // namespace tessera
