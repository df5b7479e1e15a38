#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// Of `wide` [s, b, 3 h], which holds two gates and x: a product with the first gate, a causal
/// convolution of 3 positions per channel without a bias, and a product with the second gate: three
/// kernels; backward five, and the parts' gradients beside each other. No copy: the convolution
/// reads channels that lie beside each other. Saves gates, x, and what the convolution reads and
/// gives. Sources: transformers models/lfm2/modeling_lfm2.py, Lfm2ShortConv;
/// Dao-AILab/causal-conv1d (both recalled).
Tensor gated_short_convolution(Tape& tape, const std::string& name, const Tensor& wide);

}  // namespace tessera
