#include "sim/remat/tessera/price_sweep.h"

#include <algorithm>
#include <limits>

namespace tessera::remat {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
/// Bounds on the recursion; beyond them an operator is not run again.
constexpr int kDepth = 64;
constexpr int kNodes = 256;

}  // namespace

PriceSweep::PriceSweep(const Graph& graph)
    : graph_(graph), prefix_(graph.ops() + 2), extra_(graph.tensors()), memo_(graph.ops()) {}

void PriceSweep::start(const Prices& prices, StagePlan& plan) {
  prefix_[0] = 0;
  for (Stage t = 0; t <= graph_.ops(); ++t) prefix_[t + 1] = prefix_[t] + prices.stage[t];
  for (const TensorId q : touched_) extra_[q].clear();
  touched_.clear();
  again_.clear();
  plan.runs.clear();
  plan.run_begin.assign(graph_.tensors(), 0);
  plan.run_count.assign(graph_.tensors(), 0);
}

Stage PriceSweep::last_use(TensorId q) const {
  if (graph_.kept(q)) return graph_.ops();
  const auto readers = graph_.consumers(q);
  const Stage last = readers.empty() ? graph_.producer(q) : readers.back();
  return extra_[q].empty() ? last : std::max(last, extra_[q].back());
}

bool PriceSweep::holding_is_cheapest(OpId op) const {
  double held = 0;  // in the order in which uses of one stage are summed: no such sum is larger
  for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
    const Stage last = last_use(q);
    const double price = last > op ? hold(q, op, last) : 0;
    if (prices_->swap && price > channel_cost(q, false)) return false;
    held += price;
  }
  return held <= (*times_)[op];
}

void PriceSweep::hold_outputs(OpId op, StagePlan& plan) {
  for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
    plan.run_begin[q] = static_cast<std::int32_t>(plan.runs.size());
    plan.run_count[q] = 1;
    plan.runs.push_back({.first = op, .last = last_use(q)});
  }
}

void PriceSweep::collect_uses(OpId op) {
  uses_.clear();
  for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
    const auto start = static_cast<std::ptrdiff_t>(uses_.size());
    for (const OpId reader : graph_.consumers(q)) uses_.push_back({reader, q});
    if (graph_.kept(q)) uses_.push_back({graph_.ops(), q});
    const auto middle = static_cast<std::ptrdiff_t>(uses_.size());
    for (const Stage t : extra_[q]) uses_.push_back({t, q});
    const auto earlier = [](const Use& a, const Use& b) { return a.stage < b.stage; };
    if (!extra_[q].empty())
      std::inplace_merge(uses_.begin() + start, uses_.begin() + middle, uses_.end(), earlier);
    if (start > 0) std::inplace_merge(uses_.begin(), uses_.begin() + start, uses_.end(), earlier);
  }
}

void PriceSweep::neighbours(TensorId q, Stage t, Stage& before, Stage& after) const {
  before = graph_.producer(q);
  after = graph_.kept(q) ? graph_.ops() : -1;
  const auto look = [&](auto begin, auto end) {
    const auto at = std::lower_bound(begin, end, t);
    if (at != end && (after < 0 || *at < after)) after = *at;
    if (at != begin) before = std::max<Stage>(before, *(at - 1));
  };
  const auto readers = graph_.consumers(q);
  look(readers.begin(), readers.end());
  look(extra_[q].begin(), extra_[q].end());
}

double PriceSweep::use_cost(TensorId q, Stage t, double limit, int depth) {
  Stage before = 0;
  Stage after = 0;
  neighbours(q, t, before, after);
  if (after == t) return 0;  // somebody pays for it already
  const OpId maker = graph_.producer(q);
  if (after < 0) {
    if (is_away(q, before, t)) return again_cost(maker, t, limit, depth + 1);
    const double held = prices_->extension * hold(q, before, t);
    if (held <= (*times_)[maker]) return held;
    return std::min(held, again_cost(maker, t, std::min(held, limit), depth + 1));
  }
  const double whole = hold(q, before, after);
  if (whole <= (*times_)[maker]) return 0;  // held anyway
  const double again = again_cost(maker, t, whole, depth + 1);
  if (again >= whole) return 0;
  const double split = std::min(hold(q, before, t), again) + std::min(hold(q, t, after), again);
  return std::max(0.0, split - again);
}

double PriceSweep::again_cost(OpId op, Stage t, double limit, int depth) {
  if (!graph_.recomputable(op) || ++nodes_ > kNodes || depth > kDepth) return kImpossible;
  Memo& memo = memo_[op];
  if (memo.query == query_ && (memo.value < memo.limit || memo.limit >= limit)) return memo.value;
  double sum = (*times_)[op];
  for (const TensorId q : graph_.inputs(op)) {
    if (sum >= limit) break;
    sum += use_cost(q, t, limit - sum, depth);
  }
  memo = {query_, sum, limit};
  return sum;
}

/// A hidden copy costs its channel time and its windows of memory, or else it is made on demand.
double PriceSweep::swap_cost(TensorId q, Stage made, Stage from, Stage to) const {
  const Nanoseconds copy = copy_times_[q];
  const std::vector<Nanoseconds>& clock = *clock_;
  const bool hosted = live_[q - graph_.first_output(graph_.producer(q))].hosted;
  const Nanoseconds end =
      hosted ? clock[from + 1] : std::max(clock[from + 1], clock[made + 1] + copy);
  const Nanoseconds start = clock[to] - copy;
  const double channel = channel_cost(q, hosted);
  const auto demand = static_cast<double>(copy) * (hosted ? 1.0 : 2.0) + channel;
  const auto stall = static_cast<double>(std::max<Nanoseconds>(0, end - start));
  const auto first = clock.begin() + from + 1;
  const auto last = clock.begin() + to;
  const auto held = static_cast<Stage>(std::lower_bound(first, last, end) - clock.begin());
  const auto fetched = static_cast<Stage>(std::upper_bound(first, last, start) - clock.begin()) - 1;
  const double windows = static_cast<double>(graph_.size(q)) *
                         (prefix_[std::min(held, to)] - prefix_[from + 1] + prefix_[to] -
                          prefix_[std::max({fetched, from + 1, std::min(held, to)})]);
  return std::min(demand, channel + stall + windows);
}

