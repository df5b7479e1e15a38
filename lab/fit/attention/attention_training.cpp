#include "lab/fit/attention/attention_training.h"

#include <algorithm>
#include <cmath>

#include "hw/units/input_error.h"
#include "lab/fit/least_absolute.h"

namespace tessera {
namespace {

constexpr double kLeastSeconds = 50e-6;
constexpr std::int64_t kLeastKeys = 512;
// Mean |log error| of a normal distribution is 0.8 standard deviations.
constexpr double kDeviations = 1.25;
// Of FA2 on A100 <-> FA3 on H100, share of peak copied: table in results/predictor/attention.txt.
constexpr double kCopiedSpread = 0.20;
// Where a group holds no held-out call: figures, whose labels are read to about 1 %.
constexpr double kFigureSpread = 0.08;
// The ratio was fitted on one GPU.
constexpr const char* kRatioGpu = "H100-SXM5-80GB";

bool same_shape(const AttentionCall& a, const AttentionCall& b) {
  return a.causal == b.causal && a.batch == b.batch && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.seq_q == b.seq_q &&
         a.seq_kv == b.seq_kv;
}

/// Held-out errors of the group as a standard deviation of log time.
double spread_of(const AttentionGroup& group, const AttentionVector& x) {
  const auto rows = judged_rows(group, kLeastKeys);
  if (rows.empty()) return kFigureSpread;
  double sum = 0;
  for (const AttentionMeasurement* row : rows)
    sum += std::abs(attention_residual<double>(attention_shape(row->call), row->seconds,
                                               group.traits, row->served, x));
  return kDeviations * sum / static_cast<double>(rows.size());
}

/// What a profile did not see, from a profile of the same implementation that did: the figures of
/// FlashAttention hold neither grouped heads nor head_dim above 128, the servers' calls on A100
/// neither head_dim 64 nor full attention.
void fill_gaps(std::vector<AttentionProfile>& profiles) {
  for (AttentionProfile& to : profiles) {
    for (const AttentionProfile& from : profiles) {
      if (from.implementation != to.implementation || from.served == to.served) continue;
      if (!to.served && from.causal && from.gpu == to.gpu)
        for (const auto i : {kHead192, kHead256, kGrouped, kPadding})
          to.parameters[i] = from.parameters[i];
      if (to.served && to.implementation == AttentionImplementation::flash2) {
        to.parameters[kHead64] = from.parameters[kHead64];
        // Fitted to causal calls alone, the efficiency holds the cost of the mask.
        to.parameters[kCausal] = from.parameters[kCausal];
        to.parameters[kEfficiency] += from.parameters[kCausal];
      }
    }
  }
}

}  // namespace

std::vector<BackwardPair> backward_pairs(const AttentionTable& table) {
  std::vector<BackwardPair> pairs;
  for (const AttentionMeasurement& both : table.rows) {
    if (!both.fused || both.call.direction != AttentionDirection::forward_backward) continue;
    const auto forward = std::ranges::find_if(table.rows, [&](const AttentionMeasurement& row) {
      return row.call.direction == AttentionDirection::forward && row.gpu == both.gpu &&
             row.stack == both.stack && same_shape(row.call, both.call);
    });
    if (forward != table.rows.end()) pairs.push_back({&*forward, &both});
  }
  return pairs;
}

BackwardRatio fit_backward(const AttentionTable& table) {
  std::vector<BackwardPair> pairs = backward_pairs(table);
  std::erase_if(pairs, [](const BackwardPair& pair) {
    return pair.both->gpu != kRatioGpu || pair.both->seconds <= pair.forward->seconds;
  });
  BackwardRatio ratio;
  if (pairs.empty()) return ratio;
  LeastAbsoluteProblem problem;
  problem.rows = pairs.size();
  problem.weights.assign(pairs.size(), 1.0);
  problem.start = Eigen::Vector2d(std::log(ratio.at_2048), ratio.slope);
  problem.pull = Eigen::Vector2d::Constant(kWeakPull);
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& x, bool, RowResidual& out) {
    const BackwardPair& pair = pairs[row];
    const double octaves = std::log(static_cast<double>(pair.both->call.seq_kv) / 2048);
    out.value = x(0) - x(1) * octaves - std::log(pair.both->seconds / pair.forward->seconds - 1);
    out.derivatives = {{0, 1.0}, {1, -octaves}};
  };
  const Eigen::VectorXd x = fit_least_absolute(problem).parameters;
  return {.at_2048 = std::exp(x(0)), .slope = x(1)};
}

