#include "sim/remat/tessera/price_search.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace tessera::remat {
namespace {

constexpr double kLowest = -8;  ///< exponents of the price scanned
constexpr double kHighest = 12;
constexpr double kScanStep = 2;
/// Price of stages that are not crowded, of the price of those that are: tensors that cross all
/// crowded stages cost alike otherwise, and all go at the same price.
constexpr double kElsewhere = 0.02;
constexpr double kFirstStep = 0.15;
constexpr double kStepDecay = 0.05;
/// A stage over the budget counts this much more than one below it.
constexpr double kOverWeight = 3;
constexpr double kLargestPrice = 1000;  ///< of the unit
constexpr double kSmallestPrice = 1e-6;
/// Peaks of stages that are remembered, over all attempts [values].
constexpr std::size_t kMostRemembered = 1'000'000;

/// A plan or prices with the hash of others would pass for known, and not be tried.
class Hash {
 public:
  Hash& add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15ull;
    state_ ^= state_ >> 29;
    return *this;
  }
  Hash& add(double value) { return add(std::bit_cast<std::uint64_t>(value)); }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243F6A8885A308D3ull;
};

std::uint64_t hash_of(const Prices& prices) {
  Hash hash;
  for (const double price : prices.stage) hash.add(price);
  hash.add(prices.extension).add(prices.copy_out).add(prices.copy_in);
  hash.add(std::uint64_t{prices.recompute}).add(std::uint64_t{prices.swap});
  return hash.value();
}

/// Of a plan as it is decoded, before its copies have windows.
std::uint64_t hash_of(const StagePlan& plan) {
  Hash hash;
  for (const Run& run : plan.runs) {
    const auto ends =
        static_cast<std::uint64_t>(run.first) << 32 | static_cast<std::uint32_t>(run.last);
    hash.add(ends ^ static_cast<std::uint64_t>(run.origin) << 30 ^
             std::uint64_t{run.to_host} << 63);
  }
  for (const OpId op : plan.again) hash.add(static_cast<std::uint64_t>(op));
  return hash.value();
}

}  // namespace

PriceSearch::PriceSearch(const Graph& graph, ByteCount budget, const std::optional<HostLink>& link,
                         ByteCount host_bytes)
    : graph_(graph),
      budget_(budget),
      host_bytes_(host_bytes),
      link_(link),
      sweep_(graph),
      evaluator_(graph, link_, budget),
      random_(1) {
  for (OpId op = 0; op < graph.ops(); ++op) times_.push_back(static_cast<double>(graph.time(op)));
  Nanoseconds now = 0;
  for (OpId op = 0; op < graph.ops(); ++op) {
    clock_.push_back(now);
    now += graph.first_time(op);
  }
  clock_.insert(clock_.end(), 2, now);
  Prices free;
  free.stage.assign(graph.ops() + 1, 0.0);
  attempt(free, 0);
  keep_all_ = plan_;
  base_peaks_ = evaluator_.stage_peaks();
  double bytes = 0;
  for (const ByteCount peak : base_peaks_) {
    crowded_.push_back(peak > budget_ ? 1 : 0);
    if (peak > budget_) bytes += static_cast<double>(peak - graph.static_bytes());
  }
  if (bytes > 0) unit_ = std::max(1.0, static_cast<double>(graph.base_time())) / bytes;
}

Evaluation PriceSearch::attempt(const Prices& prices, double noise) {
  const std::vector<double>* times = &times_;
  if (noise > 0) {
    noisy_ = times_;
    for (double& time : noisy_) time *= 1 + noise * (2 * random_.uniform() - 1);
    times = &noisy_;
  }
  const std::uint64_t asked = noise > 0 ? 0 : hash_of(prices);
  const Known* same = noise > 0 ? nullptr : known(&Known::prices, asked);
  if (!same) sweep_.decode(prices, *times, link_ ? &*link_ : nullptr, &clock_, plan_);
  const std::uint64_t decoded = same ? 0 : hash_of(plan_);
  if (!same) same = known(&Known::plan, decoded);
  if (same) {  // no better than when it was met first
    peaks_ = same->stage_peaks;
    return same->cost;
  }
  const Evaluation cost = try_plan(prices);
  peaks_ = evaluator_.stage_peaks();
  if ((known_.size() + 1) * peaks_.size() <= kMostRemembered)
    known_.push_back({asked, decoded, cost, peaks_});
  return cost;
}

const PriceSearch::Known* PriceSearch::known(std::uint64_t Known::*of, std::uint64_t hash) const {
  const auto found = std::ranges::find(known_, hash, of);
  return found == known_.end() ? nullptr : &*found;
}

Evaluation PriceSearch::try_plan(const Prices& prices) {
  const Evaluation cost =
      evaluator_.evaluate(plan_, best_ ? best_->cost.time : PlanEvaluator::kNoTime);
  if (!best_ && (closest_.stage.empty() || cost.peak < closest_peak_)) {
    closest_ = prices;
    closest_peak_ = cost.peak;
  }
  if (cost.peak <= budget_ && cost.host_peak <= host_bytes_ &&
      (!best_ || cost.time < best_->cost.time)) {
    if (!best_) best_.emplace();
    best_->plan = plan_;
    best_->schedule = evaluator_.schedule();
    best_->prices = prices;
    best_->cost = cost;
  }
  return cost;
}

