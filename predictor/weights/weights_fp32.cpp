#include "predictor/weights/weights_fp32.h"

#include <algorithm>
#include <string>

#include "hw/units/input_error.h"
#include "predictor/weights/weights.pb.h"

namespace tessera {
namespace {

[[noreturn]] void refuse_fp32(const std::filesystem::path& path, std::string what) {
  throw InputError({.where = path.string(),
                    .what = std::move(what),
                    .hint = "use predictor/weights/tessera.pb of this version, or run tessera "
                            "train, which replaces that section alone"});
}

template <std::size_t N>
void read_values(const google::protobuf::RepeatedField<double>& from, std::array<double, N>& to,
                 const char* what, const std::filesystem::path& path) {
  if (from.size() != static_cast<int>(N))
    refuse_fp32(path, std::string("holds another number of ") + what + " than this version");
  std::copy(from.begin(), from.end(), to.begin());
}

void write(const GemmWeights& from, weights::Gemm& to) {
  const GemmParameters<double>& shared = from.shared;
  to.set_norm(shared.norm);
  to.set_prologue(shared.prologue);
  to.set_memory(shared.memory);
  to.set_split_seconds(shared.split_seconds);
  to.set_stride_maxwell(shared.stride_maxwell);
  to.set_stride(shared.stride);
  to.set_stride_centre(shared.stride_centre);
  to.set_stride_width(shared.stride_width);
  to.set_stride_rows(shared.stride_rows);
  to.set_misaligned_maxwell(shared.misaligned_maxwell);
  to.set_misaligned(shared.misaligned);
  to.set_launch_share(shared.launch_share);
  for (const TileMenu<double>& from_menu : from.menus) {
    weights::TileMenu& menu = *to.add_menus();
    menu.set_quantisation(from_menu.quantisation);
    menu.mutable_penalty()->Assign(from_menu.penalty.begin(), from_menu.penalty.end());
  }
}

GemmWeights read(const weights::Gemm& from, const std::filesystem::path& path) {
  GemmWeights to{.shared = {.norm = from.norm(),
                            .prologue = from.prologue(),
                            .memory = from.memory(),
                            .split_seconds = from.split_seconds(),
                            .stride_maxwell = from.stride_maxwell(),
                            .stride = from.stride(),
                            .stride_centre = from.stride_centre(),
                            .stride_width = from.stride_width(),
                            .stride_rows = from.stride_rows(),
                            .misaligned_maxwell = from.misaligned_maxwell(),
                            .misaligned = from.misaligned(),
                            .launch_share = from.launch_share()},
                 .menus = {}};
  if (from.menus_size() != static_cast<int>(kSgemmFamilies))
    refuse_fp32(path, "holds another number of kernel families than this version");
  for (int family = 0; family < from.menus_size(); ++family) {
    TileMenu<double>& menu = to.menus[static_cast<std::size_t>(family)];
    menu.quantisation = from.menus(family).quantisation();
    read_values(from.menus(family).penalty(), menu.penalty, "tiles", path);
  }
  return to;
}

void write(const MemoryParameters<double>& from, weights::Memory& to) {
  to.set_l2_centre(from.l2_centre);
  to.set_l2_slope(from.l2_slope);
  to.set_l2_speedup(from.l2_speedup);
  to.set_softmax_row(from.softmax_row);
  to.set_layer_norm_row(from.layer_norm_row);
  to.set_wide_softmax(from.wide_softmax);
  to.mutable_launch_share()->Assign(from.launch_share.begin(), from.launch_share.end());
}

MemoryParameters<double> read(const weights::Memory& from, const std::filesystem::path& path) {
  MemoryParameters<double> to{.l2_centre = from.l2_centre(),
                              .l2_slope = from.l2_slope(),
                              .l2_speedup = from.l2_speedup(),
                              .softmax_row = from.softmax_row(),
                              .layer_norm_row = from.layer_norm_row(),
                              .wide_softmax = from.wide_softmax(),
                              .launch_share = {}};
  read_values(from.launch_share(), to.launch_share, "memory classes", path);
  return to;
}

void write(const ConvolutionWeights& from, weights::Convolution& to) {
  const ConvolutionParameters<double>& shared = from.shared;
  to.set_norm(shared.norm);
  to.set_prologue(shared.prologue);
  to.set_memory(shared.memory);
  to.set_transform(shared.transform);
  to.set_implicit(shared.implicit);
  to.set_fused(shared.fused);
  to.set_stage_seconds(shared.stage_seconds);
  to.set_launch_share(shared.launch_share);
  to.set_quantisation(shared.quantisation);
  to.mutable_penalty()->Assign(shared.penalty.begin(), shared.penalty.end());
  to.set_shift(from.shift);
  to.set_floor_seconds(from.floor_seconds);
}

ConvolutionWeights read(const weights::Convolution& from, const std::filesystem::path& path) {
  ConvolutionWeights to{.shared = {.norm = from.norm(),
                                   .prologue = from.prologue(),
                                   .memory = from.memory(),
                                   .transform = from.transform(),
                                   .implicit = from.implicit(),
                                   .fused = from.fused(),
                                   .stage_seconds = from.stage_seconds(),
                                   .launch_share = from.launch_share(),
                                   .quantisation = from.quantisation(),
                                   .penalty = {}},
                        .shift = from.shift(),
                        .floor_seconds = from.floor_seconds()};
  read_values(from.penalty(), to.shared.penalty, "tiles of convolutions", path);
  return to;
}

void write(const TrainingRange& from, weights::TrainingRange& to) {
  to.mutable_linear()->Assign(from.linear.begin(), from.linear.end());
  to.mutable_batched()->Assign(from.batched.begin(), from.batched.end());
  to.set_memory_bytes(from.memory_bytes);
  if (!from.convolution) return;
  const ConvolutionRange& c = *from.convolution;
  for (const double limit : {c.least_window, c.most_window, c.most_stride, c.m, c.n, c.k})
    to.add_convolution(limit);
}

TrainingRange read(const weights::TrainingRange& from, const std::filesystem::path& path) {
  TrainingRange to;
  read_values(from.linear(), to.linear, "sizes of a product", path);
  read_values(from.batched(), to.batched, "sizes of a product", path);
  to.memory_bytes = from.memory_bytes();
  if (from.convolution().empty()) return to;
  std::array<double, 6> c{};
  read_values(from.convolution(), c, "limits of convolutions", path);
  to.convolution = {c[0], c[1], c[2], c[3], c[4], c[5]};
  return to;
}

void write(const EffectRule& from, weights::EffectRule& to) {
  to.set_compute(static_cast<int>(from.compute));
  to.set_power_limit(from.power_limit);
  to.set_session_pooling(from.session_pooling);
}

EffectRule read(const weights::EffectRule& from, const std::filesystem::path& path) {
  if (from.compute() < 0 || from.compute() > static_cast<int>(ComputeRule::pooled))
    refuse_fp32(path, "names a rule for unseen GPUs that this version does not know");
  return {.compute = static_cast<ComputeRule>(from.compute()),
          .power_limit = from.power_limit(),
          .session_pooling = from.session_pooling()};
}

void write(const SpreadByClass& from, google::protobuf::RepeatedPtrField<weights::Spread>& to) {
  for (const LogSpread& spread : from) {
    weights::Spread& entry = *to.Add();
    entry.set_gpu(spread.gpu);
    entry.set_shape(spread.shape);
  }
}

SpreadByClass read(const google::protobuf::RepeatedPtrField<weights::Spread>& from,
                   const std::filesystem::path& path) {
  if (from.size() != static_cast<int>(kSpreadClasses))
    refuse_fp32(path, "holds another number of spreads than this version");
  SpreadByClass to{};
  for (std::size_t c = 0; c < kSpreadClasses; ++c) {
    const weights::Spread& entry = from[static_cast<int>(c)];
    to[c] = {entry.gpu(), entry.shape()};
  }
  return to;
}

void write(const TrainedGpu& from, weights::Gpu& to) {
  const GpuEffect& effect = from.effect;
  to.set_gpu(effect.gpu);
  to.set_gemm_slowdown(effect.gemm_slowdown);
  to.set_batched_slowdown(effect.batched_slowdown);
  to.mutable_bandwidth_slowdown()->Assign(effect.bandwidth_slowdown.begin(),
                                          effect.bandwidth_slowdown.end());
  to.set_sustained_flops(effect.sustained_flops);
  const LaunchFloors& floors = effect.floors;
  for (const double floor :
       {floors.linear, floors.batched, floors.elementwise, floors.softmax, floors.layer_norm})
    to.add_launch_floor_seconds(floor);
  to.set_reason(effect.reason);
  to.set_die(from.die);
  to.set_lanes_per_sm(from.lanes_per_sm);
  to.set_efficiency_steps(from.efficiency_steps);
  to.set_hbm(from.hbm);
  to.set_tdp_watts(from.tdp);
  to.set_reached_flops(from.reached_flops);
  if (effect.convolution_slowdown) to.set_convolution_slowdown(*effect.convolution_slowdown);
  to.set_convolution_floor_seconds(floors.convolution);
}

TrainedGpu read(const weights::Gpu& from, const std::filesystem::path& path) {
  std::array<double, 5> floor{};
  read_values(from.launch_floor_seconds(), floor, "launch floors", path);
  TrainedGpu to{.effect = {.gpu = from.gpu(),
                           .gemm_slowdown = from.gemm_slowdown(),
                           .batched_slowdown = from.batched_slowdown(),
                           .sustained_flops = from.sustained_flops(),
                           .floors = {floor[0], floor[1], floor[2], floor[3], floor[4]},
                           .provenance = EffectProvenance::measured,
                           .reason = from.reason()},
                .die = from.die(),
                .lanes_per_sm = from.lanes_per_sm(),
                .efficiency_steps = from.efficiency_steps(),
                .hbm = from.hbm(),
                .tdp = from.tdp_watts(),
                .reached_flops = from.reached_flops()};
  read_values(from.bandwidth_slowdown(), to.effect.bandwidth_slowdown, "memory classes", path);
  if (from.has_convolution_slowdown()) to.effect.convolution_slowdown = from.convolution_slowdown();
  to.effect.floors.convolution = from.convolution_floor_seconds();
  return to;
}

void write(const NeusightClass& from, weights::NeusightClass& to) {
  for (const int size : from.mlp.sizes) to.add_sizes(size);
  for (const double value : from.mlp.values) to.add_values(value);
  for (const double mean : from.feature_mean) to.add_feature_mean(mean);
  for (const double scale : from.feature_scale) to.add_feature_scale(scale);
  for (const TileExample& tile : from.tiles) {
    weights::TileExample& example = *to.add_tiles();
    example.set_log_batch(tile.log_batch);
    example.set_log_m(tile.log_m);
    example.set_log_n(tile.log_n);
    example.set_log_k(tile.log_k);
    example.set_tile_m(tile.tile_m);
    example.set_tile_n(tile.tile_n);
    example.set_family(static_cast<int>(tile.family));
  }
}

NeusightClass read(const weights::NeusightClass& from, const std::filesystem::path& path) {
  NeusightClass to;
  to.mlp.sizes.assign(from.sizes().begin(), from.sizes().end());
  to.mlp.values.assign(from.values().begin(), from.values().end());
  const bool whole = to.mlp.sizes.size() >= 2 && to.mlp.sizes.front() == 4 &&
                     to.mlp.sizes.back() == 2 &&
                     to.mlp.values.size() == mlp_value_count(to.mlp.sizes) &&
                     from.feature_mean_size() == 4 && from.feature_scale_size() == 4;
  if (!whole) refuse_fp32(path, "holds an incomplete net of the neusight form");
  for (int i = 0; i < 4; ++i) {
    to.feature_mean[i] = from.feature_mean(i);
    to.feature_scale[i] = from.feature_scale(i);
  }
  for (const auto& tile : from.tiles()) {
    const bool usable = tile.tile_m() > 0 && tile.tile_n() > 0 && tile.family() >= 0 &&
                        tile.family() < static_cast<int>(kSgemmFamilies);
    if (!usable) refuse_fp32(path, "holds a tile without size or family");
    to.tiles.push_back({tile.log_batch(), tile.log_m(), tile.log_n(), tile.log_k(), tile.tile_m(),
                        tile.tile_n(), static_cast<SgemmFamily>(tile.family())});
  }
  return to;
}

void write(const LogoScore& from, weights::LogoScore& to) {
  to.set_form(from.form);
  to.set_gpu(from.gpu);
  to.set_op(from.op);
  to.set_n(from.n);
  to.set_mean_abs_error_pct(from.mean_abs_error_pct);
  to.set_median_abs_error_pct(from.median_abs_error_pct);
}

LogoScore read(const weights::LogoScore& from) {
  return {from.form(),
          from.gpu(),
          from.op(),
          from.n(),
          from.mean_abs_error_pct(),
          from.median_abs_error_pct()};
}

void check_versions(const weights::Fp32& message, const std::filesystem::path& path) {
  if (message.schema_version() != PredictorWeights::kFp32SchemaVersion)
    refuse_fp32(path, "has FP32 kernels of schema version " +
                          std::to_string(message.schema_version()) + ", not " +
                          std::to_string(PredictorWeights::kFp32SchemaVersion));
  if (message.feature_version() != PredictorWeights::kFeatureVersion)
    refuse_fp32(path, "has feature version " + std::to_string(message.feature_version()) +
                          ", not " + std::to_string(PredictorWeights::kFeatureVersion));
}

}  // namespace

void write_fp32(const PredictorWeights& from, weights::Fp32& to) {
  to.set_schema_version(PredictorWeights::kFp32SchemaVersion);
  to.set_feature_version(PredictorWeights::kFeatureVersion);
  to.set_precision(from.precision);
  to.set_seed(from.seed);
  for (const TrainingData& data : from.data) {
    weights::TrainingData& entry = *to.add_data();
    entry.set_file(data.file);
    entry.set_fnv1a(data.fnv1a);
    entry.set_rows(data.rows);
  }
  write(from.gemm, *to.mutable_gemm());
  write(from.batched, *to.mutable_batched());
  write(from.memory, *to.mutable_memory());
  if (from.convolution) write(*from.convolution, *to.mutable_convolution());
  write(from.rule, *to.mutable_rule());
  write(from.spreads.measured, *to.mutable_measured_spreads());
  write(from.spreads.by_rule, *to.mutable_rule_spreads());
  write(from.range, *to.mutable_range());
  for (const TrainedGpu& gpu : from.gpus) write(gpu, *to.add_gpus());
  for (const NeusightClass& net : from.neusight) write(net, *to.add_neusight());
  for (const LogoScore& score : from.logo) write(score, *to.add_logo());
}

void read_fp32(const weights::Fp32& message, const std::filesystem::path& path,
               PredictorWeights& result) {
  check_versions(message, path);
  result.precision = message.precision();
  result.seed = message.seed();
  for (const auto& data : message.data())
    result.data.push_back({data.file(), data.fnv1a(), data.rows()});
  result.gemm = read(message.gemm(), path);
  result.batched = read(message.batched(), path);
  result.memory = read(message.memory(), path);
  if (message.has_convolution()) result.convolution = read(message.convolution(), path);
  result.rule = read(message.rule(), path);
  result.spreads = {read(message.measured_spreads(), path), read(message.rule_spreads(), path)};
  result.range = read(message.range(), path);
  for (const auto& gpu : message.gpus()) result.gpus.push_back(read(gpu, path));
  for (const auto& net : message.neusight()) result.neusight.push_back(read(net, path));
  for (const auto& score : message.logo()) result.logo.push_back(read(score));
}

}  // namespace tessera
