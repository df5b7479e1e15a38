#include "predictor/attention/attention_predictor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "hw/units/input_error.h"
#include "predictor/attention/kernel_generation.h"
#include "predictor/attention/served_traffic.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/judged_spreads.h"

namespace tessera {
namespace {

constexpr double kTrainingLaunch = 4e-6;  // [s]

/// The kernel whose profile and ratio a kernel without own ones takes.
AttentionCall as_flash2(AttentionCall call) {
  if (call.implementation == AttentionImplementation::flash1)
    call.implementation = AttentionImplementation::flash2;
  return call;
}

bool head_measured(const AttentionCall& call) {
  using enum AttentionImplementation;
  const bool small_alone = call.implementation == flash2 || call.implementation == cudnn;
  return call.head_dim >= 64 && call.head_dim <= (small_alone ? 128 : 256);
}

/// Input that lies farthest beyond the calls that were fitted.
/// Largest head that FlashAttention of 2022 was timed with.
constexpr double kMostFlash1Head = 128;

Extrapolation beyond(const AttentionCall& call, const std::array<double, 4>& range) {
  constexpr std::array<std::string_view, 4> kInputs{"batch", "heads", "sequence", "head size"};
  const std::array sizes{call.batch, call.heads, std::max(call.seq_q, call.seq_kv), call.head_dim};
  Extrapolation most;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double factor = range[i] > 0 ? static_cast<double>(sizes[i]) / range[i] : 1;
    if (factor > most.factor) most = {kInputs[i], factor};
  }
  return most;
}

/// "vllm" of "vllm/vllm_flash_attn"; empty where nothing is said.
std::string_view program_of(std::string_view stack) {
  return stack.substr(0, stack.find('/'));
}

double share(AttentionDirection direction, double ratio) {
  switch (direction) {
    case AttentionDirection::forward:
      return 1;
    case AttentionDirection::backward:
      return ratio;
    case AttentionDirection::forward_backward:
      return 1 + ratio;
  }
  return 1;
}

}  // namespace

AttentionPredictor::AttentionPredictor(const GpuSpec& gpu, AttentionWeights weights,
                                       AttentionSetting setting, std::string stack)
    : spec_(gpu),
      gpu_(attention_gpu(gpu)),
      weights_(std::move(weights)),
      setting_(setting),
      stack_(std::move(stack)) {
  if (weights_.profiles.empty())
    throw InputError(
        {"attention weights", "hold no profile", "run tessera train --model attention"});
}

void AttentionPredictor::calibrate(double log_slowdown, const std::string& source) {
  calibration_ = std::exp(log_slowdown);
  calibration_source_ = source;
}

/// The named stack on this GPU first, then the same implementation, then the same GPU, then the
/// same generation, then the setting, then the mask, then the same program: vLLM's FlashAttention-2
/// reads keys by pages, SGLang's calls of it do not (decision 121). Of equals the one that
/// rearranges least, whose time is most the kernel's own.
const AttentionProfile& AttentionPredictor::profile(const AttentionCall& call) const {
  const bool older = call.implementation == AttentionImplementation::trtllm &&
                     runs_earlier_instructions(call, spec_);
  const bool bulk = spec_.copies_in_bulk() && !older;
  const auto score = [&](const AttentionProfile& p) {
    const bool masked = call.causal ? p.causal : p.full;
    const bool same_program = !stack_.empty() && program_of(p.stack) == program_of(stack_);
    return 128.0 * (p.stack == stack_ && p.gpu == spec_.id) +
           64.0 * (p.implementation == as_flash2(call).implementation) +
           32.0 * (p.gpu == spec_.id) + 16.0 * (p.bulk_copies == bulk) +
           8.0 * (p.served == (setting_ == AttentionSetting::serving)) + 4.0 * masked +
           2.0 * same_program - std::min(1.0, 0.01 * std::exp(p.parameters[kConversion]));
  };
  return *std::ranges::max_element(weights_.profiles, {}, score);
}

AttentionParameters<double> AttentionPredictor::parameters(const AttentionCall& call,
                                                           const AttentionProfile& profile) const {
  auto p =
      AttentionParameters<double>::from_unconstrained(std::span<const double>(profile.parameters));
  if (setting_ == AttentionSetting::training) p.launch = kTrainingLaunch;
  if (!measured(profile) || takes_one_head_size(call.implementation))
    p.padding = padding_of(call, profile.bulk_copies, spec_, p.padding);
  return p;
}

AttentionGpu AttentionPredictor::facts(const AttentionCall& call,
                                       const AttentionProfile& profile) const {
  AttentionGpu gpu = gpu_;
  if (!measured(profile) && runs_earlier_instructions(call, spec_))
    gpu.flops *= share_of_earlier_instructions(profile.bulk_copies);
  return gpu;
}

/// A server writes its cache and rearranges Q, K and V ahead of the attention.
AttentionTime<double> AttentionPredictor::served(const AttentionProfile& from,
                                                 AttentionParts& parts) const {
  AttentionGpu gpu = parts.gpu;
  double& conversion = parts.parameters.conversion;
  if (!measured(from)) {
    gpu.bandwidth = served_bandwidth(spec_, parts.shape);
    conversion = moved_conversion(conversion, from.gpu, spec_, gpu.bandwidth);
    parts.gpu = gpu;
  }
  AttentionTime<double> time = attention_time(parts.shape, gpu, parts.parameters, true);
  if (from.implementation != AttentionImplementation::trtllm) return time;
  const double rearranged = conversion * parts.shape.rearranged_bytes / gpu.bandwidth;
  const double more = std::max(0.0, rearrangement_of_blocks(parts.shape, spec_) - rearranged);
  time.serving += more;
  time.total += more;
  return time;
}

