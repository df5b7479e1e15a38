#pragma once

#include <vector>

#include "lab/fit/train.h"

namespace tessera {

/// Trains once without each GPU and scores its training rows with what the rules for unseen GPUs
/// say. Forms: "roofline", "tessera"; with baselines also "regression", "free_mlp"
/// (training/baselines) and "neusight". Ops: name of the operator over all its rows, "<op> >=1ms"
/// over the long ones, which decide the time of a step, and "conv2d fresh" over the first 1000
/// convolutions of the GPU: the launch floor of the timing process rose later.
std::vector<LogoScore> leave_one_gpu_out(const Folds& folds, const TrainOptions& options);

}  // namespace tessera