Prices PriceSearch::flat(double exponent) const {
  Prices prices;
  prices.stage.resize(graph_.ops() + 1);
  const double price = unit_ * portable_exp2(exponent);
  for (std::size_t t = 0; t < crowded_.size(); ++t)
    prices.stage[t] = crowded_[t] ? price : kElsewhere * price;
  std::fill_n(prices.stage.begin(), graph_.done(), 0.0);
  return prices;
}

double PriceSearch::bisect(Prices prices, const PriceSearchOptions& options) {
  double best = kHighest;
  ByteCount least = 0;
  bool fits = false;
  // The peak is no monotone function of the price: chains grow where too much is dropped.
  for (double exponent = kLowest; exponent <= kHighest && !fits; exponent += kScanStep) {
    prices.stage = flat(exponent).stage;
    const ByteCount peak = attempt(prices, 0).peak;
    fits = peak <= budget_;
    if (!fits && exponent > kLowest && peak >= least) continue;
    least = peak;
    best = exponent;
  }
  double low = best - kScanStep;
  for (int i = 0; fits && i < options.bisections; ++i) {
    const double middle = (low + best) / 2;
    prices.stage = flat(middle).stage;
    (attempt(prices, 0).peak <= budget_ ? best : low) = middle;
  }
  return best;
}

void PriceSearch::step_prices(Prices& prices, double step) {
  const auto room = static_cast<double>(std::max<ByteCount>(1, budget_ - graph_.static_bytes()));
  steps_.clear();
  factors_.clear();
  for (std::size_t t = 0; t < prices.stage.size(); ++t) {
    const ByteCount over = peaks_[t] - budget_;
    if (prices.stage[t] == 0 && over <= 0) continue;
    double fill = std::clamp(static_cast<double>(over) / room, -1.0, 1.0);
    if (fill > 0) fill *= kOverWeight;
    steps_.emplace_back(t, fill);
    factors_.push_back(2 * step * fill);
  }
  portable_exp_each(factors_);
  const double largest = kLargestPrice * unit_ * portable_exp2(kHighest);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto [t, fill] = steps_[i];
    double& price = prices.stage[t];
    price *= factors_[i];
    if (fill > 0) price += 0.3 * step * fill * unit_;
    price = std::min(price, largest);
    if (price < kSmallestPrice * unit_) price = 0;
  }
}

void PriceSearch::update(Prices& prices, const PriceSearchOptions& options) {
  for (int k = 0; k < options.updates; ++k) {
    attempt(prices, k % 2 == 1 ? 0.1 : 0.0);
    if (k + 1 < options.updates) step_prices(prices, kFirstStep / (1 + kStepDecay * k));
  }
}

void PriceSearch::perturb(Prices& prices, const PriceSearchOptions& options) {
  const double factor = portable_exp(1.2 * (random_.uniform() - 0.6));
  const auto stages = static_cast<std::int32_t>(prices.stage.size());
  switch (random_.below(4)) {
    case 0:
      for (double& price : prices.stage) price *= factor;
      break;
    case 1: {
      const std::int32_t from = random_.below(stages);
      const std::int32_t to = from + random_.below(stages - from);
      for (std::int32_t t = from; t <= to; ++t) prices.stage[t] *= factor;
      break;
    }
    case 2:
      for (double& price : prices.stage) price *= 0.93;
      break;
    default:
      break;
  }
  if (random_.below(2) == 0)
    prices.extension =
        options.extensions[random_.below(static_cast<std::int32_t>(options.extensions.size()))];
  if (!swap_) return;
  for (double* share : {&prices.copy_out, &prices.copy_in}) {
    *share *= portable_exp(1.5 * (random_.uniform() - 0.5));
    if (random_.below(8) == 0) *share = random_.uniform();
    *share = std::min(*share, 1.0);
  }
}

void PriceSearch::neighbourhood(const PriceSearchOptions& options) {
  for (int round = 0; round < options.rounds; ++round) {
    if (best_ && best_->cost.time == graph_.unplanned_time()) return;
    Prices prices = best_ ? best_->prices : closest_;
    perturb(prices, options);
    const double noise = 0.2 * random_.uniform();
    const double step = 0.1 + 0.5 * random_.uniform();
    const int updates = 4 + random_.below(6);
    for (int k = 0; k < updates; ++k) {
      const bool had = best_.has_value();
      const Nanoseconds to_beat = had ? best_->cost.time : 0;
      const Evaluation cost = attempt(prices, noise);
      if (had && cost.time >= to_beat &&
          static_cast<double>(cost.peak) > 1.02 * static_cast<double>(budget_))
        break;
      step_prices(prices, step);
    }
  }
}

