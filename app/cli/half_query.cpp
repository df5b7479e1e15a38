#include "app/cli/half_query.h"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

#include "hw/units/input_error.h"
#include "predictor/gpu/gpu_support.h"
#include "predictor/measured/kernel_csv.h"
#include "sim/config/suggest.h"

namespace tessera {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 30;

[[noreturn]] void fail(std::string where, std::string what, std::string hint) {
  throw InputError({std::move(where), std::move(what), std::move(hint)});
}

/// `name` is one of `names`; throws InputError with a suggestion otherwise.
template <class Names>
std::size_t chosen(const char* option, const std::string& name, const Names& names) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    fail(option, "'" + name + "' is not known",
         suggestion(name, std::vector<std::string>(names.begin(), names.end())));
  return static_cast<std::size_t>(found - names.begin());
}

std::int64_t size_of(const KernelOptions& options, const char* name,
                     std::optional<std::int64_t> usual = std::nullopt) {
  const auto found = options.sizes.find(name);
  const auto given = found == options.sizes.end() ? std::nullopt : found->second;
  const auto value = given ? given : usual;
  const std::string where = "--" + std::string(name);
  if (!value) fail(where, "is missing", options.op + " needs it");
  if (*value < 1 || *value > kMaxSize)
    fail(where, std::to_string(*value) + " is not a size", "a whole number from 1 to 2^30");
  return *value;
}

/// A size without effect would be mistaken for one that has some.
void refuse_others(const KernelOptions& options, std::initializer_list<const char*> used) {
  for (const auto& [name, value] : options.sizes)
    if (value && std::ranges::find(used, name) == used.end())
      fail("--" + name, options.op + " has no such size", "leave it out");
}

void refuse_options(const KernelOptions& options, bool attention) {
  const auto refuse = [&](const char* option, const std::string& value) {
    if (!value.empty()) fail(option, "is none of " + options.op, "leave it out");
  };
  if (attention) {
    refuse("--layout", options.layout);
    refuse("--groups", options.groups);
    return;
  }
  refuse("--implementation", options.implementation);
  refuse("--direction", options.direction);
  refuse("--mask", options.mask);
}

AttentionImplementation implementation_of(const KernelOptions& options, const GpuSpec& gpu) {
  if (options.implementation.empty())
    return fastest_implementation(gpu).value_or(AttentionImplementation::flash2);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kAttentionImplementations; ++i)
    names.emplace_back(name_of(static_cast<AttentionImplementation>(i)));
  return static_cast<AttentionImplementation>(
      chosen("--implementation", options.implementation, names));
}

std::vector<std::int64_t> group_sizes(const std::string& text) {
  std::vector<std::int64_t> groups;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto rows = parse_number<std::int64_t>(word);
    if (!rows || *rows < 0 || *rows > kMaxSize)
      fail("--groups", "'" + word + "' is not a number of rows", "for instance 128,64,300");
    groups.push_back(*rows);
  }
  if (groups.empty()) fail("--groups", "is missing", "rows of each group, for instance 128,64,300");
  return groups;
}

}  // namespace

KernelQuery attention_query(const KernelOptions& options, const GpuSpec& gpu) {
  refuse_options(options, true);
  refuse_others(options, {"batch", "heads", "kv-heads", "head-dim", "seq", "seq-kv"});
  constexpr std::array<std::string_view, 3> kDirections{"forward", "backward", "forward+backward"};
  AttentionCall call{.implementation = implementation_of(options, gpu)};
  if (!options.direction.empty())
    call.direction =
        static_cast<AttentionDirection>(chosen("--direction", options.direction, kDirections));
  constexpr std::array<std::string_view, 2> kMasks{"causal", "full"};
  call.causal = options.mask.empty() || chosen("--mask", options.mask, kMasks) == 0;
  call.batch = size_of(options, "batch", 1);
  call.heads = size_of(options, "heads");
  call.kv_heads = size_of(options, "kv-heads", call.heads);
  call.head_dim = size_of(options, "head-dim");
  call.seq_q = size_of(options, "seq");
  call.seq_kv = size_of(options, "seq-kv", call.seq_q);
  check(call);
  KernelQuery query{.op = "attention",
                    .sizes = {{"batch", call.batch},
                              {"heads", call.heads},
                              {"kv_heads", call.kv_heads},
                              {"head_dim", call.head_dim},
                              {"seq_q", call.seq_q},
                              {"seq_kv", call.seq_kv}},
                    .call = {},
                    .kernel = {}};
  query.kernel.kind = KernelKind::attention;
  query.kernel.precision =
      options.precision.empty() ? Precision::bf16 : parse_precision(options.precision);
  query.kernel.attention = call;
  query.kernel.flops = Flops(attention_flops(call));
  query.kernel.bytes_read = Bytes(static_cast<std::int64_t>(attention_bytes(call)));
  return query;
}

KernelQuery grouped_query(const KernelOptions& options) {
  refuse_options(options, false);
  refuse_others(options, {"n", "k"});
  KernelQuery query{.op = "grouped_gemm", .sizes = {}, .call = {}, .kernel = {}};
  Kernel& kernel = query.kernel;
  kernel.kind = KernelKind::grouped_gemm;
  kernel.precision =
      options.precision.empty() ? Precision::bf16 : parse_precision(options.precision);
  kernel.group_sizes = group_sizes(options.groups);
  kernel.n = size_of(options, "n");
  kernel.k = size_of(options, "k");
  for (const std::int64_t rows : kernel.group_sizes) kernel.m += rows;
  if (kernel.m == 0) fail("--groups", "hold no row", "at least one group has rows");
  const auto groups = static_cast<std::int64_t>(kernel.group_sizes.size());
  query.sizes = {{"groups", groups}, {"m", kernel.m}, {"n", kernel.n}, {"k", kernel.k}};
  if (options.layout == "nn") kernel.layout = GemmLayout::nn;
  if (options.layout == "nt")
    fail("--layout", "nt has groups of unequal contraction", "tn or nn, with groups of rows");
  const double m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n),
               k = static_cast<double>(kernel.k);
  if (std::max({m * k, m * n, static_cast<double>(groups) * n * k}) > 0x1.0p58)
    fail("sizes", "a tensor holds more than 2^58 elements", "no GPU holds it");
  const std::int64_t width = element_bytes(kernel.precision);
  kernel.flops = Flops(2 * m * n * k);
  kernel.bytes_read = Bytes(width * (kernel.m * kernel.k + groups * kernel.n * kernel.k));
  kernel.bytes_written = Bytes(width * kernel.m * kernel.n);
  return query;
}

}  // namespace tessera
