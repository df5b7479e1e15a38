#include "sim/report/analysis/step_distribution.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

/// `sorted` has at least one entry; `share` in [0, 1].
Seconds percentile(const std::vector<Seconds>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - std::floor(position));
}

std::optional<FrequentStraggler> frequent_straggler(const std::vector<StepSample>& steps) {
  std::map<int, FrequentStraggler> by_rank;
  for (const StepSample& step : steps) {
    if (!step.straggler) continue;
    FrequentStraggler& entry = by_rank[step.straggler->rank];
    entry.rank = step.straggler->rank;
    entry.longest += step.straggler->longest;
    ++entry.steps;
  }
  const auto most = std::ranges::max_element(
      by_rank, [](const auto& a, const auto& b) { return a.second.steps < b.second.steps; });
  if (most == by_rank.end()) return std::nullopt;
  FrequentStraggler found = most->second;
  found.longest = found.longest / found.steps;
  return found;
}

std::string with_milliseconds(Seconds time) {
  return formatted("%.3f ms", time.value() * 1e3);
}

std::vector<std::pair<std::string, Seconds>> figures(const StepDistribution& distribution) {
  return {{"mean", distribution.mean}, {"p5", distribution.p5},   {"p50", distribution.p50},
          {"p95", distribution.p95},   {"p99", distribution.p99}, {"max", distribution.max}};
}

}  // namespace

StepDistribution distribution_of(const std::vector<StepSample>& steps) {
  StepDistribution distribution;
  for (const StepSample& step : steps) distribution.times.push_back(step.time);
  std::vector<Seconds> sorted = distribution.times;
  std::ranges::sort(sorted);
  distribution.mean =
      std::accumulate(sorted.begin(), sorted.end(), Seconds()) / static_cast<double>(sorted.size());
  distribution.p5 = percentile(sorted, 0.05);
  distribution.p50 = percentile(sorted, 0.50);
  distribution.p95 = percentile(sorted, 0.95);
  distribution.p99 = percentile(sorted, 0.99);
  distribution.max = sorted.back();
  distribution.straggler = frequent_straggler(steps);
  return distribution;
}

std::string table_text(const StepDistribution& distribution, const Provenance& provenance) {
  const std::string steps = std::to_string(distribution.times.size());
  std::string text = provenance.scenario + ": " + steps + " steps\n";
  for (const std::string& line : provenance.approximations) text += "approximate: " + line + "\n";
  text += "\n";
  for (const auto& [name, time] : figures(distribution)) {
    std::string label = "step time, " + name;
    label.resize(22, ' ');
    text += label + with_milliseconds(time) + "\n";
  }
  if (const auto& straggler = distribution.straggler) {
    text += "straggler             GPU " + std::to_string(straggler->rank) + " in " +
            std::to_string(straggler->steps) + " of " + steps +
            " steps; then another one waits up to " + with_milliseconds(straggler->longest) +
            " for it\n";
  }
  return text;
}

std::string json_text(const StepDistribution& distribution, const Provenance& provenance) {
  using nlohmann::ordered_json;
  ordered_json result{{"schema", "tessera.steps/1"},
                      {"scenario", provenance.scenario},
                      {"approximations", provenance.approximations},
                      {"tessera_version", provenance.tessera_version},
                      {"steps", distribution.times.size()}};
  for (const auto& [name, time] : figures(distribution)) {
    result["step_time_s"][name] = time.value();
  }
  result["straggler"] = nullptr;
  if (const auto& straggler = distribution.straggler) {
    result["straggler"] = {{"rank", straggler->rank},
                           {"steps", straggler->steps},
                           {"longest_wait_s", straggler->longest.value()}};
  }
  ordered_json times = ordered_json::array();
  for (const Seconds time : distribution.times) times.push_back(time.value());
  result["step_times_s"] = std::move(times);
  return result.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace tessera
