#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "predictor/kernel_predictor.h"
#include "predictor/product_format.h"
#include "predictor/tensor/tensor_effect.h"
#include "predictor/tensor/tensor_weights.h"

namespace tessera {

/// Dense products on the tensor cores of one GPU: of bf16 and fp16 operands as measured, of tf32
/// and fp8 with the same parameters at their own peaks. Pure and deterministic; safe to share
/// between threads.
///
/// Grouped products: the tiles of all groups fill the waves together, and none ends before its
/// longest group alone would. One group is the plain product, equal groups are the batched one.
///
/// Under load the power limit is felt by every product, however short; timed by itself only by long
/// ones (docs/decisions/0027-power-under-load.md).
///
/// A GPU that is held to a part of what its SMs could do (`held_share`) waits for its tensor cores
/// alone: everything else of a product goes as fast as with all of them, beside it. So do tf32
/// products on Hopper whose contraction does not lie side by side in both operands (decision 72).
///
/// Durations leave out what a kernel takes to start and drain (`launch_seconds`, inside every
/// measured row). Layouts other than `tn` were never
/// timed: the data and weight gradients take the same constants, with a wider spread.
class TensorGemmPredictor {
 public:
  /// `stack`: the library, one of those in `weights`; empty = unknown. Throws InputError where the
  /// GPU has no tensor cores for `precision`, or states no dense peak of it.
  TensorGemmPredictor(const GpuSpec& gpu, Precision precision, const TensorWeights& weights,
                      std::string_view stack = {}, Load load = Load::isolated);

  /// Corrects every prediction by what an overlay says.
  void calibrate(const TensorShift& shift) { tessera::calibrate(effect_, shift); }

  /// Calls go through `sets` sets of operands in turn, as benchmarks do: those that the L2 holds
  /// come from there. 0: cold caches, as behind the other kernels of a step. Never makes a product
  /// slower.
  void keep_warm(int sets) { warm_sets_ = sets; }

  /// No contraction is split over thread blocks, as some kernels never do.
  void keep_whole() { whole_ = true; }

  /// Makes products take e^`loss.tiles` of their time on the units, power-limited ones
  /// e^`loss.power`.
  void slow_down(const ProductLoss& loss) {
    effect_.stack.compute += loss.tiles;
    effect_.gpu.cap += loss.power - loss.tiles;  // the limit feels the first, too
  }

  /// Products of the predictor's precision.
  bool covers(const Kernel& kernel) const;
  /// `waves` and tile of the fastest choice. `spread` widens for GPUs, formats, layouts, batches
  /// and sizes that were not measured. Throws std::invalid_argument for kernels not covered.
  KernelPrediction predict(const Kernel& kernel) const;
  Seconds duration(const Kernel& kernel) const { return predict(kernel).duration; }
  /// Start and drain of a kernel; adds to a duration where nothing else hides it.
  Seconds launch_seconds() const { return Seconds(effect_.stack.launch_seconds); }

  const TensorEffect& effect() const { return effect_; }
  /// Of all its tensor cores, where it is held to less.
  const TensorTraits& traits() const { return traits_; }
  const TensorParameters<double>& shared() const { return shared_; }
  /// What the prediction of `kernel` rests on and what of it was never measured, in words.
  std::string reason(const Kernel& kernel) const;
  /// What of it was never measured, a line each, as KernelPredictor::notes.
  std::vector<std::string> notes(const Kernel& kernel) const;

 private:
  double seconds(const Kernel& kernel, const TensorShape& shape) const;
  LogSpread spread_of(const Kernel& kernel, double timed_seconds,
                      const Extrapolation& beyond) const;

  TensorShape shape_of(const Kernel& kernel) const;
  TensorTraits traits_for(const TensorShape& shape) const;
  /// Share of traits_.flops that the instructions for `kernel` reach, in (0, 1].
  double reached_share(const Kernel& kernel) const;

  std::string gpu_;
  Precision precision_;
  double held_;          ///< share of traits_.flops that the GPU is held to, in (0, 1]
  double other_orders_;  ///< the same of orders other than tn
  TensorTraits traits_, warm_traits_;
  double l2_ = 0;  ///< [B]
  int warm_sets_ = 0;
  bool whole_ = false;
  TensorEffect effect_;
  TensorParameters<double> shared_;
  GemmRange range_;
};

}  // namespace tessera
