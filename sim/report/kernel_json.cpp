#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/kernel_report.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

using KernelJson = nlohmann::ordered_json;

constexpr const char* kKernelSchema = "tessera.kernel/1";

KernelJson kernel_sizes_json(const std::vector<std::pair<std::string, std::int64_t>>& sizes) {
  KernelJson json = KernelJson::object();
  for (const auto& [name, size] : sizes) json[name] = size;
  return json;
}

KernelJson gpu_json(const KernelReport& report) {
  const GpuTraits& traits = report.story.traits;
  return {{"id", report.gpu.id},
          {"fp32_flops_per_s", traits.flops},
          {"peak_flops_per_s", report.story.peak_flops},
          {"memory_bandwidth_bytes_per_s", traits.bandwidth},
          {"l2_bytes", traits.l2},
          {"sms", traits.sms},
          {"fp32_lanes_per_sm", traits.lanes_per_sm},
          {"dense_clock_share", traits.dense_clock_share},
          {"power_limit_w", traits.tdp > 0 ? KernelJson(traits.tdp) : KernelJson(nullptr)}};
}

KernelJson effect_json(const KernelStory& story) {
  const GpuEffect& effect = story.effect;
  KernelJson json{{"mode", name_of(story.basis.mode)},
                  {"provenance", name_of(effect.provenance)},
                  {"reason", story.basis.effect},
                  {"linear_slowdown", std::exp(effect.gemm_slowdown)},
                  {"bmm_slowdown", std::exp(effect.batched_slowdown)},
                  {"elementwise_slowdown", std::exp(effect.bandwidth_slowdown[0])},
                  {"softmax_slowdown", std::exp(effect.bandwidth_slowdown[1])},
                  {"layer_norm_slowdown", std::exp(effect.bandwidth_slowdown[2])},
                  {"conv2d_slowdown", nullptr},
                  {"sustained_flops_per_s", nullptr}};
  if (effect.convolution_slowdown) json["conv2d_slowdown"] = std::exp(*effect.convolution_slowdown);
  if (effect.sustained_flops > 0) json["sustained_flops_per_s"] = effect.sustained_flops;
  return json;
}

KernelJson candidate_json(const TileCandidate& c) {
  return {{"tile_m", c.tile.m},
          {"tile_n", c.tile.n},
          {"split", c.split},
          {"blocks", c.blocks},
          {"waves", c.waves},
          {"charged_waves", c.charged_waves},
          {"blocks_per_sm", c.blocks_per_sm},
          {"sm_utilization", c.sm_utilization},
          {"relative_time", c.relative},
          {"share", c.share}};
}

KernelJson product_json(const ProductStory& product) {
  KernelJson candidates = KernelJson::array();
  for (const TileCandidate& c : product.candidates) candidates.push_back(candidate_json(c));
  KernelJson json{{"batch", product.shape.batch},
                  {"m", product.shape.m},
                  {"n", product.shape.n},
                  {"k", product.shape.k},
                  {"candidates", std::move(candidates)},
                  {"tiles_s", product.tiles},
                  {"row_slowdown", product.row_slowdown},
                  {"layout_slowdown", product.layout_slowdown},
                  {"gpu_slowdown", product.gpu_slowdown},
                  {"unlimited_s", product.unlimited()},
                  {"at_power_limit_s", nullptr}};
  if (product.at_power_limit) json["at_power_limit_s"] = *product.at_power_limit;
  return json;
}

KernelJson algorithms_json(const ConvolutionStory& convolution) {
  KernelJson algorithms = KernelJson::array();
  for (const AlgorithmCandidate& c : convolution.algorithms)
    algorithms.push_back({{"name", c.name},
                          {"compute_s", c.terms.compute},
                          {"memory_s", c.terms.memory},
                          {"other_s", c.terms.other},
                          {"duration_s", c.seconds},
                          {"relative_time", c.relative},
                          {"share", c.share}});
  return algorithms;
}

KernelJson traffic_json(const TrafficStory& traffic) {
  return {{"bytes", traffic.bytes},
          {"charged_bytes", traffic.charged_bytes},
          {"l2_ratio", traffic.l2_ratio},
          {"l2_miss", traffic.l2_miss},
          {"l2_hit_speedup", traffic.hit_speedup},
          {"reached_bandwidth_share", traffic.reached_share},
          {"kind_factor", traffic.kind_factor},
          {"issue_s", traffic.issue_seconds},
          {"achieved_bandwidth_share", traffic.achieved_share}};
}

