#include "lab/fit/attention/attention_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "lab/fit/dual.h"
#include "lab/fit/least_absolute.h"

namespace tessera {
namespace {

constexpr int kN = kAttentionParameters;
constexpr int kShared = kQuantisation;  ///< parameters common to all groups
constexpr int kOfGroup = kN - kShared;
using Gradient = Dual<kN>;

/// A plausible kernel: what the public descriptions of FlashAttention suggest.
constexpr AttentionVector kStart{-2,  -.7, -.25,  .8,  // norms, memory, cache
                                 0,   -.7, -.693,      // quantisation, longest, exponentials
                                 -.4, 1.6, 0,     0,  0, 0, 0, 0, 0};
// The loss is the same within 0.1 % for 0 to 1.4 times the exponentials: head_dim effects and
// efficiency take their place. Half of them is kept as the term's share.
constexpr double kHalfOfExponentials = -.693;
constexpr double kTraining = 1.386;  // launch of 4 us
constexpr double kFixed = 1e6;       // pull that keeps a parameter where it is
constexpr double kGroupPull = 1e-3;  // towards the start: head sizes that a group never saw

/// Standard deviations, in unconstrained space, around values copied from another GPU. Launch and
/// conversion belong to the software around the kernel, which is another one.
constexpr std::array<std::pair<AttentionParameter, double>, 6> kPriors{{{kEfficiency, 0.15},
                                                                        {kExponentials, 0.15},
                                                                        {kQuantisation, 0.5},
                                                                        {kLongestBlock, 0.3},
                                                                        {kLaunch, 0.5},
                                                                        {kConversion, 1.5}}};

/// Short calls say more of the launch than of the kernel.
double duration_weight(double seconds) {
  return seconds < 10e-6 ? 0.3 : seconds < 50e-6 ? 0.7 : 1.0;
}

/// Below this many keys nothing but the launch is timed.
constexpr std::int64_t kLeastKeys = 64;

struct Row {
  std::size_t group = 0;
  AttentionShape shape;
  double seconds = 0;
  bool served = false;
};

/// Place of parameter `i` of `group` in the one vector of all groups.
int place(std::size_t group, int i) {
  return i < kShared ? i : kOfGroup * static_cast<int>(group) + i;
}

class Residuals {
 public:
  Residuals(const std::vector<AttentionGroup>& groups, std::vector<Row> rows)
      : groups_(groups), rows_(std::move(rows)) {}

  const std::vector<Row>& rows() const { return rows_; }

  AttentionVector vector(std::size_t group, const Eigen::VectorXd& all) const {
    AttentionVector x{};
    for (int i = 0; i < kN; ++i) x[i] = all(place(group, i));
    return x;
  }
  void prepare(const Eigen::VectorXd& all) {
    values_.clear();
    gradients_.clear();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const AttentionVector x = vector(g, all);
      std::array<Gradient, kN> duals;
      for (int i = 0; i < kN; ++i) duals[i] = Gradient::variable(x[i], i);
      values_.push_back(
          AttentionParameters<double>::from_unconstrained(std::span<const double>(x)));
      gradients_.push_back(
          AttentionParameters<Gradient>::from_unconstrained(std::span<const Gradient>(duals)));
    }
  }
  void residual(std::size_t i, bool derivatives, RowResidual& out) const {
    const Row& row = rows_[i];
    const AttentionGpu& gpu = groups_[row.group].traits;
    out.derivatives.clear();
    if (!derivatives) {
      out.value = std::log(attention_time(row.shape, gpu, values_[row.group], row.served).total /
                           row.seconds);
      return;
    }
    const Gradient time =
        log(attention_time(row.shape, gpu, gradients_[row.group], row.served).total);
    out.value = time.value - std::log(row.seconds);
    for (int p = 0; p < kN; ++p)
      out.derivatives.push_back({place(row.group, p), time.derivatives(p)});
  }

 private:
  const std::vector<AttentionGroup>& groups_;
  std::vector<Row> rows_;
  std::vector<AttentionParameters<double>> values_;
  std::vector<AttentionParameters<Gradient>> gradients_;
};

/// Which form rearranges small heads: the one of all groups, or each group's own.
enum class SmallHeads : std::uint8_t { by_bytes, as_built };

AttentionShape fitted_shape(const AttentionCall& call, SmallHeads heads) {
  AttentionShape shape = attention_shape(call);
  if (heads == SmallHeads::by_bytes) shape.rearranged_bytes = shape.query_bytes;
  return shape;
}

std::vector<Row> fitted_rows(const std::vector<AttentionGroup>& groups, std::size_t stride,
                             SmallHeads heads) {
  std::vector<Row> rows;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::size_t seen = 0;
    for (const AttentionMeasurement* row : groups[g].rows) {
      if (row->held_out || row->call.seq_kv < kLeastKeys) continue;
      if (groups[g].by_eye || seen++ % stride == 0)
        rows.push_back({g, fitted_shape(row->call, heads), row->seconds, row->served});
    }
  }
  return rows;
}

