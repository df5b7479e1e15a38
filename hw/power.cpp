#include "hw/power.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr double kIdleShare = 0.15;

constexpr double kSlowestClock = 0.05;

}  // namespace

Watts idle_power(const GpuSpec& gpu) {
  return gpu.idle_power.value() > 0 ? gpu.idle_power : gpu.tdp * kIdleShare;
}

Watts busy_power(const GpuSpec& gpu) {
  return gpu.busy_power.value() > 0 ? gpu.busy_power : gpu.tdp;
}

double dynamic_power_share(double clock, const PowerCurve& curve) {
  const double floor = curve.voltage_floor;
  return clock * (floor + (1 - floor) * std::pow(clock, curve.voltage_rise));
}

double clock_under_cap(Watts idle, Watts busy, Watts cap, const PowerCurve& curve) {
  const Watts mean = cap * curve.mean_of_cap;
  if (mean >= busy || busy <= idle) return 1;
  const double allowed = (mean - idle) / (busy - idle);
  double low = kSlowestClock, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    (dynamic_power_share(middle, curve) > allowed ? high : low) = middle;
  }
  return low;
}

double clock_share(const GpuSpec& gpu) {
  if (gpu.power_limit.value() <= 0) return 1;
  return clock_under_cap(idle_power(gpu), busy_power(gpu), gpu.power_limit);
}

GpuSpec at_power_limit(GpuSpec gpu) {
  const double share = clock_share(gpu);
  if (share == 1) return gpu;
  for (Hertz* clock : {&gpu.boost_clock, &gpu.tensor_clock}) *clock *= share;
  for (FlopsPerSecond* peak : {&gpu.fp32, &gpu.fp32_matrix, &gpu.tf32, &gpu.bf16, &gpu.fp16,
                               &gpu.fp8, &gpu.int8, &gpu.fp4})
    *peak *= share;
  return gpu;
}

}  // namespace tessera