KernelJson attention_json(const KernelStory& story) {
  const AttentionCall& call = story.kernel.attention;
  const AttentionParts& parts = story.attention->parts;
  return {{"implementation", name_of(call.implementation)},
          {"direction", direction_words(call.direction)},
          {"causal", call.causal},
          {"blocks", parts.shape.blocks},
          {"block_queries", parts.shape.block_queries},
          {"waves", parts.forward.waves},
          {"mean_keys", parts.shape.keys},
          {"longest_keys", parts.shape.longest},
          {"tensor_peak_share", parts.parameters.efficiency},
          {"forward_compute_s", parts.forward.compute},
          {"forward_memory_s", parts.forward.memory},
          {"factor", parts.factor}};
}

KernelJson times_json(const KernelStory& story) {
  const KernelPrediction& prediction = story.prediction;
  return {{"limit", name_of(story.limit)},
          {"compute_s", prediction.compute_time.value()},
          {"memory_s", prediction.memory_time.value()},
          {"joined_s", story.joined.value()},
          {"roofline_s", story.bound.value()},
          {"queue_floor_s", story.queue_floor.value()},
          {"duration_s", prediction.duration.value()},
          {"utilization", prediction.utilization},
          {"interval",
           {{"level", 0.8},
            {"low_s", story.interval.low.value()},
            {"high_s", story.interval.high.value()},
            {"gpu_log_sd", prediction.spread.gpu},
            {"shape_log_sd", prediction.spread.shape}}},
          {"launch_gap_s", story.launch_gap.value()},
          {"warm_s", story.warm_duration ? KernelJson(story.warm_duration->value()) : KernelJson()},
          {"isolated_s", story.isolated().value()}};
}

KernelJson extrapolation_json(const Extrapolation& extrapolated) {
  if (!extrapolated) return nullptr;
  return {{"input", extrapolated.input}, {"factor", extrapolated.factor}};
}

KernelJson nearest_json(const KernelReport& report) {
  KernelJson rows = KernelJson::array();
  for (const NearMeasurement& near : report.nearest) {
    rows.push_back({{"gpu", near.gpu},
                    {"split", split_of(near.row)},
                    {"timing", name_of(near.row.timing)},
                    {"sizes", kernel_sizes_json(sizes_of(near.row))},
                    {"octaves", near.octaves},
                    {"measured_s", near.measured.value()},
                    {"predicted_s", near.predicted.value()}});
  }
  return rows;
}

}  // namespace

std::string kernel_json(const KernelReport& report) {
  const KernelStory& story = report.story;
  KernelJson json{{"schema", kKernelSchema},
                  {"tessera_version", report.tessera_version},
                  {"op", report.op},
                  {"sizes", kernel_sizes_json(report.sizes)},
                  {"layout", nullptr},
                  {"precision", name_of(story.kernel.precision)},
                  {"flops", story.kernel.flops.value()},
                  {"bytes", story.kernel.bytes().value()},
                  {"gpu", gpu_json(report)},
                  {"effect", effect_json(story)},
                  {"times", times_json(story)},
                  {"extrapolated", extrapolation_json(story.prediction.extrapolated)},
                  {"likely_tile", nullptr},
                  {"product", nullptr},
                  {"algorithms", nullptr},
                  {"traffic", nullptr},
                  {"attention", nullptr},
                  {"notes", story.notes},
                  {"measurements", report.measurements},
                  {"nearest", nearest_json(report)}};
  if (story.has_layout()) json["layout"] = label_of(story.kernel.layout);
  if (story.product) {
    json["product"] = product_json(*story.product);
    json["likely_tile"] = candidate_json(story.product->candidates.front());
  }
  if (story.convolution) json["algorithms"] = algorithms_json(*story.convolution);
  if (story.attention) json["attention"] = attention_json(story);
  if (story.traffic) json["traffic"] = traffic_json(*story.traffic);
  return json.dump(2, ' ', false, KernelJson::error_handler_t::replace) + '\n';
}

}  // namespace tessera
