#include "predictor/weights/weights_fp32.h"

#include <algorithm>
#include <string>

#include "predictor/weights/field_list.h"
#include "predictor/weights/refuse_weights.h"
#include "predictor/weights/weights.pb.h"

namespace tessera {

// Found by the types of their arguments, which a namespace without a name would prevent.
static void fields(Is<GemmParameters<double>> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(norm);
  TESSERA_FIELD(prologue);
  TESSERA_FIELD(memory);
  TESSERA_FIELD(split_seconds);
  TESSERA_FIELD(stride_maxwell);
  TESSERA_FIELD(stride);
  TESSERA_FIELD(stride_centre);
  TESSERA_FIELD(stride_width);
  TESSERA_FIELD(stride_rows);
  TESSERA_FIELD(misaligned_maxwell);
  TESSERA_FIELD(misaligned);
  TESSERA_FIELD(launch_share);
}

static void fields(Is<MemoryParameters<double>> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(l2_centre);
  TESSERA_FIELD(l2_slope);
  TESSERA_FIELD(l2_speedup);
  TESSERA_FIELD(softmax_row);
  TESSERA_FIELD(layer_norm_row);
  TESSERA_FIELD(wide_softmax);
}

static void fields(Is<ConvolutionParameters<double>> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(norm);
  TESSERA_FIELD(prologue);
  TESSERA_FIELD(memory);
  TESSERA_FIELD(transform);
  TESSERA_FIELD(implicit);
  TESSERA_FIELD(fused);
  TESSERA_FIELD(stage_seconds);
  TESSERA_FIELD(launch_share);
  TESSERA_FIELD(quantisation);
}

static void fields(Is<ConvolutionWeights> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(shift);
  TESSERA_FIELD(floor_seconds);
}

static void fields(Is<EffectRule> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(power_limit);
  TESSERA_FIELD(session_pooling);
}

static void fields(Is<LogSpread> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(gpu);
  TESSERA_FIELD(shape);
}

static void fields(Is<GpuEffect> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(gpu);
  TESSERA_FIELD(gemm_slowdown);
  TESSERA_FIELD(batched_slowdown);
  TESSERA_FIELD(sustained_flops);
  TESSERA_FIELD(reason);
}

static void fields(Is<TrainedGpu> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(die);
  TESSERA_FIELD(lanes_per_sm);
  TESSERA_FIELD(efficiency_steps);
  TESSERA_FIELD(hbm);
  TESSERA_FIELD(reached_flops);
}

static void fields(Is<TileExample> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(log_batch);
  TESSERA_FIELD(log_m);
  TESSERA_FIELD(log_n);
  TESSERA_FIELD(log_k);
  TESSERA_FIELD(tile_m);
  TESSERA_FIELD(tile_n);
}

static void fields(Is<LogoScore> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(form);
  TESSERA_FIELD(gpu);
  TESSERA_FIELD(op);
  TESSERA_FIELD(n);
  TESSERA_FIELD(mean_abs_error_pct);
  TESSERA_FIELD(median_abs_error_pct);
}

namespace {

[[noreturn]] void refuse_fp32(const std::filesystem::path& path, std::string what) {
  refuse_weights(path, std::move(what), "without --model, which replaces that section alone");
}

template <std::size_t N>
void read_values(const google::protobuf::RepeatedField<double>& from, std::array<double, N>& to,
                 const char* what, const std::filesystem::path& path) {
  if (from.size() != static_cast<int>(N))
    refuse_fp32(path, std::string("holds another number of ") + what + " than this version");
  std::copy(from.begin(), from.end(), to.begin());
}

void write(const GemmWeights& from, weights::Gemm& to) {
  write_fields(from.shared, to);
  for (const TileMenu<double>& from_menu : from.menus) {
    weights::TileMenu& menu = *to.add_menus();
    menu.set_quantisation(from_menu.quantisation);
    menu.mutable_penalty()->Assign(from_menu.penalty.begin(), from_menu.penalty.end());
  }
}

GemmWeights read(const weights::Gemm& from, const std::filesystem::path& path) {
  GemmWeights to;
  read_fields(from, to.shared);
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
  write_fields(from, to);
  to.mutable_launch_share()->Assign(from.launch_share.begin(), from.launch_share.end());
}

MemoryParameters<double> read(const weights::Memory& from, const std::filesystem::path& path) {
  MemoryParameters<double> to{};
  read_fields(from, to);
  read_values(from.launch_share(), to.launch_share, "memory classes", path);
  return to;
}

void write(const ConvolutionWeights& from, weights::Convolution& to) {
  write_fields(from, to);
  write_fields(from.shared, to);
  to.mutable_penalty()->Assign(from.shared.penalty.begin(), from.shared.penalty.end());
}

ConvolutionWeights read(const weights::Convolution& from, const std::filesystem::path& path) {
  ConvolutionWeights to;
  read_fields(from, to);
  read_fields(from, to.shared);
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
  write_fields(from, to);
  to.set_compute(static_cast<int>(from.compute));
}

EffectRule read(const weights::EffectRule& from, const std::filesystem::path& path) {
  if (from.compute() < 0 || from.compute() > static_cast<int>(ComputeRule::pooled))
    refuse_fp32(path, "names a rule for unseen GPUs that this version does not know");
  EffectRule to;
  to.compute = static_cast<ComputeRule>(from.compute());
  read_fields(from, to);
  return to;
}

void write(const SpreadByClass& from, google::protobuf::RepeatedPtrField<weights::Spread>& to) {
  for (const LogSpread& spread : from) write_fields(spread, *to.Add());
}

SpreadByClass read(const google::protobuf::RepeatedPtrField<weights::Spread>& from,
                   const std::filesystem::path& path) {
  if (from.size() != static_cast<int>(kSpreadClasses))
    refuse_fp32(path, "holds another number of spreads than this version");
  SpreadByClass to{};
  for (std::size_t c = 0; c < kSpreadClasses; ++c) read_fields(from[static_cast<int>(c)], to[c]);
  return to;
}

void write(const TrainedGpu& from, weights::Gpu& to) {
  write_fields(from, to);
  to.set_tdp_watts(from.tdp);
  const GpuEffect& effect = from.effect;
  write_fields(effect, to);
  to.mutable_bandwidth_slowdown()->Assign(effect.bandwidth_slowdown.begin(),
                                          effect.bandwidth_slowdown.end());
  const LaunchFloors& floors = effect.floors;
  for (const double floor :
       {floors.linear, floors.batched, floors.elementwise, floors.softmax, floors.layer_norm})
    to.add_launch_floor_seconds(floor);
  if (effect.convolution_slowdown) to.set_convolution_slowdown(*effect.convolution_slowdown);
  to.set_convolution_floor_seconds(floors.convolution);
}

TrainedGpu read(const weights::Gpu& from, const std::filesystem::path& path) {
  TrainedGpu to;
  read_fields(from, to);
  to.tdp = from.tdp_watts();
  GpuEffect& effect = to.effect;
  read_fields(from, effect);
  effect.provenance = EffectProvenance::measured;
  read_values(from.bandwidth_slowdown(), effect.bandwidth_slowdown, "memory classes", path);
  std::array<double, 5> floor{};
  read_values(from.launch_floor_seconds(), floor, "launch floors", path);
  effect.floors = {floor[0], floor[1], floor[2], floor[3], floor[4]};
  if (from.has_convolution_slowdown()) effect.convolution_slowdown = from.convolution_slowdown();
  effect.floors.convolution = from.convolution_floor_seconds();
  return to;
}

void write(const NeusightClass& from, weights::NeusightClass& to) {
  for (const int size : from.mlp.sizes) to.add_sizes(size);
  for (const double value : from.mlp.values) to.add_values(value);
  for (const double mean : from.feature_mean) to.add_feature_mean(mean);
  for (const double scale : from.feature_scale) to.add_feature_scale(scale);
  for (const TileExample& tile : from.tiles) {
    weights::TileExample& example = *to.add_tiles();
    write_fields(tile, example);
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
    TileExample& example = to.tiles.emplace_back();
    read_fields(tile, example);
    example.family = static_cast<SgemmFamily>(tile.family());
  }
  return to;
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
  for (const TrainingData& data : from.data) write_fields(data, *to.add_data());
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
  for (const LogoScore& score : from.logo) write_fields(score, *to.add_logo());
}

void read_fp32(const weights::Fp32& message, const std::filesystem::path& path,
               PredictorWeights& result) {
  check_versions(message, path);
  result.precision = message.precision();
  result.seed = message.seed();
  for (const auto& data : message.data()) read_fields(data, result.data.emplace_back());
  result.gemm = read(message.gemm(), path);
  result.batched = read(message.batched(), path);
  result.memory = read(message.memory(), path);
  if (message.has_convolution()) result.convolution = read(message.convolution(), path);
  result.rule = read(message.rule(), path);
  result.spreads = {read(message.measured_spreads(), path), read(message.rule_spreads(), path)};
  result.range = read(message.range(), path);
  for (const auto& gpu : message.gpus()) result.gpus.push_back(read(gpu, path));
  for (const auto& net : message.neusight()) result.neusight.push_back(read(net, path));
  for (const auto& score : message.logo()) read_fields(score, result.logo.emplace_back());
}

}  // namespace tessera