Flash1Ratio fit_flash1(const AttentionTable& table) {
  struct Pair {
    const AttentionMeasurement *first, *second;
  };
  std::vector<Pair> pairs;
  for (const AttentionMeasurement& first : table.rows) {
    if (first.stack != "FlashAttention-1") continue;
    const auto second = std::ranges::find_if(table.rows, [&](const AttentionMeasurement& row) {
      return row.stack == "FlashAttention-2" && row.gpu == first.gpu &&
             row.call.direction == first.call.direction && same_shape(row.call, first.call);
    });
    if (second != table.rows.end()) pairs.push_back({&first, &*second});
  }
  Flash1Ratio ratio;
  if (pairs.empty()) return ratio;
  LeastAbsoluteProblem problem;
  problem.rows = pairs.size();
  problem.weights.assign(pairs.size(), 1.0);
  problem.start = Eigen::Vector3d(std::log(1.8), 0.3, 0.2);
  problem.pull = Eigen::Vector3d::Constant(kWeakPull);
  problem.residual = [&](std::size_t row, const Eigen::VectorXd& x, bool, RowResidual& out) {
    const auto& [first, second] = pairs[row];
    const double doublings = std::log2(static_cast<double>(first->call.head_dim) / 64);
    const double shortness = 512 / static_cast<double>(first->call.seq_kv);
    out.value =
        x(0) + x(1) * doublings - x(2) * shortness - std::log(first->seconds / second->seconds);
    out.derivatives = {{0, 1.0}, {1, doublings}, {2, -shortness}};
  };
  const Eigen::VectorXd x = fit_least_absolute(problem).parameters;
  return {.log_at_64 = x(0), .per_doubling = x(1), .at_512 = x(2)};
}

std::vector<const AttentionMeasurement*> judged_rows(const AttentionGroup& group,
                                                     std::int64_t least_keys) {
  std::vector<const AttentionMeasurement*> rows;
  std::ranges::copy_if(group.rows, std::back_inserter(rows), [&](const auto* row) {
    return row->held_out && row->seconds >= kLeastSeconds && row->call.seq_kv >= least_keys;
  });
  return rows;
}

namespace {

/// Largest sizes of the calls that were fitted.
std::array<double, 4> range_of(const std::vector<AttentionGroup>& groups) {
  std::array<double, 4> range{};
  for (const AttentionGroup& group : groups) {
    for (const AttentionMeasurement* row : group.rows) {
      if (row->held_out) continue;
      const AttentionCall& call = row->call;
      const std::array sizes{call.batch, call.heads, call.seq_kv, call.head_dim};
      for (std::size_t i = 0; i < sizes.size(); ++i)
        range[i] = std::max(range[i], static_cast<double>(sizes[i]));
    }
  }
  return range;
}

}  // namespace

AttentionWeights train_attention(const AttentionTable& table, const GpuLookup& lookup) {
  const std::vector<AttentionGroup> groups = attention_groups(table, lookup);
  if (groups.empty())
    throw InputError({table.file, "holds no forward call of fused attention",
                      "the format is that of measurements/kernels/attention.csv"});
  const AttentionFit fit = fit_attention(groups);
  AttentionWeights weights{.data = {.file = table.file, .fnv1a = table.fnv1a, .rows = 0},
                           .profiles = {},
                           .backward = fit_backward(table),
                           .flash1 = fit_flash1(table),
                           .copied_spread = kCopiedSpread,
                           .range = range_of(groups)};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const AttentionGroup& group = groups[g];
    weights.data.rows += std::ranges::count_if(
        group.rows, [](const AttentionMeasurement* row) { return !row->held_out; });
    weights.profiles.push_back({.gpu = group.gpu,
                                .stack = group.stack,
                                .implementation = group.implementation,
                                .served = group.served,
                                .causal = !group.full_alone,
                                .full = !group.causal_alone,
                                .bulk_copies = lookup(group.gpu).copies_in_bulk(),
                                .parameters = fit.parameters[g],
                                .spread = spread_of(group, fit.parameters[g])});
  }
  fill_gaps(weights.profiles);
  return weights;
}

}  // namespace tessera
