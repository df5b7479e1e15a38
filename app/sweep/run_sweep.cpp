#include "app/sweep/run_sweep.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "app/sweep/simulate_point.h"
#include "hw/units/input_error.h"
#include "sim/process/forked_pool.h"
#include "sim/step/run_step.h"

namespace tessera {
namespace {

/// Names such as gpt3-2.7b and bf16 keep their digits: only numbers that stand alone vary.
std::string without_numbers(const std::string& text) {
  std::string result;
  const auto is_number = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < text.size();) {
    const bool starts = is_number(text[i]) && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '(');
    std::size_t end = i;
    while (starts && end < text.size() && (is_number(text[end]) || text[end] == '.')) ++end;
    const bool alone = starts && (end == text.size() || std::string_view(" ,;:)").find(text[end]) !=
                                                            std::string_view::npos);
    result += alone ? "N" : std::string(1, text[i]);
    i = alone ? end : i + 1;
  }
  return result;
}

/// Tokens/s per GPU of an answer; 0 where it does not fit, or knows of no tokens.
double speed_of(const std::string& answer) {
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  if (!json.is_object() || !json.value("fits", false)) return 0;
  const auto speed = json.find("tokens_per_s_per_gpu");
  return speed != json.end() && speed->is_number() ? speed->get<double>() : 0;
}

/// One run through the points.
class SweepRun {
 public:
  SweepRun(const PredictorWeights& weights, SweepStore& store, const SweepRunOptions& options)
      : weights_(weights),
        store_(store),
        options_(options),
        pool_(options.jobs, options.limit, may_run_another_step) {}

  SweepCounts run(const SweepGrid& grid, const ScenarioSource& source,
                  const std::vector<std::int64_t>& numbers) {
    counts_.total = static_cast<std::int64_t>(numbers.size());
    for (const std::int64_t number : numbers) {
      while (pool_.full()) collect();
      take_point(grid, source, grid.point(number));
      options_.progress(counts_);
    }
    while (!pool_.empty()) {
      collect();
      options_.progress(counts_);
    }
    return counts_;
  }

 private:
  /// A scenario that is being simulated, with the points that wait for it.
  struct InFlight {
    std::string key;
    std::vector<SweepPoint> points;
  };

  void take_point(const SweepGrid& grid, const ScenarioSource& source, SweepPoint point) {
    const std::optional<Scenario> scenario = load(source, point);
    if (!scenario) return;
    if (grid.keeps(*scenario)) {
      take_scenario(*scenario, std::move(point));
    } else {
      ++counts_.left_out;
    }
  }

  /// Empty, and counted, where the point is no scenario.
  std::optional<Scenario> load(const ScenarioSource& source, const SweepPoint& point) {
    std::string text, reason;
    try {
      if (point.problem.empty()) return source.with(point.settings);
      reason = without_numbers(text = point.problem);
    } catch (const InputError& error) {
      text = error.problems().front().what;
      reason = reason_class(error);
    }
    count_invalid(point, text, reason);
    return std::nullopt;
  }

  void count_invalid(const SweepPoint& point, const std::string& text, const std::string& reason) {
    store_.add_invalid(point, text);
    ++counts_.invalid;
    ++counts_.reasons[reason];
  }

  void take_scenario(const Scenario& scenario, SweepPoint point) {
    const std::string key = scenario_key(scenario, options_.made_with);
    for (auto& [id, in_flight] : in_flight_) {
      if (in_flight.key != key) continue;
      in_flight.points.push_back(std::move(point));
      return;
    }
    const std::optional<StoredResult> stored = store_.result(key);
    if (stored && is_final(*stored)) {
      store_.add_points(key, {point});
      ++counts_.stored;
      return;
    }
    const auto id = static_cast<std::size_t>(point.number);
    in_flight_.emplace(id, InFlight{key, {std::move(point)}});
    pool_.start(id, [scenario, this] { return answer_of(scenario); });
  }

  bool is_final(const StoredResult& result) const {
    if (result.outcome == PointOutcome::timed_out) return result.wall_s >= options_.limit.count();
    return result.outcome != PointOutcome::failed;
  }

  /// In the child. What is wrong with the scenario is an answer, marked by its first letter.
  std::string answer_of(const Scenario& scenario) const {
    try {
      return "+" + simulate_point(scenario, weights_);
    } catch (const InputError& error) {
      return "-" + error.problems().front().what + "\n" + reason_class(error);
    }
  }

  void collect() {
    for (EndedCall& ended : pool_.wait()) {
      const auto found = in_flight_.find(ended.id);
      const InFlight in_flight = std::move(found->second);
      in_flight_.erase(found);
      take_answer(in_flight, ended);
    }
  }

  void take_answer(const InFlight& in_flight, const EndedCall& ended) {
    const bool returned = ended.how == EndedCall::How::returned && !ended.text.empty();
    if (returned && ended.text.front() == '-') {
      const std::size_t line = ended.text.find('\n');
      for (const SweepPoint& point : in_flight.points)
        count_invalid(point, ended.text.substr(1, line - 1), ended.text.substr(line + 1));
      return;
    }
    counts_.stored += static_cast<std::int64_t>(in_flight.points.size()) - 1;
    StoredResult result{.key = in_flight.key};
    result.wall_s = ended.took.count();
    if (returned) {
      result.answer = ended.text.substr(1);
      counts_.best = std::max(counts_.best, speed_of(result.answer));
      ++counts_.simulated;
    } else if (ended.how == EndedCall::How::timed_out) {
      result.outcome = PointOutcome::timed_out;
      result.wall_s = options_.limit.count();
      ++counts_.timed_out;
    } else {
      result.outcome = PointOutcome::failed;
      result.answer = ended.text;
      ++counts_.failed;
      ++counts_.reasons[without_numbers(ended.text.substr(0, ended.text.find('\n')))];
    }
    store_.add(result, in_flight.points);
  }

  const PredictorWeights& weights_;
  SweepStore& store_;
  const SweepRunOptions& options_;
  ForkedPool pool_;
  std::map<std::size_t, InFlight> in_flight_;  ///< by the number of its first point
  SweepCounts counts_;
};

}  // namespace

std::string reason_class(const InputError& error) {
  return without_numbers(error.problems().front().what);
}

SweepCounts run_sweep(const SweepGrid& grid, const ScenarioSource& source,
                      const std::vector<std::int64_t>& numbers, const PredictorWeights& weights,
                      SweepStore& store, const SweepRunOptions& options) {
  return SweepRun(weights, store, options).run(grid, source, numbers);
}

SweepCounts check_sweep(const SweepGrid& grid, const ScenarioSource& source,
                        const std::vector<std::int64_t>& numbers) {
  SweepCounts counts;
  counts.total = static_cast<std::int64_t>(numbers.size());
  for (const std::int64_t number : numbers) {
    const SweepPoint point = grid.point(number);
    try {
      if (!point.problem.empty()) throw InputError(Problem{"", point.problem, ""});
      if (!grid.keeps(source.with(point.settings))) ++counts.left_out;
    } catch (const InputError& error) {
      ++counts.invalid;
      ++counts.reasons[reason_class(error)];
    }
  }
  return counts;
}

}  // namespace tessera