const std::optional<Incumbent>& PriceSearch::recompute_only(const PriceSearchOptions& options) {
  if (best_ && best_->cost.time == graph_.unplanned_time()) return best_;
  random_ = Random(options.seed);
  std::vector<double> exponents;
  for (const double extension : options.extensions) {
    Prices prices;
    prices.extension = extension;
    exponents.push_back(bisect(prices, options));
  }
  for (std::size_t i = 0; i < options.extensions.size(); ++i) {
    Prices prices = flat(exponents[i]);
    prices.extension = options.extensions[i];
    update(prices, options);
  }
  neighbourhood(options);
  return best_;
}

void PriceSearch::warm(Prices prices, const std::vector<double>& copy_shares) {
  if (best_ && best_->cost.time == graph_.unplanned_time()) return;
  prices.swap = !copy_shares.empty();
  if (!prices.swap) attempt(prices, 0);
  for (const double share : copy_shares) {
    prices.copy_out = prices.copy_in = share;
    attempt(prices, 0);
  }
}

/// Dearer copies to the host, for where its memory is short.
void PriceSearch::spare_host_memory(const Incumbent* start) {
  if (best_) return;
  for (const double share : {1.0, 3.0, 10.0, 30.0, 100.0}) {
    for (int exponent = -4; exponent <= 12; exponent += 2) {
      Prices prices = flat(exponent);
      if (start) prices.extension = start->prices.extension;
      prices.swap = true;
      prices.copy_out = share;
      attempt(prices, 0);
    }
  }
}

Prices PriceSearch::all_copied() const {
  Prices prices;
  prices.stage.assign(graph_.ops() + 1, 1e6 * unit_);
  prices.recompute = false;
  prices.swap = true;
  return prices;
}

void PriceSearch::try_all_copied() {
  attempt(all_copied(), 0);
}

void PriceSearch::try_all_copied_last() {
  const Prices prices = all_copied();
  sweep_.decode(prices, times_, &*link_, &clock_, plan_);
  Nanoseconds copies = 0;  // back to the device, one behind the other
  for (TensorId q = 0; q < graph_.tensors(); ++q)
    for (const Run& run : std::span(plan_.runs).subspan(plan_.run_begin[q], plan_.run_count[q]))
      if (run.origin == Origin::copied_in) copies += link_->copy_time(graph_.size(q));
  if (!best_ || copies < best_->cost.time) try_plan(prices);
}

/// Prices that grow where the working set alone nearly fills the budget.
void PriceSearch::start_from_slack() {
  const auto room = static_cast<double>(std::max<ByteCount>(1, budget_ - graph_.static_bytes()));
  for (const double power : {1.0, 2.0, 4.0}) {
    for (int exponent = -4; exponent <= 12; exponent += 2) {
      for (const double share : {0.1, 0.5}) {
        Prices prices = flat(exponent);
        prices.swap = true;
        prices.copy_in = prices.copy_out = share;
        for (OpId op = 0; op < graph_.ops(); ++op) {
          const double slack =
              std::max(1e-3, 1 - static_cast<double>(graph_.working_set(op)) / room);
          for (int k = 0; k < static_cast<int>(power); ++k) prices.stage[op] /= slack;
        }
        attempt(prices, 0);
      }
    }
  }
}

const std::optional<Incumbent>& PriceSearch::short_hybrid(const PriceSearchOptions& options,
                                                          const std::vector<double>& copy_shares,
                                                          const Incumbent* start) {
  if (best_ && best_->cost.time == graph_.unplanned_time()) return best_;
  random_ = Random(options.seed + 77);
  swap_ = true;
  for (const double share : copy_shares) {
    Prices prices;
    if (start) prices = start->prices;
    prices.swap = true;
    prices.copy_in = prices.copy_out = share;
    if (!start) {
      prices.extension = options.extensions.back();
      prices.stage = flat(bisect(prices, options)).stage;
    }
    update(prices, options);
  }
  neighbourhood(options);
  swap_ = false;
  return best_;
}

const std::optional<Incumbent>& PriceSearch::hybrid(const PriceSearchOptions& options,
                                                    const Incumbent* start) {
  if (best_ && best_->cost.time == graph_.unplanned_time()) return best_;
  random_ = Random(options.seed + 77);
  swap_ = true;
  start_from_slack();
  if (start && !start->prices.stage.empty()) {
    for (const double factor : {0.25, 0.5, 1.0, 2.0}) {
      for (const double share : {0.05, 0.3, 1.0}) {
        Prices prices = start->prices;
        for (double& price : prices.stage) price *= factor;
        prices.swap = true;
        prices.copy_in = prices.copy_out = share;
        attempt(prices, 0);
      }
    }
  }
  for (const double extension : {1.0, 0.2}) {
    for (const double share : {0.0, 0.1, 0.4, 1.0}) {
      Prices prices;
      prices.swap = true;
      prices.extension = extension;
      prices.copy_in = prices.copy_out = share;
      Prices found = prices;
      found.stage = flat(bisect(prices, options)).stage;
      if (extension == 1 && share > 0 && share < 1) update(found, options);
    }
  }
  spare_host_memory(start);
  neighbourhood(options);
  swap_ = false;
  return best_;
}

}  // namespace tessera::remat
