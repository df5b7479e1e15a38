#include "predictor/gpu/gpu_traits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "hw/units/input_error.h"
#include "predictor/gpu/sm_rate.h"

namespace tessera {
namespace {

void require(double value, const GpuSpec& gpu, const char* figure, std::vector<Problem>& problems) {
  if (value > 0) return;
  problems.push_back({.where = "GPU " + gpu.id,
                      .what = std::string(figure) + " is missing",
                      .hint = "the kernel models need it; add it to the hardware description"});
}

/// Of other vendors 64 or 128, whichever the FP32 peak implies.
int lanes_per_sm(const GpuSpec& gpu) {
  if (const int known = lanes_of_sm(gpu); known > 0) return known;
  const double lane_rate = 2.0 * gpu.sm_count * gpu.boost_clock.value();
  return lane_rate > 0 && gpu.fp32.value() / lane_rate > 96 ? 128 : 64;
}

/// Vendors quote the FP32 peak at the highest clock, the dense tensor peak at the clock that they
/// expect with the whole chip busy. The two agree up to Ampere; Hopper's differ (1980, 1830 MHz).
double dense_clock_share(const GpuSpec& gpu) {
  if (gpu.tensor_clock.value() <= 0) return 1;
  const double fp32_clock =
      usable_peak(gpu, Precision::fp32).value() / (2.0 * gpu.sm_count * lanes_per_sm(gpu));
  return std::min(1.0, gpu.tensor_clock.value() / fp32_clock);
}

/// Per SM and clock: four schedulers start a warp of 32 lanes each, two on GP100; other vendors' as
/// many as there are lanes.
int lanes_started(const GpuSpec& gpu) {
  const bool four = gpu.vendor == "NVIDIA" && gpu.compute_capability != "6.0";
  return four ? 128 : lanes_per_sm(gpu);
}

SgemmFamily sgemm_family(Architecture architecture) {
  switch (architecture) {
    case Architecture::pascal:
      return SgemmFamily::maxwell;
    case Architecture::volta:
    case Architecture::turing:
      return SgemmFamily::volta;
    default:
      return SgemmFamily::ampere;
  }
}

}  // namespace

int efficiency_steps(Architecture architecture) {
  switch (architecture) {
    case Architecture::pascal:
      return 0;
    case Architecture::volta:
    case Architecture::turing:
      return 1;
    case Architecture::ampere:
    case Architecture::cdna1:
    case Architecture::cdna2:
      return 2;
    default:
      return 3;
  }
}

double efficiency_gain(int steps) {
  constexpr std::array<double, 4> kGain{1, 1.5, 2.46, 4.05};
  return kGain[static_cast<std::size_t>(std::clamp(steps, 0, 3))];
}

bool has_inline_ecc(const GpuSpec& gpu) {
  constexpr double kChips = 4.0 * (1LL << 30);  // boards come in multiples of it, or are told apart
  const auto shown = static_cast<double>(gpu.memory.value());
  const double share = shown / (kChips * std::ceil(shown / kChips));
  return !gpu.has_stacked_memory() && share > 0.925 && share < 0.945;
}

GpuTraits gpu_traits(const GpuSpec& gpu) {
  std::vector<Problem> problems;
  require(gpu.fp32.value(), gpu, "fp32 peak", problems);
  require(gpu.memory_bandwidth.value(), gpu, "memory bandwidth", problems);
  require(gpu.sm_count, gpu, "SM count", problems);
  require(static_cast<double>(gpu.l2.value()), gpu, "L2 size", problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  return {
      .flops = usable_peak(gpu, Precision::fp32).value(),
      .bandwidth = gpu.memory_bandwidth.value(),
      .l2 = static_cast<double>(gpu.l2.value()),
      .sms = static_cast<double>(gpu.sm_count),
      .instructions =
          static_cast<double>(gpu.sm_count) * lanes_started(gpu) * gpu.boost_clock.value(),
      .tdp = gpu.tdp.value(),
      .threads = gpu.max_threads_per_sm > 0 ? static_cast<double>(gpu.max_threads_per_sm) : 2048,
      .family = sgemm_family(gpu.architecture),
      .lanes_per_sm = lanes_per_sm(gpu),
      .dense_clock_share = dense_clock_share(gpu),
      .efficiency_steps = efficiency_steps(gpu.architecture),
      .hbm = gpu.has_stacked_memory(),
      .inline_ecc = has_inline_ecc(gpu)};
}

GpuTraits product_traits(const GpuSpec& gpu) {
  GpuTraits traits = gpu_traits(gpu);
  if (gpu.fp32_matrix.value() > 0) traits.flops = gpu.fp32_matrix.value();
  return traits;
}

}  // namespace tessera