/// Every group counts by the square root of its rows.
std::vector<double> row_weights(const std::vector<Row>& rows, std::size_t groups) {
  std::vector<double> counts(groups, 0.0), weights;
  for (const Row& row : rows) counts[row.group] += 1;
  for (const Row& row : rows)
    weights.push_back(duration_weight(row.seconds) / std::sqrt(counts[row.group]));
  return weights;
}

LeastAbsoluteProblem problem_of(const std::vector<AttentionGroup>& groups, Residuals& residuals,
                                const AttentionAblation& ablation) {
  const int size = kShared + kOfGroup * static_cast<int>(groups.size());
  LeastAbsoluteProblem problem;
  problem.rows = residuals.rows().size();
  problem.weights = row_weights(residuals.rows(), groups.size());
  problem.start = Eigen::VectorXd::Zero(size);
  problem.pull = Eigen::VectorXd::Constant(size, kWeakPull);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto fix = [&](int parameter, double value) {
      problem.start(place(g, parameter)) = value;
      problem.pull(place(g, parameter)) = kFixed;
    };
    for (int i = 0; i < kN; ++i) problem.start(place(g, i)) = kStart[i];
    for (const int i : {kHead64, kHead192, kHead256, kGrouped, kCausal})
      problem.pull(place(g, i)) = kGroupPull;
    fix(kExponentials, kHalfOfExponentials);
    // A server's group has one mask, so its efficiency tells all; figures time no short calls.
    if (groups[g].served) fix(kCausal, 0);
    if (!groups[g].served) fix(kLaunch, kTraining);
    for (const auto& [parameter, value] : ablation.fixed) fix(parameter, value);
  }
  problem.prepare = [&](const Eigen::VectorXd& x) { residuals.prepare(x); };
  problem.residual = [&](std::size_t row, const Eigen::VectorXd&, bool derivatives,
                         RowResidual& out) { residuals.residual(row, derivatives, out); };
  return problem;
}

/// Rearranging small heads is TensorRT-LLM's alone: it moves what is fitted to its calls, not what
/// all kernels share, those of training among them.
void keep_all_but_own_terms(LeastAbsoluteProblem& problem,
                            const std::vector<AttentionGroup>& groups,
                            const Eigen::VectorXd& common) {
  problem.start = common;
  problem.pull.head(kShared).setConstant(kFixed);
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (groups[g].implementation != AttentionImplementation::trtllm)
      problem.pull.segment(place(g, kShared), kOfGroup).setConstant(kFixed);
}

}  // namespace

std::vector<AttentionGroup> attention_groups(const AttentionTable& table, const GpuLookup& lookup) {
  std::map<std::tuple<std::string, std::string, bool>, AttentionGroup> groups;
  for (const AttentionMeasurement& row : table.rows) {
    if (!row.fused || row.call.direction != AttentionDirection::forward) continue;
    AttentionGroup& group = groups[{row.gpu, row.stack, row.served && !row.call.causal}];
    group.gpu = row.gpu;
    group.stack = row.stack;
    group.implementation = row.call.implementation;
    group.served = row.served;
    group.by_eye = row.by_eye;
    group.causal_alone = row.served && row.call.causal;
    group.full_alone = row.served && !row.call.causal;
    group.rows.push_back(&row);
  }
  std::vector<AttentionGroup> result;
  for (auto& [key, group] : groups) {
    group.traits = attention_gpu(lookup(group.gpu));
    result.push_back(std::move(group));
  }
  return result;
}

AttentionFit fit_attention(const std::vector<AttentionGroup>& groups,
                           const AttentionAblation& ablation, std::size_t stride) {
  Residuals alike(groups, fitted_rows(groups, stride, SmallHeads::by_bytes));
  const FitReport common = fit_least_absolute(problem_of(groups, alike, ablation));
  Residuals residuals(groups, fitted_rows(groups, stride, SmallHeads::as_built));
  LeastAbsoluteProblem problem = problem_of(groups, residuals, ablation);
  keep_all_but_own_terms(problem, groups, common.parameters);
  const FitReport report = fit_least_absolute(problem);
  AttentionFit fit{.parameters = {}, .mean_absolute = report.mean_absolute};
  for (std::size_t g = 0; g < groups.size(); ++g)
    fit.parameters.push_back(residuals.vector(g, report.parameters));
  return fit;
}

AttentionVector adapt_attention(const AttentionVector& copied, const AttentionGpu& gpu,
                                const std::vector<const AttentionMeasurement*>& calls) {
  constexpr double kNoise = 0.06;  // of a call, log time
  const std::vector<AttentionGroup> groups{{.traits = gpu, .rows = calls}};
  std::vector<Row> rows;
  for (const AttentionMeasurement* call : calls)
    rows.push_back({0, attention_shape(call->call), call->seconds, call->served});
  Residuals residuals(groups, std::move(rows));
  LeastAbsoluteProblem problem = problem_of(groups, residuals, {});
  problem.weights.assign(problem.rows, 1.0);
  problem.pull.setConstant(kFixed);
  for (int i = 0; i < kN; ++i) problem.start(i) = copied[i];
  for (const auto& [parameter, prior] : kPriors)
    problem.pull(parameter) = kNoise / (prior * prior * static_cast<double>(calls.size()));
  return residuals.vector(0, fit_least_absolute(problem).parameters);
}

}  // namespace tessera
