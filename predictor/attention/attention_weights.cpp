#include "predictor/attention/attention_weights.h"

#include <cmath>

#include "predictor/weights/field_list.h"
#include "predictor/weights/refuse_weights.h"
#include "predictor/weights/weights.pb.h"

namespace tessera {

// Found by the types of their arguments, which a namespace without a name would prevent.
static void fields(Is<AttentionProfile> auto& value, auto& message, const auto& each) {
  TESSERA_FIELD(gpu);
  TESSERA_FIELD(stack);
  TESSERA_FIELD(served);
  TESSERA_FIELD(causal);
  TESSERA_FIELD(full);
  TESSERA_FIELD(bulk_copies);
  TESSERA_FIELD(spread);
}

namespace {

[[noreturn]] void refuse_attention(const std::filesystem::path& path, std::string what) {
  refuse_weights(path, std::move(what),
                 "with --model attention, which replaces that section alone");
}

void check_version(unsigned found, int expected, const std::filesystem::path& path) {
  if (found == static_cast<unsigned>(expected)) return;
  refuse_attention(path, "has 16-bit kernels of schema version " + std::to_string(found) +
                             "; this program reads " + std::to_string(expected));
}

template <std::size_t N>
void read_values(const google::protobuf::RepeatedField<double>& from, std::array<double, N>& to,
                 const std::filesystem::path& path) {
  if (from.size() != static_cast<int>(N))
    refuse_attention(path, "holds another number of parameters than this version");
  for (std::size_t i = 0; i < N; ++i) {
    to[i] = from[static_cast<int>(i)];
    if (!std::isfinite(to[i])) refuse_attention(path, "holds a parameter that is no number");
  }
}

void write(const AttentionProfile& from, weights::AttentionProfile& to) {
  write_fields(from, to);
  to.set_implementation(static_cast<unsigned>(from.implementation));
  to.mutable_parameters()->Assign(from.parameters.begin(), from.parameters.end());
}

AttentionProfile read(const weights::AttentionProfile& from, const std::filesystem::path& path) {
  if (from.implementation() >= kAttentionImplementations)
    refuse_attention(path, "names an implementation that this version does not know");
  AttentionProfile to;
  to.implementation = static_cast<AttentionImplementation>(from.implementation());
  read_fields(from, to);
  read_values(from.parameters(), to.parameters, path);
  return to;
}

}  // namespace

AttentionWeights attention_weights(const weights::Attention& from,
                                   const std::filesystem::path& path) {
  check_version(from.schema_version(), AttentionWeights::kSchemaVersion, path);
  AttentionWeights to;
  read_fields(from.data(), to.data);
  to.backward = {.at_2048 = from.backward_at_2048(), .slope = from.backward_slope()};
  std::array<double, 3> flash1{};
  read_values(from.flash1(), flash1, path);
  to.flash1 = {.log_at_64 = flash1[0], .per_doubling = flash1[1], .at_512 = flash1[2]};
  to.copied_spread = from.copied_spread();
  for (const auto& profile : from.profiles()) to.profiles.push_back(read(profile, path));
  read_values(from.range(), to.range, path);
  return to;
}

void write(const AttentionWeights& from, weights::Attention& to) {
  to.set_schema_version(AttentionWeights::kSchemaVersion);
  write_fields(from.data, *to.mutable_data());
  for (const AttentionProfile& profile : from.profiles) write(profile, *to.add_profiles());
  to.set_backward_at_2048(from.backward.at_2048);
  to.set_backward_slope(from.backward.slope);
  for (const double value : {from.flash1.log_at_64, from.flash1.per_doubling, from.flash1.at_512})
    to.add_flash1(value);
  to.set_copied_spread(from.copied_spread);
  to.mutable_range()->Assign(from.range.begin(), from.range.end());
}

}  // namespace tessera
