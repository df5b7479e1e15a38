#include "sim/remat/bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera::remat {
namespace {

constexpr int kRounds = 2500;
/// Rounds x (gaps + stages) that a bound may take, so that large graphs get few rounds.
constexpr std::int64_t kRoundWork = 60'000'000;
constexpr int kPatience = 20;
constexpr double kShrink = 0.7;
/// Weights of the channel against the operators that are tried with a link.
constexpr double kChannelShares[] = {0.0, 0.25, 0.5, 0.75};

struct PricedGap {
  std::int32_t from = 0, to = 0;  ///< the stages strictly between are from + 1 .. to - 1
  double bytes = 0;
  double pay = 0;  ///< for one run of the producer
  double copy = 0;
};

class Dual {
 public:
  Dual(const Graph& graph, ByteCount budget, const std::optional<HostLink>& link)
      : graph_(graph), link_(link), room_(graph.ops()), price_(graph.ops(), 0.0) {
    for (OpId op = 0; op < graph.ops(); ++op)
      room_[op] = static_cast<double>(budget - graph.static_bytes() - graph.working_set(op));
    for (TensorId q = 0; q < graph.tensors(); ++q) add_gaps(q);
  }

  /// max over multipliers of (1 - share) * recompute time + share * copy time.
  double maximize(double share, double target) {
    std::fill(price_.begin(), price_.end(), 0.0);
    const auto base = static_cast<double>(graph_.base_time());
    double best = 0;
    double theta = 1;
    int stale = 0;
    const std::int64_t size = static_cast<std::int64_t>(gaps_.size()) + graph_.ops() + 1;
    const auto rounds = static_cast<int>(std::min<std::int64_t>(kRounds, kRoundWork / size));
    for (int round = 0; round < rounds; ++round) {
      const double value = evaluate(share);
      if (value > best) {
        best = value;
        stale = 0;
      } else if (++stale >= kPatience) {
        theta *= kShrink;
        stale = 0;
      }
      const double gap = std::max(target - (1 - share) * base - value, 1e-6 * base);
      double norm = 0;
      for (const double g : slope_) norm += g * g;
      if (norm == 0) break;
      const double step = theta * gap / norm;
      for (std::size_t t = 0; t < price_.size(); ++t)
        price_[t] = std::max(0.0, price_[t] + step * slope_[t]);
    }
    return (1 - share) * base + best;
  }

 private:
  void add_gaps(TensorId q) {
    if (graph_.size(q) == 0) return;
    const OpId maker = graph_.producer(q);
    const double outputs = graph_.output_count(maker);
    const double pay =
        graph_.recomputable(maker) ? static_cast<double>(graph_.time(maker)) / outputs : 1e30;
    const double copy = link_ ? static_cast<double>(link_->copy_time(graph_.size(q))) : 1e30;
    std::int32_t from = maker;
    const auto add = [&](std::int32_t to) {
      if (to > from + 1)
        gaps_.push_back({from, to, static_cast<double>(graph_.size(q)), pay, copy});
      from = to;
    };
    for (const OpId reader : graph_.consumers(q)) add(reader);
    if (graph_.kept(q)) add(graph_.ops());
  }

  double evaluate(double share) {
    prefix_.assign(price_.size() + 1, 0.0);
    for (std::size_t t = 0; t < price_.size(); ++t) prefix_[t + 1] = prefix_[t] + price_[t];
    slope_.assign(price_.size() + 1, 0.0);
    double value = 0;
    for (const PricedGap& gap : gaps_) {
      const double hold = gap.bytes * (prefix_[gap.to] - prefix_[gap.from + 1]);
      const double pay = std::min((1 - share) * gap.pay, link_ ? share * gap.copy : gap.pay);
      value += std::min(hold, pay);
      if (hold > pay) continue;
      slope_[gap.from + 1] += gap.bytes;
      slope_[gap.to] -= gap.bytes;
    }
    double crossing = 0;
    for (std::size_t t = 0; t < price_.size(); ++t) {
      crossing += slope_[t];
      slope_[t] = crossing - room_[t];
      value -= price_[t] * room_[t];
    }
    slope_.pop_back();
    return value;
  }

  const Graph& graph_;
  const std::optional<HostLink>& link_;
  std::vector<double> room_, price_, prefix_, slope_;
  std::vector<PricedGap> gaps_;
};

}  // namespace

Nanoseconds time_bound(const Graph& graph, ByteCount budget, const std::optional<HostLink>& link,
                       Nanoseconds target) {
  auto bound = static_cast<double>(graph.base_time());
  if (target <= graph.unplanned_time()) return graph.unplanned_time();
  Dual dual(graph, budget, link);
  for (const double share : kChannelShares) {
    if (!link && share > 0) break;
    if (link && share == 0) continue;  // copies alone would pay for everything
    bound = std::max(bound, dual.maximize(share, static_cast<double>(target)));
  }
  // Rounding errors of the sums stay far below one part in 10^9.
  const double safe = bound - 1e-9 * std::abs(bound);
  return std::clamp(static_cast<Nanoseconds>(std::ceil(safe)), graph.unplanned_time(), target);
}

}  // namespace tessera::remat
