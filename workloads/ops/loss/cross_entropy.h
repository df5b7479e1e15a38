#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// F.cross_entropy over logits [tokens, V] with labels for every token (no shift): log_softmax and
/// a small gather; backward: zero fill (e per logit), scatter, log_softmax backward (3e). Saves the
/// log-probabilities.
Tensor cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                     const Tensor& labels);

/// F.cross_entropy over logits [b, classes, h, w] with a label per pixel: the same operators, whose
/// softmax runs over pixels with a class per plane (2e; 3e), as pointwise kernels do.
Tensor pixel_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                           const Tensor& labels);

}  // namespace tessera