void PriceSweep::run_again(OpId op, Stage t) {
  again_.push_back({t, op});
  for (const TensorId q : graph_.inputs(op)) {
    std::vector<Stage>& extra = extra_[q];
    if (extra.empty()) touched_.push_back(q);
    const auto at = std::lower_bound(extra.begin(), extra.end(), t);
    if (at != extra.end() && *at == t) continue;
    const auto readers = graph_.consumers(q);
    if (!std::binary_search(readers.begin(), readers.end(), t) &&
        !(t == graph_.ops() && graph_.kept(q)))
      extra.insert(at, t);
  }
}

double PriceSweep::stay_cost(TensorId q, const Live& live, Stage t) const {
  const double price = hold(q, live.last, t);
  const bool may_leave =
      prices_->swap && price > 0 && t > live.last + 1 && !is_away(q, live.last, t);
  return may_leave ? std::min(price, swap_cost(q, live.made, live.last, t)) : price;
}

void PriceSweep::carry_on(TensorId q, Live& live, Stage t) {
  Run& run = live.runs.back();
  if (prices_->swap && t > live.last + 1 && !is_away(q, live.last, t) &&
      swap_cost(q, live.made, live.last, t) < hold(q, live.last, t)) {
    run.to_host = !live.hosted;
    run.hold_to = run.last;
    live.hosted = true;
    live.made = t;
    live.runs.push_back({.first = t, .last = t, .origin = Origin::copied_in, .copy_from = t});
  } else if (run.last < live.last) {  // made beside another output, in stage live.last
    live.runs.push_back({.first = live.last, .last = t, .origin = Origin::run_again});
  } else {
    run.last = t;
  }
}

bool PriceSweep::better_run_again(OpId op, Stage t, double stay) {
  if ((!prices_->recompute && stay < kImpossible) || stay <= (*times_)[op]) return false;
  ++query_;
  nodes_ = 0;
  return again_cost(op, t, stay, 0) < stay;
}

void PriceSweep::decide(OpId op, StagePlan& plan) {
  const TensorId first = graph_.first_output(op);
  live_.resize(static_cast<std::size_t>(graph_.output_count(op)));
  for (Live& live : live_) {
    live.made = live.last = op;
    live.hosted = false;
    live.runs.assign(1, {.first = op, .last = op});
  }
  for (std::size_t i = 0, end = 0; i < uses_.size(); i = end) {
    const Stage t = uses_[i].stage;
    double stay = 0;
    for (end = i; end < uses_.size() && uses_[end].stage == t; ++end)
      stay += stay_cost(uses_[end].tensor, live_[uses_[end].tensor - first], t);
    const bool again = better_run_again(op, t, stay);
    if (again) {
      run_again(op, t);
      for (Live& live : live_) live.made = live.last = t;
    }
    for (std::size_t k = i; k < end; ++k) {
      Live& live = live_[uses_[k].tensor - first];
      if (again) {
        live.runs.push_back({.first = t, .last = t, .origin = Origin::run_again});
      } else {
        carry_on(uses_[k].tensor, live, t);
        live.last = t;
      }
    }
  }
  flush_runs(op, plan);
}

void PriceSweep::flush_runs(OpId op, StagePlan& plan) {
  const TensorId first = graph_.first_output(op);
  for (std::size_t k = 0; k < live_.size(); ++k) {
    plan.run_begin[first + static_cast<TensorId>(k)] = static_cast<std::int32_t>(plan.runs.size());
    plan.run_count[first + static_cast<TensorId>(k)] =
        static_cast<std::int32_t>(live_[k].runs.size());
    plan.runs.insert(plan.runs.end(), live_[k].runs.begin(), live_[k].runs.end());
  }
}

/// Counting sort by stage; operators come in descending order.
void PriceSweep::order_again(StagePlan& plan) {
  plan.again_begin.assign(static_cast<std::size_t>(graph_.ops()) + 2, 0);
  for (const Again& entry : again_) ++plan.again_begin[entry.stage + 1];
  for (Stage t = 0; t <= graph_.ops(); ++t) plan.again_begin[t + 1] += plan.again_begin[t];
  plan.again.resize(again_.size());
  // Fill from the front, last entries first.
  for (auto entry = again_.rbegin(); entry != again_.rend(); ++entry)
    plan.again[plan.again_begin[entry->stage]++] = entry->op;
  for (Stage t = graph_.ops() + 1; t > 0; --t) plan.again_begin[t] = plan.again_begin[t - 1];
  plan.again_begin[0] = 0;
}

void PriceSweep::decode(const Prices& prices, const std::vector<double>& times,
                        const HostLink* link, const std::vector<Nanoseconds>* clock,
                        StagePlan& plan) {
  prices_ = &prices;
  times_ = &times;
  clock_ = clock;
  if (link && copy_times_.empty())
    for (TensorId q = 0; q < graph_.tensors(); ++q)
      copy_times_.push_back(link->copy_time(graph_.size(q)));
  start(prices, plan);
  for (OpId op = graph_.ops() - 1; op >= 0; --op) {
    if (holding_is_cheapest(op)) {
      hold_outputs(op, plan);
    } else {
      collect_uses(op);
      decide(op, plan);
    }
  }
  order_again(plan);
}

}  // namespace tessera::remat
