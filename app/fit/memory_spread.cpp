#include "app/fit/memory_spread.h"

#include <array>
#include <cmath>
#include <string_view>

namespace tessera {
namespace {

/// Measured: quantiles of measured over simulated peaks (227 rows of five sources, each of the same
/// weight), so far out that of the peaks of a source that is left out four in five lie between them
/// on average: results/validation/memory_spread.txt, made by tools/memory_spread.
constexpr double kMeasuredLow = 0.932;
constexpr double kMeasuredHigh = 1.069;

/// Measured likewise, of profile nanotron: 1,029 peaks of one source, whose four sizes of model
/// stand for sources: results/validation/memory_spread_nanotron.txt, made by tools/memory_spread
/// --by model.
constexpr double kNanotronLow = 0.939;
constexpr double kNanotronHigh = 1.137;

/// Judged: profiles of which the five sources have no peak are given twice the error of those with
/// some. Their tensors are counted by the same rules, held to the last byte against PyTorch's own
/// (tests/pytorch); what their allocator and libraries add was not measured by any of the five.
constexpr double kJudgedWidening = 2;

/// Profiles that the peaks were measured with.
constexpr std::array<std::string_view, 6> kMeasuredProfiles{
    "megatron", "megatron-2022", "megatron-local", "megatron-deepspeed", "oneflow", "torchtitan"};

bool is_measured(const std::string& profile) {
  for (const std::string_view measured : kMeasuredProfiles)
    if (profile == measured) return true;
  return false;
}

Bytes scaled_bytes(Bytes bytes, double factor) {
  return Bytes(std::llround(static_cast<double>(bytes.value()) * factor));
}

}  // namespace

Bytes MemorySpread::low_of(Bytes simulated) const {
  return scaled_bytes(simulated, low);
}
Bytes MemorySpread::high_of(Bytes simulated) const {
  return scaled_bytes(simulated, high);
}

MemorySpread memory_spread(const Scenario& scenario) {
  const std::string& profile = scenario.step.framework.name;
  const bool trains = scenario.step.mode == StepMode::training;
  if (trains && is_measured(profile))
    return {kMeasuredLow, kMeasuredHigh, "from 227 measured peaks of five sources"};
  if (trains && profile == "nanotron")
    return {kNanotronLow, kNanotronHigh, "from 1,029 measured peaks of nanotron's jobs"};
  return {std::pow(kMeasuredLow, kJudgedWidening), std::pow(kMeasuredHigh, kJudgedWidening),
          "judged, twice that of five sources of measured peaks: none of them ran profile " +
              profile + (trains ? "" : " without an optimizer")};
}

FitVerdict verdict_of(Bytes needed, Bytes capacity, const MemorySpread& spread) {
  if (spread.high_of(needed) <= capacity) return FitVerdict::fits;
  return spread.low_of(needed) > capacity ? FitVerdict::does_not_fit : FitVerdict::within_error;
}

std::string text_of(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::fits:
      return "fits";
    case FitVerdict::within_error:
      return "within the error";
    case FitVerdict::does_not_fit:
      return "does not fit";
  }
  return "";
}

}  // namespace tessera
