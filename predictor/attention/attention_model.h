#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "hw/gpu.h"
#include "predictor/attention/attention_shape.h"
#include "predictor/fp32/power_mean.h"
#include "predictor/gpu/sm_rate.h"

namespace tessera {

/// Facts of a GPU that 16-bit attention looks at.
struct AttentionGpu {
  double flops = 0;                          ///< dense bf16 tensor peak [FLOP/s]
  double bandwidth = 0;                      ///< memory bandwidth [B/s]
  double sms = 0;                            ///< streaming multiprocessors
  double clock = 0;                          ///< at which the tensor peak is quoted [Hz]
  double exponentials = kUsualExponentials;  ///< per clock and SM
};
/// Throws InputError naming the figure that `gpu` lacks.
AttentionGpu attention_gpu(const GpuSpec& gpu);

/// Where the unconstrained parameters of one implementation on one GPU stand.
enum AttentionParameter : std::size_t {
  kComputeNorm,  ///< common to all
  kMemoryNorm,
  kMemoryShare,
  kCacheWrite,
  kQuantisation,  ///< of one implementation on one GPU
  kLongestBlock,
  kExponentials,
  kEfficiency,
  kLaunch,
  kConversion,
  kHead64,
  kHead192,
  kHead256,
  kGrouped,
  kPadding,
  kCausal,
  kAttentionParameters
};

/// Parameters of one implementation on one GPU. T: double to predict, Dual to train.
template <class T>
struct AttentionParameters {
  static constexpr int kCount = kAttentionParameters;

  T compute_norm;   ///< mean load and longest block combine under this p-norm, > 1
  T memory_norm;    ///< arithmetic and traffic combine under this p-norm, > 1
  T memory_share;   ///< traffic / compulsory operand traffic; below 1: L2 hits, > 0
  T cache_write;    ///< serving: traffic of the KV cache / bytes of K and V, > 0
  T quantisation;   ///< share of the step from one wave to the next, in (0, 1)
  T longest_block;  ///< share of the longest block that shows at the end, > 0
  T exponentials;   ///< share of them that does not overlap with products, > 0
  T efficiency;     ///< share of the tensor peak that the products run at, > 0
  T launch;         ///< fixed time [s], > 0
  T conversion;     ///< serving: traffic of rearranging Q, K and V / `rearranged_bytes`, > 0
  T head64;         ///< log slowdown of the products at head_dim <= 64
  T head192;        ///< the same from 192
  T head256;        ///< the same from 256
  T grouped;        ///< log speed-up of 8 query heads per key head
  T padding;        ///< how far head_dim is padded to the next built size, in (0, 1)
  T causal;         ///< log slowdown of the products under a causal mask

  /// From `kCount` unconstrained numbers in the order of AttentionParameter.
  static AttentionParameters from_unconstrained(std::span<const T> x) {
    using std::exp;
    return {.compute_norm = T(1.0) + exp(x[kComputeNorm]),
            .memory_norm = T(1.0) + exp(x[kMemoryNorm]),
            .memory_share = exp(x[kMemoryShare]),
            .cache_write = exp(x[kCacheWrite]),
            .quantisation = sigmoid(x[kQuantisation]),
            .longest_block = exp(x[kLongestBlock]),
            .exponentials = exp(x[kExponentials]),
            .efficiency = exp(x[kEfficiency]),
            .launch = T(1e-6) * exp(x[kLaunch]),
            .conversion = exp(x[kConversion]),
            .head64 = x[kHead64],
            .head192 = x[kHead192],
            .head256 = x[kHead256],
            .grouped = x[kGrouped],
            .padding = sigmoid(x[kPadding]),
            .causal = x[kCausal]};
  }
};

/// Head dimensions that kernels are built for; others are padded.
inline double built_head_dim(double head_dim) {
  for (const double built : {64., 96., 128., 192., 256.})
    if (head_dim <= built) return built;
  return 128 * std::ceil(head_dim / 128);
}

/// The parts of a forward call [s].
template <class T>
struct AttentionTime {
  T compute, memory, serving, launch;
  double waves = 0;  ///< blocks / SMs
  T total;
};

/// Of a forward call. `served`: as a server runs it, with the KV cache written and Q, K and V
/// rearranged; in training, projections and changes of layout are kernels of their own.
template <class T>
AttentionTime<T> attention_time(const AttentionShape& s, const AttentionGpu& gpu,
                                const AttentionParameters<T>& p, bool served) {
  using std::exp;
  AttentionTime<T> time;
  const double built = s.head_dim < 64 ? 64 : built_head_dim(s.head_dim);
  const T width = T(s.head_dim) + p.padding * (built - s.head_dim);
  T slowdown = -p.grouped * (s.group_octaves / 3);
  if (s.causal) slowdown += p.causal;
  if (s.head_dim <= 64) slowdown += p.head64;
  if (s.head_dim >= 256) {
    slowdown += p.head256;
  } else if (s.head_dim >= 192) {
    slowdown += p.head192;
  }
  const T products =
      width * exp(slowdown) * (4 * s.product_share * gpu.sms / gpu.flops) / p.efficiency;
  const T per_score =
      products + p.exponentials * ((1 + s.tanh_share) / (gpu.exponentials * gpu.clock));
  time.waves = s.blocks / gpu.sms;
  const double even = std::max(time.waves, 1.0);
  const T waves = T(even) + p.quantisation * (std::ceil(time.waves) - even);
  time.compute = smooth_max(waves * (s.block_queries * s.keys),
                            p.longest_block * (s.block_queries * s.longest), p.compute_norm) *
                 per_score;
  time.memory = p.memory_share * (s.operand_bytes / gpu.bandwidth);
  time.serving = served ? p.conversion * (s.rearranged_bytes / gpu.bandwidth) : T(0.0);
  if (served && s.causal) time.serving += p.cache_write * (s.key_value_bytes / gpu.bandwidth);
  time.launch = p.launch;
  time.total = time.launch + smooth_max(time.compute, time.memory, p.memory_norm) + time.serving;
  return time;
}

/// How much longer the backward pass takes than the forward one, by sequence length.
struct BackwardRatio {
  double at_2048 = 2.85;  ///< of 2048 keys
  double slope = 0.05;    ///< decrease of its logarithm per e-fold of keys

  double operator()(double keys) const { return at_2048 * std::pow(keys / 2048, -slope); }
};

/// How much longer FlashAttention of 2022 takes than FlashAttention-2, either direction.
struct Flash1Ratio {
  double log_at_64 = 0;     ///< logarithm of the ratio, head size 64, long sequences
  double per_doubling = 0;  ///< of the head size, added to the logarithm
  double at_512 = 0;        ///< taken off the logarithm at 512 keys, half of it at 1024

  double operator()(double keys, double head_dim) const {
    return std::exp(log_at_64 + per_doubling * std::log2(head_dim / 64) - at_512 * 512 / keys);
  }
};

}  // namespace tessera
