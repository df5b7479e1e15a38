#include "predictor/tensor/tensor_effect.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_traits.h"
#include "predictor/gpu/sm_rate.h"
#include "predictor/judged_spreads.h"

namespace tessera {
namespace {

constexpr double kLowPowerWatts = 100;
// What a card with a share p of the watts per FLOP/s keeps of the power-limited rate, p^exponent.
// Dynamic power goes with frequency times voltage squared, and voltage with frequency: 1/3, for
// boards of one die at any load, and for short calls of any. Another die that is kept busy saves
// few joules per FLOP, which would be 1; of 1/3, 2/3, 0.8 and 1 long products choose (decision 40).
constexpr double kSameDie = 1.0 / 3, kOtherDieUnderLoad = 0.8;

// Calls of this length [s] are the longest on either GPU. The limit acts within tens of
// milliseconds, so they feel it all the time, as a step does (decision 27).
constexpr double kUnderLoad = 0.1;

/// Of a card that is held to a part of its tensor cores at the rate of all of them, at which its
/// products are timed: halving a peak alone saves no power.
double watts_per_flops(const GpuSpec& gpu, Precision precision, const TensorTraits& traits) {
  return gpu.tdp.value() / traits.flops * held_share(gpu, precision);
}

int generations_apart(Architecture a, Architecture b) {
  return std::abs(static_cast<int>(a) - static_cast<int>(b));
}

/// Of `watts` per FLOP/s, what counts beside those of `source`: an older process takes more joules
/// for a FLOP. A newer one is not taken to need fewer: cards of Ada need as many as A100.
double watts_at_process(double watts, Architecture own, Architecture source) {
  const int steps = efficiency_steps(own), of_source = efficiency_steps(source);
  return steps < of_source ? watts * efficiency_gain(steps) / efficiency_gain(of_source) : watts;
}

const TensorGpuWeights& nearest(const TensorWeights& weights, Architecture architecture) {
  return *std::ranges::min_element(weights.gpus, {}, [&](const TensorGpuWeights& gpu) {
    // Of two as near, the older one.
    return std::pair(generations_apart(gpu.architecture, architecture), gpu.architecture);
  });
}

std::string known_stacks(const TensorGpuWeights& gpu) {
  std::string names;
  for (const TensorStackWeights& stack : gpu.stacks)
    names += (names.empty() ? "" : ", ") + stack.name;
  return names;
}

TensorStackEffect<double> mean_stack(const TensorGpuWeights& gpu) {
  double weights = 0;
  TensorStackEffect<double> mean{};
  for (const TensorStackWeights& stack : gpu.stacks) {
    const double weight = std::sqrt(static_cast<double>(stack.rows));
    weights += weight;
    mean.quantisation += weight * stack.effect.quantisation;
    mean.launch_seconds += weight * stack.effect.launch_seconds;
  }
  mean.quantisation /= weights;
  mean.launch_seconds /= weights;
  return mean;
}

/// NVIDIA's generation of about the same process: Hopper for CDNA3 and later, else Ampere.
Architecture contemporary(Architecture other_vendor) {
  const bool later = efficiency_steps(other_vendor) > efficiency_steps(Architecture::ampere);
  return later ? Architecture::hopper : Architecture::ampere;
}

bool sixteen_bits(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16;
}

/// tf32 and fp8: the slowdowns of 16-bit products, at the peak of the format.
void use_other_width(Precision precision, TensorEffect& effect) {
  effect.measured = false;
  effect.spread =
      std::hypot(effect.spread, precision == Precision::fp8 ? judged::kFp8 : judged::kTf32);
  effect.reason = "never timed: slowdowns of 16-bit products (" + effect.reason +
                  ") at the peak of " + std::string(name_of(precision));
  effect.never_timed +=
      (effect.never_timed.empty() ? "" : ", ") + std::string("16-bit products' share of the peak");
}

void use_measured(const TensorGpuWeights& gpu, Precision precision, std::string_view stack,
                  TensorEffect& effect) {
  effect.measured = true;
  effect.reason = "measured on " + gpu.gpu;
  if (stack.empty()) {
    effect.stack = mean_stack(gpu);
    effect.spread = gpu.stack_spread;
    effect.reason += ", mean of the libraries " + known_stacks(gpu);
  } else {
    const auto found = std::ranges::find(gpu.stacks, stack, &TensorStackWeights::name);
    if (found == gpu.stacks.end())
      throw InputError({.where = "GPU " + gpu.gpu,
                        .what = "library '" + std::string(stack) + "' was not measured",
                        .hint = "one of " + known_stacks(gpu) + ", or none for their mean"});
    effect.stack = found->effect;
    effect.reason += ", library " + found->name;
  }
  const bool timed = std::ranges::any_of(gpu.stacks, [&](const TensorStackWeights& own) {
    return own.precision == precision && (stack.empty() || own.name == stack);
  });
  if (timed || !sixteen_bits(precision)) return;
  effect.never_timed = "as the other 16-bit format";
  effect.spread = std::hypot(effect.spread, judged::kOtherPrecision);
  effect.reason +=
      "; " + std::string(name_of(precision)) + " was not timed there, as the other 16-bit format";
}

bool is_of_die(const GpuSpec& gpu, const TensorGpuWeights& source) {
  return !gpu.die.empty() && gpu.die == source.die;
}

/// `fewer`: log of the watts per FLOP/s of the source over those of the GPU, > 0.
void use_fewer_watts(double fewer, bool same_die, TensorEffect& effect) {
  const double slowdown = kSameDie * fewer;
  effect.gpu.cap += slowdown;
  effect.spread = std::hypot(effect.spread, slowdown / 2);  // half as uncertain as it is large
  effect.reason += "; fewer watts per FLOP/s, so its power-limited rate is lower";
  if (same_die) return;
  effect.gpu.cap_per_decade +=
      (kOtherDieUnderLoad - kSameDie) * fewer / tensor_cap_decades(kUnderLoad);
  effect.reason += ", the lower the longer it is busy";
}

/// Starting a kernel, draining it, joining slices: the same number of clocks on any GPU.
void use_clock(double source, double own, TensorEffect& effect) {
  if (!(source > 0) || !(own > 0)) return;
  effect.fixed_costs = source / own;
  effect.stack.launch_seconds *= effect.fixed_costs;
}

void use_rule(const TensorGpuWeights& source, const GpuSpec& gpu, double watts,
              TensorEffect& effect) {
  const bool vendor = gpu.vendor != "AMD" && gpu.architecture < Architecture::cdna1;
  const int steps = vendor ? generations_apart(gpu.architecture, source.architecture) : 0;
  effect.stack = mean_stack(source);
  effect.spread =
      std::hypot(judged::kUnseenGpu, judged::kPerGeneration * steps, source.stack_spread);
  effect.reason = gpu.id == source.gpu ? gpu.id + " with another tdp than it was measured with"
                                       : gpu.id + " was never measured with tensor cores";
  effect.reason += ": rates as " + source.gpu;
  effect.never_timed = "rates of " + source.gpu;
  if (vendor) use_clock(source.clock, gpu.boost_clock.value(), effect);
  if (steps > 0) effect.reason += ", " + std::to_string(steps) + " architecture(s) away";
  if (!vendor) {
    effect.spread = std::hypot(effect.spread, judged::kOtherVendor);
    effect.reason += ", of another vendor";
  }
  const double held = watts_at_process(watts, gpu.architecture, source.architecture);
  if (held > 0 && held < source.watts_per_flops)
    use_fewer_watts(std::log(source.watts_per_flops / held), is_of_die(gpu, source), effect);
  if (gpu.tdp.value() > 0 && gpu.tdp.value() < kLowPowerWatts) {
    effect.spread = std::hypot(effect.spread, judged::kLowPower);
    effect.reason += "; a card of little power, so long calls may be slower";
  }
}

/// A description that keeps the id of a measured card and changes its power is another card.
bool has_watts_of(const GpuSpec& gpu, const TensorGpuWeights& source) {
  constexpr double kRounding = 0.01;
  const double watts = watts_per_flops(gpu, Precision::bf16, tensor_traits(gpu, Precision::bf16));
  const bool comparable = gpu.tdp.value() > 0 && source.watts_per_flops > 0;
  return !comparable || watts >= source.watts_per_flops * (1 - kRounding);
}

}  // namespace

void put_under_load(TensorEffect& effect) {
  effect.gpu.cap += effect.gpu.cap_per_decade * tensor_cap_decades(kUnderLoad);
  effect.gpu.cap_per_decade = 0;
  effect.spread = std::hypot(effect.spread, judged::kSessionsUnderLoad);
}

void calibrate(TensorEffect& effect, const TensorShift& shift) {
  effect.gpu.compute += shift.compute;
  effect.gpu.memory += shift.memory;
  effect.gpu.cap += shift.power;
  effect.measured = true;
  effect.spread = judged::kSessionsUnderLoad;
  effect.of_steps = shift.of_steps;
  effect.reason = shift.source;
  effect.never_timed.clear();
}

TensorStackEffect<double> unknown_stack(const TensorWeights& weights, std::string_view gpu) {
  const auto found = std::ranges::find(weights.gpus, gpu, &TensorGpuWeights::gpu);
  if (found == weights.gpus.end())
    throw InputError({"GPU " + std::string(gpu), "was not measured", "use tensor_effect"});
  return mean_stack(*found);
}

TensorEffect tensor_effect(const GpuSpec& gpu, Precision precision, const TensorWeights& weights,
                           std::string_view stack) {
  const auto own = std::ranges::find(weights.gpus, gpu.id, &TensorGpuWeights::gpu);
  const bool measured = own != weights.gpus.end();
  const bool other_vendor = gpu.architecture >= Architecture::cdna1;
  const TensorGpuWeights& source =
      measured ? *own
               : nearest(weights, other_vendor ? contemporary(gpu.architecture) : gpu.architecture);
  TensorEffect effect{
      .gpu = source.effect, .long_spread = source.long_spread, .short_spread = source.short_spread};
  if (measured && has_watts_of(gpu, source))
    use_measured(source, precision, stack, effect);
  else
    use_rule(source, gpu, watts_per_flops(gpu, precision, tensor_traits(gpu, precision)), effect);
  if (!sixteen_bits(precision)) use_other_width(precision, effect);
  return effect;
}

}  // namespace tessera
