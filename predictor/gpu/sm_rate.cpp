#include "predictor/gpu/sm_rate.h"

#include <algorithm>

#include "hw/units/text.h"

namespace tessera {
namespace {

/// Quoted peaks are rounded: B200's is 0.74 % above that of its SMs.
constexpr double kRounding = 1.01;

/// Multiplications and additions of 16-bit operands that an SM's tensor cores do per clock, dense;
/// from the peaks and clocks of configs/hw/gpus. 0 where there are none.
double tensor_flops_of_sm(const GpuSpec& gpu) {
  switch (gpu.architecture) {
    case Architecture::volta:
    case Architecture::turing:
    case Architecture::ada:
      return 1024;
    case Architecture::ampere:
      return gpu.compute_capability == "8.0" ? 2048 : 1024;
    case Architecture::hopper:
      return 4096;
    case Architecture::blackwell:
      return gpu.compute_capability.starts_with("12.") ? 1024 : 8192;
    case Architecture::blackwell_ultra:
      return 8192;
    default:
      return 0;
  }
}

/// Bytes of an operand on the tensor cores, which take fp4 two a byte.
double operand_bytes(const GpuSpec& gpu, Precision precision) {
  if (precision != Precision::fp4) return static_cast<double>(element_bytes(precision));
  constexpr double kUltra = 1.5;  // times as fast in fp4 as twice fp8 (NVIDIA's data sheets)
  return gpu.architecture == Architecture::blackwell_ultra ? 0.5 / kUltra : 0.5;
}

/// 0 = not known.
FlopsPerSecond peak_of_sms(const GpuSpec& gpu, Precision precision) {
  const bool fp32 = precision == Precision::fp32;
  const bool quoted_apart = !fp32 && gpu.tensor_clock.value() > 0;
  const double clock = quoted_apart ? gpu.tensor_clock.value() : gpu.boost_clock.value();
  const double per_clock =
      fp32 ? 2.0 * lanes_of_sm(gpu) : tensor_flops_of_sm(gpu) * 2 / operand_bytes(gpu, precision);
  return FlopsPerSecond(per_clock * clock * gpu.sm_count);
}

}  // namespace

int lanes_of_sm(const GpuSpec& gpu) {
  if (gpu.vendor != "NVIDIA") return 0;
  const std::string& version = gpu.compute_capability;
  const bool narrow = gpu.architecture == Architecture::volta ||
                      gpu.architecture == Architecture::turing || version == "6.0" ||
                      version == "8.0";
  return narrow ? 64 : 128;
}

double exponentials_of_sm(const GpuSpec& gpu) {
  return gpu.architecture == Architecture::blackwell_ultra ? 2 * kUsualExponentials
                                                           : kUsualExponentials;
}

FlopsPerSecond usable_peak(const GpuSpec& gpu, Precision precision) {
  const FlopsPerSecond stated = gpu.peak(precision);
  if (gpu.vendor != "NVIDIA") return stated;
  const FlopsPerSecond sms = peak_of_sms(gpu, precision);
  return sms.value() > 0 ? std::min(stated, sms * kRounding) : stated;
}

double held_share(const GpuSpec& gpu, Precision precision) {
  constexpr double kHeld = 0.75;  // of the catalog none lies between 0.51 and 0.95
  if (gpu.vendor != "NVIDIA" || precision == Precision::fp32) return 1;
  const double sms = peak_of_sms(gpu, precision).value();
  const double share = sms > 0 ? gpu.peak(precision).value() / sms : 1;
  return share > 0 && share <= kHeld ? share : 1;
}

std::optional<std::string> note_on_peak(const GpuSpec& gpu, Precision precision) {
  const FlopsPerSecond stated = gpu.peak(precision);
  if (usable_peak(gpu, precision) >= stated) return std::nullopt;
  return std::string(name_of(precision)) + " peak of " + to_text(stated) + ": the " +
         std::to_string(gpu.sm_count) + " SMs do " + to_text(peak_of_sms(gpu, precision)) +
         " at the stated clock, so products run at that";
}

std::optional<std::string> note_on_watts(const GpuSpec& gpu) {
  if (gpu.tdp.value() > 0) return std::nullopt;
  return gpu.id +
         " states no board power (tdp): products run as if power held none back, which long ones "
         "of most cards cannot";
}

}  // namespace tessera
