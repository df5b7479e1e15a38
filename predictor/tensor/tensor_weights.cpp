#include "predictor/tensor/tensor_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "predictor/weights/field_list.h"
#include "predictor/weights/refuse_weights.h"
#include "predictor/weights/weights.pb.h"

namespace tessera {

// Found by the types of their arguments, which a namespace without a name would prevent.
static void fields(Is<TensorStackWeights> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(name);
  TESSERA_FIELD(rows);
}

static void fields(Is<TensorGpuWeights> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(gpu);
  TESSERA_FIELD(die);
  TESSERA_FIELD(watts_per_flops);
  TESSERA_FIELD(clock);
  TESSERA_FIELD(stack_spread);
  TESSERA_FIELD(long_spread);
  TESSERA_FIELD(short_spread);
}

static void fields(Is<TensorWeights> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(file);
  TESSERA_FIELD(fnv1a);
  TESSERA_FIELD(rows);
  TESSERA_FIELD(quantisation_rule);
}

namespace {

[[noreturn]] void refuse_tensor(const std::filesystem::path& path, std::string what) {
  refuse_weights(path, std::move(what),
                 "with --model tensor-gemm, which replaces that section alone");
}

template <std::size_t N>
void write(const std::array<double, N>& from, google::protobuf::RepeatedField<double>& to) {
  to.Assign(from.begin(), from.end());
}

template <std::size_t N>
std::array<double, N> read_values(const google::protobuf::RepeatedField<double>& from,
                                  const char* what, const std::filesystem::path& path) {
  std::array<double, N> to;
  if (from.size() != static_cast<int>(N))
    refuse_tensor(path, std::string("holds another number of ") + what + " than this version");
  std::copy(from.begin(), from.end(), to.begin());
  if (!std::ranges::all_of(to, [](double x) { return std::isfinite(x); }))
    refuse_tensor(path, std::string("holds ") + what + " that are no numbers");
  return to;
}

template <class Parameters>
Parameters read_parameters(const google::protobuf::RepeatedField<double>& from, const char* what,
                           const std::filesystem::path& path) {
  const std::array<double, Parameters::kCount> values =
      read_values<Parameters::kCount>(from, what, path);
  return Parameters::from_values(values);
}

Precision read_precision(const std::string& name, const std::filesystem::path& path) {
  const auto named = std::ranges::find(kAllPrecisions, name,
                                       [](Precision precision) { return name_of(precision); });
  if (named == kAllPrecisions.end()) refuse_tensor(path, "names the number format '" + name + "'");
  return *named;
}

/// What the formulas rely on.
void check(const TensorParameters<double>& p, const std::filesystem::path& path) {
  const bool sound = p.prologue >= 0 && p.split_seconds >= 0 && p.norm >= 1 && p.l2_gain > 0 &&
                     std::ranges::all_of(p.penalty, [](double x) { return x >= 0; });
  if (!sound) refuse_tensor(path, "holds shared parameters outside of their range");
}

void check(const TensorStackWeights& stack, const std::filesystem::path& path) {
  const TensorStackEffect<double>& effect = stack.effect;
  const bool sound = effect.quantisation >= 0 && effect.quantisation <= 1 &&
                     effect.launch_seconds >= 0 && stack.rows > 0;
  if (!sound)
    refuse_tensor(path, "holds effects of the library '" + stack.name + "' outside of their range");
}

void write(const TensorStackWeights& from, weights::TensorStack& to) {
  write_fields(from, to);
  to.set_precision(std::string(name_of(from.precision)));
  write(from.effect.values(), *to.mutable_effect());
}

TensorStackWeights read(const weights::TensorStack& from, const std::filesystem::path& path) {
  TensorStackWeights to;
  to.precision = read_precision(from.precision(), path);
  to.effect =
      read_parameters<TensorStackEffect<double>>(from.effect(), "effects of a library", path);
  read_fields(from, to);
  check(to, path);
  return to;
}

void write(const TensorGpuWeights& from, weights::TensorGpu& to) {
  write_fields(from, to);
  to.set_architecture(std::string(name_of(from.architecture)));
  write(from.effect.values(), *to.mutable_effect());
  for (const TensorStackWeights& stack : from.stacks) write(stack, *to.add_stacks());
}

TensorGpuWeights read(const weights::TensorGpu& from, const std::filesystem::path& path) {
  const std::optional<Architecture> named = architecture_called(from.architecture());
  if (!named)
    refuse_tensor(path, "names the architecture '" + from.architecture() + "', which is unknown");
  TensorGpuWeights to;
  to.architecture = *named;
  to.effect = read_parameters<TensorGpuEffect<double>>(from.effect(), "effects of a GPU", path);
  read_fields(from, to);
  for (const weights::TensorStack& stack : from.stacks()) to.stacks.push_back(read(stack, path));
  if (to.stacks.empty()) refuse_tensor(path, "holds no library for " + to.gpu);
  return to;
}

}  // namespace

void write(const TensorWeights& from, weights::TensorGemm& to) {
  to.set_schema_version(TensorWeights::kSchemaVersion);
  write_fields(from, to);
  write(from.shared.values(), *to.mutable_shared());
  for (const TensorGpuWeights& gpu : from.gpus) write(gpu, *to.add_gpus());
  write(from.range, *to.mutable_range());
}

TensorWeights tensor_weights(const weights::TensorGemm& message,
                             const std::filesystem::path& path) {
  if (message.schema_version() != TensorWeights::kSchemaVersion)
    refuse_tensor(path, "has tensor-core products of schema version " +
                            std::to_string(message.schema_version()) + ", not " +
                            std::to_string(TensorWeights::kSchemaVersion));
  TensorWeights weights;
  weights.shared =
      read_parameters<TensorParameters<double>>(message.shared(), "shared parameters", path);
  weights.range = read_values<std::tuple_size_v<GemmRange>>(message.range(), "largest sizes", path);
  read_fields(message, weights);
  check(weights.shared, path);
  for (const weights::TensorGpu& gpu : message.gpus()) weights.gpus.push_back(read(gpu, path));
  if (weights.gpus.empty()) refuse_tensor(path, "holds no GPU with tensor cores");
  return weights;
}

}  // namespace tessera
