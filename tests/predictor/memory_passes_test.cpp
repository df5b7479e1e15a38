#include <cmath>

#include <gtest/gtest.h>

#include "predictor/fp32/memory_table.h"

namespace tessera {
namespace {

constexpr double kMiB = 1 << 20;

GpuTraits gpu_with(double l2) {
  return {.bandwidth = 300e9, .l2 = l2, .sms = 58, .threads = 1536};
}

/// Half of the traffic misses where it is as large as the L2.
MemoryParameters<double> parameters() {
  return {.l2_centre = 0,
          .l2_slope = 4,
          .l2_speedup = 2,
          .softmax_row = 0,
          .layer_norm_row = 0,
          .wide_softmax = std::log(1.2),
          .launch_share = {}};
}

constexpr std::array<double, kMemoryClasses> kByRule{0.1, 0.3, 0.5};

MemoryShape rows_of(MemoryClass memory_class, double cols) {
  return {.memory_class = memory_class,
          .bytes = 2 * 4 * 65536 * cols,
          .rows = 65536,
          .wide = cols > 1024};
}

TEST(SecondPasses, ANormReadsItsRowsAgainFromWhatHoldsThem) {
  // 58 SMs with 12 blocks each work on 696 rows of 16 KiB, 10.9 MiB.
  const MemoryShape norm = rows_of(MemoryClass::layer_norm, 4096);
  const auto slowdown = [&](double l2) {
    return slowdown_of_passes(norm, gpu_with(l2), parameters(), kByRule);
  };
  EXPECT_NEAR(slowdown(1024 * kMiB), 0.1, 1e-6);                     // one read, one write
  EXPECT_NEAR(slowdown(10.875 * kMiB), 0.1 + std::log(1.25), 1e-9);  // half of the second read
  EXPECT_NEAR(slowdown(0.5 * kMiB), 0.1 + std::log(1.5), 1e-4);      // two reads, one write
}

TEST(SecondPasses, SoftmaxTakesTheRule) {
  for (const double cols : {1024.0, 2048.0}) {
    const MemoryShape softmax = rows_of(MemoryClass::softmax, cols);
    EXPECT_DOUBLE_EQ(slowdown_of_passes(softmax, gpu_with(48 * kMiB), parameters(), kByRule), 0.3);
  }
}

TEST(SecondPasses, TheTableTakesThemForGpusByRuleAlone) {
  const MemoryShape norm = rows_of(MemoryClass::layer_norm, 4096);
  const GpuTraits gpu = gpu_with(48 * kMiB);
  const MemoryTable measured(parameters(), gpu, kByRule);
  const MemoryTable by_rule(parameters(), gpu, kByRule, true);
  const double own = slowdown_of_passes(norm, gpu, parameters(), kByRule);
  EXPECT_NEAR(by_rule.seconds(norm) / measured.seconds(norm), std::exp(own - 0.5), 1e-12);
}

}  // namespace
}  // namespace tessera
