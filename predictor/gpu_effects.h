#pragma once

#include "predictor/weights.h"

namespace tessera {

/// The effect of `gpu`: its own if it was measured, that of a board with the same die, else a rule
/// from architecture facts:
/// - GEMM: mean of the measured GPUs since Volta without a power limit, plus the loss of 128 lanes
///   per SM (P4 against P100) and of the clock of dense load where `gpu` has them;
/// - bandwidth: mean of the measured GPUs with the same kind of memory (HBM or not), Pascal and
///   later GPUs apart;
/// - sustained rate: kappa * (TDP - idle) * 1.5^(efficiency steps after Pascal).
GpuEffect effect_for(const GpuSpec& gpu, const PredictorWeights& weights);

/// Power-limited GEMM rate of a card [FLOP/s].
double sustained_flops(double kappa, double tdp_watts, int efficiency_steps);
/// Sustained FLOP/s per watt that a measured limit corresponds to; inverse of `sustained_flops`.
double power_kappa(double flops, double tdp_watts, int efficiency_steps);

}  // namespace tessera
