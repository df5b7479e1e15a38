#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// A squeeze-and-excitation block: one factor per image and channel, in (0, 1), from the means of
/// all channels: linear to channels / `reduction`, ReLU, linear back, sigmoid. The linear layers
/// have biases. [b, channels, h, w] -> [b, channels, 1, 1]
/// Source: Hu et al., "Squeeze-and-Excitation Networks", 2018, with its reduction of 16.
Tensor squeeze_excitation(Tape& tape, const std::string& name, const Tensor& x,
                          std::int64_t reduction);

/// torch.addcmul: residual + x * factors [b, channels, 1, 1] in one kernel, 3e. Backward: the
/// residual's gradient as it comes; one kernel of 2e for x; three for the factors (x times 1, times
/// gradient, sum over each image), 6e. Saves x and the factors.
/// Source: PyTorch tools/autograd/derivatives.yaml, addcmul.
Tensor add_scaled(Tape& tape, const std::string& name, const Tensor& residual, const Tensor& x,
                  const Tensor& factors);

}  // namespace tessera
