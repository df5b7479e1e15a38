// The experts of one rank, as servers run them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lab/predict/memory_bound_predictor.h"
#include "lab/predict/serving_kernels.h"
#include "lab/predict/source_spreads.h"
#include "predictor/measured/kernel_csv.h"

namespace tessera {
namespace {

/// Log time of the products of all experts in one kernel against a plain product of as many tiles:
/// what A100, H100, GB200 and L40S choose of 0, 0.15, ... 0.6, each left out once (decision 41).
constexpr double kGroupedSlowdown = 0.45;

/// Calls are repeated on the same experts: those of L40S are .35 to .4 (log) too slow where weights
/// of up to 77 MB lie in its L2 and they are taken as cold, right beyond; no other GPU's L2 tells.
constexpr int kWarmSets = 1;

/// Clocks of an SM that a choice of an expert by a token takes, on whichever rank that expert is:
/// its score is found, sorted and looked up, and a thread block of the activation or of the sum may
/// start for it alone. Of 0, 25, ... 500 what A100, H100, GB200 and L40S choose; each left out, the
/// others choose 300 or 400 (decision 72).
constexpr double kClocksPerChoice = 300;

/// vLLM sums over so many choices of a token by kernels of its own, over more by PyTorch's
/// reduction
/// (`moe_sum` in csrc/moe/moe_align_sum_kernels.cu, recalled), which takes so many instructions for
/// an element read: what A100, H100 and L40S choose of 0, 20, ... 100; each left out, the others
/// choose 60 or 80 (decision 121).
constexpr std::int64_t kMostChoicesOfOwnSum = 4;
constexpr double kInstructionsOfSum = 60;
/// Instructions of single threads that an SM starts in a clock.
constexpr double kLanesPerClock = 128;

/// Radix sort passes over the experts' numbers (cub::DeviceRadixSort; recalled).
constexpr int kSortPasses = 6;

struct ExpertCall {
  std::int64_t tokens = 1, hidden = 1, ffn = 1, top_k = 1, experts = 1, ranks = 1;
  bool gated = true;
  double exponent = 0;  ///< of the routing; 0 = balanced
  const ProductFormat* format = nullptr;
  std::string_view stack;

  std::int64_t chosen() const { return tokens * top_k; }
  std::int64_t products() const { return (gated ? 2 : 1) * ffn; }
};

/// Shares of the experts, the largest first. "power_law_1.2": drawn from a density x^-1.2 between 1
/// and 0.8 of the tokens, or where there are fewer choices than experts between 0.01 and 2, as the
/// collection drew them (ai-dynamo/aiconfigurator collector); here its quantiles.
std::vector<double> expert_shares(const ExpertCall& call) {
  std::vector<double> shares(static_cast<std::size_t>(call.experts), 1.0);
  if (call.exponent <= 0) return shares;
  const bool many = call.chosen() > call.experts;
  const double power = 1 - call.exponent;
  const double least = std::pow(many ? 1.0 : 0.01, power);
  const double most =
      std::pow(many ? std::max(2.0, 0.8 * static_cast<double>(call.tokens)) : 2.0, power);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double rank = 1 - (static_cast<double>(i) + 0.5) / static_cast<double>(call.experts);
    shares[i] = std::pow((most - least) * rank + least, 1 / power);
  }
  return shares;
}

/// Whole rows that sum to the choices, no expert above one row a token.
std::vector<std::int64_t> whole_rows(const ExpertCall& call, const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::int64_t> rows;
  double wanted = 0;
  std::int64_t given = 0;
  for (const double share : shares) {  // carries what rounding left, so that the sum is right
    wanted += static_cast<double>(call.chosen()) * share / sum;
    const auto here = static_cast<std::int64_t>(std::ceil(wanted - 1e-9)) - given;
    rows.push_back(std::clamp<std::int64_t>(here, 0, call.tokens));
    given += std::max<std::int64_t>(0, here);
  }
  return rows;
}

/// Rows of each expert of the rank that has most to do; the largest first, dealt to ranks in turn.
std::vector<std::int64_t> rows_of_busiest_rank(const ExpertCall& call) {
  const std::vector<std::int64_t> all = whole_rows(call, expert_shares(call));
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(call.ranks))
    if (all[i] > 0) rows.push_back(all[i]);
  if (rows.empty()) rows.push_back(1);
  return rows;
}

/// Triton's fused experts gather on the fly, and rows of other ranks' experts pass through them all
/// the same, as zeros: the first product, the activation, the second product and the sum move every
/// choice of every token (vLLM fused_moe.py, `write_zeros_to_output`; SGLang's is made after it).
bool is_triton(std::string_view stack) {
  const auto says = [&](std::string_view word) { return stack.find(word) != stack.npos; };
  return !says("flashinfer") && (says("triton") || says("fused_moe"));
}

/// vLLM's experts by Triton.
bool is_vllms(const ExpertCall& call) {
  return call.stack.starts_with("vllm") && is_triton(call.stack);
}

/// Clocks of an SM for the instructions of `elements`.
double clocks_of(double instructions, double elements) {
  return instructions * elements / kLanesPerClock;
}

/// vLLM's loads one element at a time, as its gated activation in other models.
ServingKernel activation(const ExpertCall& call, std::int64_t rows) {
  ServingKernel kernel = pointwise(rows, call.products(), call.ffn);
  constexpr double kReadAndWritten = 4;  // [B] of an element
  if (is_vllms(call))
    kernel.busy_clocks =
        clocks_of(server_instructions(MemoryBoundOp::silu_mul),
                  static_cast<double>(kernel.kernel.bytes().value()) / kReadAndWritten);
  return kernel;
}

