#pragma once

#include <cstdint>
#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Pooling of images [b, channels, height, width]. Overlapping windows are read once: neighbours
// meet in the cache.

struct PoolingWindow {
  std::int32_t window = 2;  ///< height and width
  std::int32_t stride = 2;
  std::int32_t padding = 0;
  bool rounds_up = false;  ///< `ceil_mode`: a window that starts in the image may reach beyond it
};

/// Size of the output along a dimension of `in` elements.
std::int64_t pooled_extent(std::int64_t in, const PoolingWindow& window);

/// nn.MaxPool2d: reads x, writes the maxima and their positions (8 bytes each). Backward: zero fill
/// and one kernel over gradient and positions. Saves x and the positions.
/// Source: PyTorch aten/src/ATen/native/cuda/DilatedMaxPool2d.cu.
Tensor max_pool2d(Tape& tape, const std::string& name, const Tensor& x,
                  const PoolingWindow& window);
/// nn.AvgPool2d: reads x, writes the means; backward the other way round. Saves x.
Tensor average_pool2d(Tape& tape, const std::string& name, const Tensor& x,
                      const PoolingWindow& window);
/// nn.AdaptiveAvgPool2d(size): as average_pool2d; backward with a zero fill. Of size 1 it is a mean
/// over each image, whose backward is a division by the number of its elements; saves nothing then.
/// Source: PyTorch aten/src/ATen/native/AdaptiveAveragePooling.cpp.
Tensor adaptive_average_pool2d(Tape& tape, const std::string& name, const Tensor& x,
                               std::int64_t size);

}  // namespace tessera
