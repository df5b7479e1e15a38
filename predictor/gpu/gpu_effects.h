#pragma once

#include "predictor/weights/weights.h"

namespace tessera {

/// The effect of `gpu`: its own if it was measured, that of a board with the same die, else
/// `weights.rule` on architecture facts:
/// - GEMM slowdown: as `ComputeRule` says;
/// - bandwidth: mean of the measured GPUs with the same kind of memory (HBM or not), Pascal and
///   later GPUs apart; later cards without HBM, of 100 W and more: as HBM, less the check bits;
/// - sustained rate: kappa * (TDP - idle) * efficiency gain of the generation, kappa from the
///   power-limited GPUs that were measured, of the nearest generation that has one.
GpuEffect effect_for(const GpuSpec& gpu, const PredictorWeights& weights);

/// As `effect_for`, but by the rule alone even where `gpu` was measured.
GpuEffect effect_by_rule(const GpuSpec& gpu, const PredictorWeights& weights);

/// Sustained FLOP/s per watt above idle of a Pascal card: geometric mean over the power-limited
/// GPUs of `gpus`, but no less than the others prove by the rate that they hold without a limit. 0
/// where no GPU is power-limited.
double power_kappa(const std::vector<TrainedGpu>& gpus);

/// Power-limited GEMM rate of a card of `tdp_watts`, idle power off [FLOP/s]; 0 = no limit.
double sustained_flops(double kappa, double tdp_watts, int efficiency_steps);

}  // namespace tessera
