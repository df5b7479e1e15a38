#include "predictor/fp32/memory_table.h"

#include <cmath>

namespace tessera {
namespace {

constexpr auto kElementwiseClass = static_cast<std::size_t>(MemoryClass::elementwise);
constexpr auto kSoftmaxClass = static_cast<std::size_t>(MemoryClass::softmax);
constexpr auto kLayerNormClass = static_cast<std::size_t>(MemoryClass::layer_norm);

}  // namespace

MemoryTable::MemoryTable(const MemoryParameters<double>& parameters, const GpuTraits& gpu,
                         const std::array<double, kMemoryClasses>& slowdown, bool by_rule)
    : parameters_(parameters),
      gpu_(gpu),
      slowdown_(slowdown),
      by_rule_(by_rule),
      wide_softmax_(std::exp(parameters.wide_softmax)),
      bytes_at_l2_centre_(gpu.l2 * std::exp(parameters.l2_centre)),
      l2_slope_(parameters.l2_slope),
      hit_share_(1 / parameters.l2_speedup) {
  for (std::size_t c = 0; c < kMemoryClasses; ++c)
    seconds_per_byte_[c] = std::exp(slowdown[c]) / gpu.bandwidth;
  bytes_per_row_[kSoftmaxClass] = parameters.softmax_row;
  bytes_per_row_[kLayerNormClass] = parameters.layer_norm_row;
}

double MemoryTable::own_seconds_per_byte(const MemoryShape& shape) const {
  if (by_rule_ && shape.memory_class != MemoryClass::elementwise)
    return std::exp(slowdown_of_passes(shape, gpu_, parameters_, slowdown_)) / gpu_.bandwidth;
  return seconds_per_byte_[static_cast<std::size_t>(shape.memory_class)];
}

double MemoryTable::seconds(const MemoryShape& shape) const {
  const auto c = static_cast<std::size_t>(shape.memory_class);
  double traffic = shape.bytes - shape.extra_bytes + bytes_per_row_[c] * shape.rows;
  if (shape.refetched > 0) traffic += miss_share(shape.reuse_footprint) * shape.refetched;
  double own = traffic * own_seconds_per_byte(shape);
  if (c == kSoftmaxClass && shape.wide) own *= wide_softmax_;
  const double extra = shape.extra_bytes * seconds_per_byte_[kElementwiseClass];
  const double miss = miss_share(shape.bytes);
  return (own + extra) * (miss + (1 - miss) * hit_share_);
}

double MemoryTable::miss_share(double footprint) const {
  const double hits_per_miss = std::exp(-l2_slope_ * std::log(footprint / bytes_at_l2_centre_));
  return 1 / (1 + hits_per_miss);
}

}  // namespace tessera
