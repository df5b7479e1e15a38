#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hw/gpu.h"
#include "predictor/tensor/tensor_gemm_model.h"
#include "predictor/tensor/tensor_shift.h"
#include "predictor/tensor/tensor_weights.h"

namespace tessera {

/// Everything that the half-precision model needs of one GPU, and how it came about.
struct TensorEffect {
  TensorGpuEffect<double> gpu{};
  TensorStackEffect<double> stack{};
  double fixed_costs = 1;   ///< what starting kernels and joining slices takes, against the source
  bool measured = false;    ///< false: by the rule for unseen GPUs, or of tf32 and fp8
  bool of_steps = false;    ///< measured by whole steps, in an overlay
  double spread = 0;        ///< of log time, common to all kernels of the GPU
  double long_spread = 0;   ///< of one kernel of 50 us and longer
  double short_spread = 0;  ///< of one below
  std::string reason;       ///< which GPU, library and rule, in words
  std::string never_timed;  ///< what stands in for missing measurements; empty = none missing
};

/// The measured effect of `gpu`, else by rule: slowdowns of the measured GPU whose generation is
/// nearest (the older one of two), its libraries' mean whole-wave share, and a wider spread.
/// `stack`: the library; empty = unknown, the mean of those measured on that GPU. Throws InputError
/// where `gpu` has no tensor cores for `precision`, and for an unknown library.
TensorEffect tensor_effect(const GpuSpec& gpu, Precision precision, const TensorWeights& weights,
                           std::string_view stack = {});

/// Makes the power limit that of a GPU which has been busy for long: the rate that products hold in
/// the longest calls that were timed (0.1 s), for products of any duration. Spreads it as far as
/// the timed sessions differ there.
void put_under_load(TensorEffect& effect);

/// Corrects an effect under load by `shift`; what remains uncertain is then how sessions of one GPU
/// differ.
void calibrate(TensorEffect& effect, const TensorShift& shift);

/// Mean of the libraries measured on `gpu`, weighted by the root of their rows; without their own
/// slowdowns, as for a library that nobody measured.
TensorStackEffect<double> unknown_stack(const TensorWeights& weights, std::string_view gpu);

}  // namespace tessera
