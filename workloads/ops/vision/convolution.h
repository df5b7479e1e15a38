#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Convolutions of images [b, channels, height, width], NCHW. What autograd saves is what PyTorch's
// formulas name (tools/autograd/derivatives.yaml).

struct ConvolutionLayer {
  std::int64_t out_channels = 0;
  std::int32_t window = 1;  ///< height and width of the filter
  std::int32_t stride = 1;
  std::int32_t padding = 0;  ///< on each side
  bool bias = false;
  std::int32_t window_width = 0;   ///< 0: as `window`
  std::int32_t padding_width = 0;  ///< of a filter with its own width
  std::int64_t groups = 1;         ///< equal parts of the channels, each with filters of its own
};

/// nn.Conv2d: one library call of 2 b out_height out_width out_channels in_channels window^2 /
/// groups FLOPs, and one kernel that adds a bias in place. Backward: data gradient (where `x` needs
/// one), weight gradient, column sum for the bias; a gradient with gaps is copied first. Saves x.
/// Source: PyTorch aten/src/ATen/native/Convolution.cpp, convolution_backward. Where the
/// tape reorders images, every pass on tensor cores copies its operands, and in 16 bit its result,
/// but forward products of single pixels and convolutions in groups (cuDNN's nchwToNhwc and
/// nhwcToNchw, and kernels of tf32 named nhwckrsc_nchw, as profiles show them; recalled).
Tensor conv2d(Tape& tape, const std::string& name, const Tensor& x, const ConvolutionLayer& layer);

/// nn.ConvTranspose2d with a bias whose windows lie side by side (stride = `window`): the image
/// grows by `window`. Forward is the data gradient of such a convolution, its data gradient is the
/// convolution. Saves x.
Tensor conv_transpose2d(Tape& tape, const std::string& name, const Tensor& x,
                        std::int64_t out_channels, std::int32_t window);

}  // namespace tessera
