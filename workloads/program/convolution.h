#pragma once

#include <cstdint>

#include "hw/units/precision.h"
#include "workloads/program/kernel.h"

namespace tessera {

/// A 2-D convolution of NCHW images, no dilation, no bias. Windows are square unless they have a
/// width of their own.
struct Convolution {
  std::int64_t batch = 1;
  std::int64_t in_channels = 0, out_channels = 0;
  std::int64_t height = 0, width = 0;  ///< of one input image [elements]
  std::int32_t window = 1;             ///< height and width of the filter
  std::int32_t stride = 1;
  std::int32_t padding = 0;        ///< on each side
  std::int32_t window_width = 0;   ///< 0: as `window`
  std::int32_t padding_width = 0;  ///< left and right, of a window with its own width
  /// Equal parts of the channels, each convolved by itself; divides both numbers of channels.
  std::int64_t groups = 1;

  std::int32_t columns_of_window() const { return window_width > 0 ? window_width : window; }

  /// Size of the output; below 1 where the window does not fit into the padded image.
  std::int64_t out_height() const;
  std::int64_t out_width() const;
};

/// What a convolution computes. Only the forward direction was ever timed; the gradients do the
/// same arithmetic on the same three tensors, and are predicted like it.
enum class ConvolutionPass : std::uint8_t {
  forward,          ///< input, weight -> output
  data_gradient,    ///< output gradient, weight -> input gradient
  weight_gradient,  ///< input, output gradient -> weight gradient
};

/// The kernel of one pass: a batch of g = `groups` products of m = batch * out_height * out_width,
/// n = out_channels / g, k = in_channels / g * window^2 of the forward product in all three,
/// 2*g*m*n*k FLOPs, each tensor moved once; the layout tells the passes apart as for a linear layer
/// (tn, nn, nt). Needs an output of at least 1x1. The elements of a window that is not square count
/// as channels of a 1x1 window: as many products, and no algorithm of square windows.
Kernel convolution_kernel(const Convolution& convolution,
                          ConvolutionPass pass = ConvolutionPass::forward,
                          Precision precision = Precision::fp32);

}  // namespace tessera
