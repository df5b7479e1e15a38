#include "predictor/attention/served_traffic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "predictor/held_in_l2.h"

namespace tessera {
namespace {

// As of memory-bound kernels in 16 bit: a plain copy reaches this share of the bandwidth on any
// card (Azure/AI-benchmarking-guide), and how sharply one limit takes over from the other is a
// judgement.
constexpr double kReachable = 0.86, kSharpness = 4;
/// Read and written, so of twice the bytes of Q.
constexpr double kPasses = 2;

/// Of a block per sequence and head on one SM, from TensorRT-LLM's calls of one token on H100
/// (measurements/kernels/attention.csv): 22 ns per sequence and head, of which the attention 11.
constexpr double kBlockSeconds = 1.5e-6;

/// Facts of a GPU whose attention was measured (configs/hw/gpus).
struct Source {
  std::string_view gpu;
  double bandwidth;  ///< [B/s]
  double issue;      ///< SMs x clock [Hz]
};
constexpr std::array kSources{Source{"A100-SXM4-80GB", 2039e9, 108 * 1410e6},
                              Source{"H100-SXM5-80GB", 3350e9, 132 * 1980e6}};

double joined(double a, double b) {
  return std::pow(std::pow(a, -kSharpness) + std::pow(b, -kSharpness), -1 / kSharpness);
}

double issue_of(const GpuSpec& gpu) {
  return gpu.sm_count * gpu.boost_clock.value();
}

}  // namespace

double served_bandwidth(const GpuSpec& gpu, const AttentionShape& shape) {
  const double memory = gpu.memory_bandwidth.value();
  const bool held = shape.operand_bytes <= kHeldShare * static_cast<double>(gpu.l2.value());
  return held ? std::max(memory, kL2PerClock * issue_of(gpu)) : memory;
}

double moved_conversion(double conversion, std::string_view source, const GpuSpec& gpu,
                        double bandwidth) {
  const auto* from = std::ranges::find(kSources, source, &Source::gpu);
  if (from == kSources.end() || !(conversion > 0) || !(issue_of(gpu) > 0)) return conversion;
  const double rate = from->bandwidth / conversion;  // bytes of Q per second
  const double limit = kReachable / kPasses;
  const double rest = std::pow(rate, -kSharpness) - std::pow(limit * from->bandwidth, -kSharpness);
  if (rest <= 0) return conversion;  // memory is all that limits it
  const double issued = std::pow(rest, -1 / kSharpness) * issue_of(gpu) / from->issue;
  return bandwidth / joined(issued, limit * bandwidth);
}

double rearrangement_of_blocks(const AttentionShape& shape, const GpuSpec& gpu) {
  return shape.sequence_heads * kBlockSeconds / static_cast<double>(gpu.sm_count);
}

}  // namespace tessera