AttentionParts AttentionPredictor::parts(const AttentionCall& call) const {
  require(spec_, call.implementation);
  if (call.implementation == AttentionImplementation::flash1) {
    AttentionParts parts = this->parts(as_flash2(call));
    const auto timed = std::min(static_cast<double>(call.head_dim), kMostFlash1Head);
    parts.factor *= weights_.flash1(parts.shape.longest, timed);
    return parts;
  }
  const AttentionProfile& from = profile(call);
  const double most_queries =
      measured(from) ? kMostBlockQueries : most_queries_of_block(call, spec_, stack_);
  AttentionParts parts{.shape = attention_shape(as_multiplied(call), most_queries),
                       .gpu = facts(call, from),
                       .parameters = parameters(call, from),
                       .forward = {}};
  parts.forward = setting_ == AttentionSetting::serving
                      ? served(from, parts)
                      : attention_time(parts.shape, parts.gpu, parts.parameters, false);
  parts.factor = calibration_ * share(call.direction, backward_ratio(parts));
  return parts;
}

/// Backward makes as many exponentials as forward: where the GPU makes more of them at a time than
/// those that the ratio was measured on, each direction gains the same, not the ratio of it.
double AttentionPredictor::backward_ratio(const AttentionParts& parts) const {
  const double ratio = weights_.backward(parts.shape.longest);
  if (parts.gpu.exponentials == kUsualExponentials) return ratio;
  AttentionGpu usual = parts.gpu;
  usual.exponentials = kUsualExponentials;
  const double own = attention_time(parts.shape, parts.gpu, parts.parameters, false).total;
  const double slower = attention_time(parts.shape, usual, parts.parameters, false).total;
  return (ratio * slower - (slower - own)) / own;
}

KernelPrediction AttentionPredictor::predict(const AttentionCall& call) const {
  const AttentionParts parts = this->parts(call);
  const AttentionShape& shape = parts.shape;
  const AttentionTime<double>& time = parts.forward;
  const double factor = parts.factor;
  const AttentionProfile& from = profile(call);
  KernelPrediction result;
  result.duration = Seconds(factor * time.total);
  result.compute_time = Seconds(factor * time.compute);
  result.memory_time = Seconds(factor * (time.memory + time.serving));
  result.tile_m = static_cast<int>(shape.block_queries);
  result.tile_n = 64;
  result.waves = time.waves;
  const double bound =
      std::max(attention_flops(call) / gpu_.flops, attention_bytes(call) / gpu_.bandwidth);
  result.utilization = std::min(1.0, bound / result.duration.value());
  const AttentionImplementation known = as_flash2(call).implementation;
  const bool flash2 = known == AttentionImplementation::flash2;
  const double backward = call.direction == AttentionDirection::forward ? 0
                          : flash2                                      ? judged::kBackward
                                                                        : judged::kOtherBackward;
  const bool own = measured(from) && from.implementation == known;
  result.spread = {.gpu = std::hypot(own ? judged::kBuild : weights_.copied_spread, backward,
                                     head_measured(call) ? 0 : judged::kUnseenHead),
                   .shape = from.spread};
  result.extrapolated = beyond(call, weights_.range);
  if (result.extrapolated)
    result.spread.shape = std::hypot(
        result.spread.shape, judged::kPerDoublingBeyond * std::log2(result.extrapolated.factor));
  return result;
}

std::string AttentionPredictor::provenance(const AttentionCall& call) const {
  const AttentionProfile& from = profile(call);
  std::string text = from.stack + " on " + from.gpu;
  if (from.implementation != as_flash2(call).implementation) text += ", another implementation";
  if (call.implementation == AttentionImplementation::flash1)
    text += ", times the ratio of FlashAttention of 2022 to it";
  if (!measured(from)) text += ", share of peak copied";
  if (call.direction != AttentionDirection::forward)
    text += ", backward by FlashAttention-2's ratio to forward";
  if (!calibration_source_.empty()) text += ", corrected by " + calibration_source_;
  return text;
}

std::vector<std::string> AttentionPredictor::notes(const AttentionCall& call) const {
  const AttentionProfile& from = profile(call);
  const std::string implementation(name_of(call.implementation));
  const std::string attention = implementation + " attention";
  std::vector<std::string> notes;
  const AttentionImplementation known = as_flash2(call).implementation;
  if (!measured(from) || from.implementation != known)
    notes.push_back(attention + " on " + spec_.id + ": never measured; share of peak of " +
                    from.stack + " on " + from.gpu);
  if (call.direction != AttentionDirection::forward && known != AttentionImplementation::flash2)
    notes.push_back(attention + ", backward: never measured; FlashAttention-2's ratio to forward");
  if (call.direction != AttentionDirection::forward && call.kv_heads != call.heads)
    notes.push_back(attention + ", backward with grouped heads: never measured; the same ratio");
  if (call.mean_document > 0)
    notes.push_back(attention + ", packed documents: never measured; taken as equally long");
  if (!head_measured(call))
    notes.push_back(attention + ", head size " + std::to_string(call.head_dim) +
                    ": never measured; as the nearest one");
  return notes;
}

Seconds AttentionPredictor::training_launch() {
  return Seconds(kTrainingLaunch);
}

}  // namespace tessera