/// The weighted sum of `rows` results, for all tokens of the ranks.
ServingKernel sum_of_choices(const ExpertCall& call, std::int64_t rows) {
  ServingKernel sum = pointwise(rows, call.hidden, call.hidden);
  sum.kernel.bytes_written = Bytes(2 * call.tokens * call.hidden);
  if (is_vllms(call) && call.top_k > kMostChoicesOfOwnSum)
    sum.busy_clocks =
        clocks_of(kInstructionsOfSum, static_cast<double>(rows) * static_cast<double>(call.hidden));
  return sum;
}

void add_quantized(const ExpertCall& call, std::int64_t rows, std::int64_t columns,
                   std::vector<ServingKernel>& kernels) {
  if (call.format == nullptr) return;
  kernels.push_back({quantization_kernel(*call.format, rows, columns), {}});
}

/// The product of all experts; `passing` rows of 16 bits are written.
void add_experts(const ExpertCall& call, const std::vector<std::int64_t>& rows,
                 std::int64_t passing, std::int64_t n, std::int64_t k,
                 std::vector<ServingKernel>& kernels) {
  add_grouped(call.format, rows, n, k, kernels);
  ServingKernel& product = kernels.back();
  product.by_triton = is_triton(call.stack);
  product.loss.tiles += kGroupedSlowdown;
  product.loss.power += kGroupedSlowdown;
  product.kernel.bytes_written = Bytes(2 * passing * n);
}

std::vector<ServingKernel> kernels_of(const ExpertCall& call) {
  const std::vector<std::int64_t> rows = rows_of_busiest_rank(call);
  const std::int64_t own = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const bool all = is_triton(call.stack);
  const std::int64_t passing = all ? call.chosen() : own;
  std::vector<ServingKernel> kernels;
  for (int pass = 0; pass < kSortPasses; ++pass)
    kernels.push_back(pointwise(call.chosen(), 2, 2));  // 32-bit keys
  kernels.back().sm_clocks = kClocksPerChoice * static_cast<double>(call.chosen());
  if (!all) kernels.push_back(pointwise(own, call.hidden, call.hidden));
  add_quantized(call, all ? call.tokens : own, call.hidden, kernels);
  add_experts(call, rows, passing, call.products(), call.hidden, kernels);
  kernels.push_back(activation(call, passing));
  add_quantized(call, passing, call.ffn, kernels);
  add_experts(call, rows, passing, call.hidden, call.ffn, kernels);
  kernels.push_back(sum_of_choices(call, passing));
  return kernels;
}

/// 0 for balanced; empty, with a problem noted, for what is not known.
std::optional<double> routing_exponent(MeasuredTable& table, std::size_t column) {
  constexpr std::string_view kPowerLaw = "power_law_";
  const std::string_view routing = table.text(column);
  if (routing == "balanced" || routing == "uniform" || routing.empty()) return 0;
  if (routing.starts_with(kPowerLaw)) {
    const auto value = parse_number<double>(routing.substr(kPowerLaw.size()));
    if (value && *value > 1 && *value < 10) return *value;
  }
  table.problem("routing = '" + std::string(routing) + "' is not known",
                "balanced, or power_law_x with x above 1");
  return std::nullopt;
}

bool possible(MeasuredTable& table, const ExpertCall& call) {
  if (call.experts <= 65536 && call.ranks <= call.experts && call.top_k <= call.experts)
    return fits(
        table, static_cast<double>(call.chosen()) * static_cast<double>(call.hidden) +
                   static_cast<double>(call.experts * call.hidden) * static_cast<double>(call.ffn));
  table.problem("experts = " + std::to_string(call.experts) + " cannot be split so",
                "at most 65536 experts, no more ranks or choices than experts");
  return false;
}

}  // namespace

const std::vector<std::string> kExpertColumns{"gpu",    "latency_us", "dtype",  "num_tokens",
                                              "hidden", "ffn",        "top_k",  "experts",
                                              "tp",     "ep",         "routing"};
const std::vector<std::string> kExpertOptional{"gated", "stack"};

std::optional<ServingCall> read_expert_call(MeasuredTable& table) {
  std::int64_t sizes[7];
  ExpertCall call;
  if (!read_format(table, 2, call.format) || !read_sizes(table, {3, 4, 5, 6, 7, 8, 9}, sizes))
    return std::nullopt;
  const auto exponent = routing_exponent(table, 10);
  if (!exponent) return std::nullopt;
  call.tokens = sizes[0];
  call.hidden = sizes[1];
  call.ffn = std::max<std::int64_t>(1, sizes[2] / sizes[5]);
  call.top_k = sizes[3];
  call.experts = sizes[4];
  call.ranks = sizes[6];
  call.gated = table.text(11) != "0";
  call.exponent = *exponent;
  call.stack = table.text(12);
  if (!possible(table, call)) return std::nullopt;
  return ServingCall{.gpu = {},
                     .name = with_format("experts", table.text(2)),
                     .stand_in = "sort, permute, two grouped products, activation, weighted sum",
                     .stack = std::string(call.stack),
                     .kernels = kernels_of(call),
                     .source_spread = source_spread::kExperts,
                     .warm_sets = kWarmSets};
}

}  // namespace tessera
