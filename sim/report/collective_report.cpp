#include "sim/report/collective_report.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/collectives/collective_names.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

int node_count(const Topology& topology, const std::vector<int>& ranks) {
  std::set<int> nodes;
  for (const int rank : ranks) nodes.insert(topology.node_of(rank));
  return static_cast<int>(nodes.size());
}

double microseconds(Seconds time) {
  return time.value() * 1e6;
}

std::string table_line(const CollectiveReport& report) {
  const CollectiveCost& cost = report.cost;
  return text_line("%14lld %12.2f %9.2f %9.2f  %-14s %-8s %4d  %s",
                   static_cast<long long>(report.call.bytes.value()), microseconds(cost.solo_time),
                   report.algorithm_bandwidth / 1e9, report.bus_bandwidth / 1e9,
                   std::string(name_of(cost.algorithm)).c_str(),
                   std::string(name_of(cost.protocol)).c_str(), cost.gpu.channels,
                   report.bound.c_str());
}

std::string table(const std::vector<CollectiveReport>& reports) {
  const CollectiveReport& first = reports.front();
  std::string text = text_line("# %s over %d GPUs in %d node%s, alone",
                               std::string(name_of(first.call.kind)).c_str(), first.ranks,
                               first.nodes, first.nodes == 1 ? "" : "s");
  text += text_line("#%13s %12s %9s %9s  %-14s %-8s %4s  %s", "size", "time", "algbw", "busbw",
                    "algorithm", "protocol", "ch", "bound by");
  text += text_line("#%13s %12s %9s %9s", "(B)", "(us)", "(GB/s)", "(GB/s)");
  for (const CollectiveReport& report : reports) text += table_line(report);
  return text;
}

std::string in_words(const CollectiveReport& report) {
  const CollectiveCost& cost = report.cost;
  std::string text = text_line("%s of %s over %d GPUs in %d node%s, alone",
                               std::string(name_of(report.call.kind)).c_str(),
                               to_short_text(report.call.bytes).c_str(), report.ranks, report.nodes,
                               report.nodes == 1 ? "" : "s");
  text += text_line("algorithm             %s", std::string(name_of(cost.algorithm)).c_str());
  text += text_line("protocol              %s", std::string(name_of(cost.protocol)).c_str());
  text += text_line("time                  %.2f us", microseconds(cost.solo_time));
  text += text_line("  latency             %.2f us", microseconds(cost.latency));
  text += text_line("algorithm bandwidth   %.2f GB/s", report.algorithm_bandwidth / 1e9);
  text += text_line("bus bandwidth         %.2f GB/s", report.bus_bandwidth / 1e9);
  text += text_line("bottleneck            %s",
                    report.bottleneck.empty() ? "none" : report.bottleneck.c_str());
  text += text_line("bound by              %s; no faster than %.2f us, %.1f %% of the time",
                    report.bound.c_str(), microseconds(cost.lower_bound),
                    cost.solo_time.value() > 0 ? 100 * (cost.lower_bound / cost.solo_time) : 0.0);
  return text + text_line(
                    "on each GPU           %d channels, %d multiprocessors, %.3g GB of memory "
                    "traffic",
                    cost.gpu.channels, cost.gpu.multiprocessors, cost.gpu.memory_bytes / 1e9);
}

Json json_of(const CollectiveReport& report) {
  const CollectiveCost& cost = report.cost;
  return {{"op", name_of(report.call.kind)},
          {"bytes", report.call.bytes.value()},
          {"ranks", report.ranks},
          {"nodes", report.nodes},
          {"algorithm", name_of(cost.algorithm)},
          {"protocol", name_of(cost.protocol)},
          {"time_us", microseconds(cost.solo_time)},
          {"latency_us", microseconds(cost.latency)},
          {"algbw_GBps", report.algorithm_bandwidth / 1e9},
          {"busbw_GBps", report.bus_bandwidth / 1e9},
          {"bottleneck", report.bottleneck.empty() ? Json() : Json(report.bottleneck)},
          {"bound", report.bound},
          {"lower_bound_us", microseconds(cost.lower_bound)},
          {"channels", cost.gpu.channels},
          {"multiprocessors", cost.gpu.multiprocessors},
          {"memory_bytes", cost.gpu.memory_bytes}};
}

/// Reads a number at the start of `text` and cuts it off; -1 where there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

[[noreturn]] void complain(const std::string& text, const std::string& hint) {
  throw InputError({"--ranks", "\"" + text + "\"", hint});
}

}  // namespace

double bus_factor(CollectiveKind kind, int ranks) {
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
      return 1;
  }
  return 1;
}

CollectiveReport report_collective(const Topology& topology, const CollectiveCall& call,
                                   const std::vector<int>& ranks, const CollectiveTuning& tuning) {
  CollectiveReport report{.call = call,
                          .ranks = static_cast<int>(ranks.size()),
                          .nodes = node_count(topology, ranks),
                          .cost = collective_cost(topology, call, ranks, tuning)};
  const CollectiveCost& cost = report.cost;
  if (cost.solo_time.value() > 0)
    report.algorithm_bandwidth = static_cast<double>(call.bytes.value()) / cost.solo_time.value();
  report.bus_bandwidth = report.algorithm_bandwidth * bus_factor(call.kind, report.ranks);
  if (cost.bottleneck.valid()) report.bottleneck = topology.link(cost.bottleneck).name;
  report.bound = cost.latency.value() > cost.solo_time.value() / 2 ? "latency" : "bandwidth";
  return report;
}

std::string collective_report_text(const std::vector<CollectiveReport>& reports) {
  if (reports.empty()) return "";
  return reports.size() == 1 ? in_words(reports.front()) : table(reports);
}

std::string collective_report_json(const std::vector<CollectiveReport>& reports) {
  Json json = Json::array();
  for (const CollectiveReport& report : reports) json.push_back(json_of(report));
  return (reports.size() == 1 ? json.front() : Json{{"sizes", json}}).dump(2) + "\n";
}

std::vector<int> parse_ranks(const std::string& text, int gpu_count) {
  std::vector<int> ranks;
  std::set<int> seen;
  std::string_view rest = text;
  while (true) {
    const int first = take_number(rest);
    int last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = take_number(rest);
    }
    if (first < 0 || last < first) complain(text, "write GPUs as 0-3,8,10-11");
    if (last >= gpu_count)
      complain(text, "the cluster has GPUs 0 to " + std::to_string(gpu_count - 1));
    for (int rank = first; rank <= last; ++rank) {
      if (!seen.insert(rank).second) complain(text, "name GPU " + std::to_string(rank) + " once");
      ranks.push_back(rank);
    }
    if (rest.empty()) return ranks;
    if (!rest.starts_with(',')) complain(text, "write GPUs as 0-3,8,10-11");
    rest.remove_prefix(1);
  }
}

}  // namespace tessera
