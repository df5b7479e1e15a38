#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/neighbours/neighbour_answer.h"
#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

/// At most `width` characters; what is cut ends in two dots.
std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

/// "0, 10, 20 and 5 more" of a list with commas.
std::string first_nodes(const std::string& list) {
  constexpr std::size_t kWidth = 10;
  if (list.size() <= kWidth + 9) return list;
  const std::size_t end = list.find_last_of(',', kWidth);
  if (end == std::string::npos) return list;
  return list.substr(0, end) + " and " +
         std::to_string(
             std::count(list.begin() + static_cast<std::ptrdiff_t>(end), list.end(), ',')) +
         " more";
}

std::string row_of(const NeighbourTimes& job) {
  return formatted("%-19s %5d %10s %10s %8.3f  ", shortened(job.name, 19).c_str(), job.gpus,
                   to_short_text(job.alone).c_str(), to_short_text(job.together).c_str(),
                   job.slowdown()) +
         first_nodes(job.nodes) + (job.meets_others ? "\n" : ", alone\n");
}

/// Shares in percent, of the jobs that send most first.
std::string users_of(const NeighbourLink& link, const NeighbourAnswer& answer) {
  int users = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < link.bytes.size(); ++i) {
    users += link.bytes[i] > 0 ? 1 : 0;
    if (link.bytes[i] > link.bytes[most]) most = i;
  }
  if (link.all_bytes() <= 0) return "nobody";
  return formatted("%d jobs, %.0f %% %s", users, 100 * link.bytes[most] / link.all_bytes(),
                   shortened(answer.jobs[most].name, 11).c_str());
}

std::string row_of(const NeighbourLink& link, const NeighbourAnswer& answer) {
  return formatted("%-30s %9.1f %6.1f %9.1f  %s\n", shortened(link.name, 30).c_str(),
                   link.gigabytes_per_s, 100 * link.busy_share, 100 * link.together_share,
                   users_of(link, answer).c_str());
}

Json json_of(const NeighbourTimes& job) {
  return {{"name", job.name},
          {"nodes", job.nodes},
          {"gpus", job.gpus},
          {"start_s", job.start.value()},
          {"step_alone_s", job.alone.value()},
          {"step_together_s", job.together.value()},
          {"shortest_s", job.shortest.value()},
          {"longest_s", job.longest.value()},
          {"slowdown", job.slowdown()},
          {"steps", job.steps},
          {"shares_links", job.meets_others}};
}

Json json_of(const NeighbourLink& link, const NeighbourAnswer& answer) {
  Json bytes = Json::object();
  for (std::size_t i = 0; i < link.bytes.size(); ++i) {
    if (link.bytes[i] > 0) bytes[answer.jobs[i].name] = link.bytes[i];
  }
  return {{"link", link.name},
          {"bandwidth_gb_per_s", link.gigabytes_per_s},
          {"busy_share", link.busy_share},
          {"several_jobs_share", link.together_share},
          {"bytes", std::move(bytes)}};
}

}  // namespace

std::string table_text(const NeighbourAnswer& answer, std::size_t links) {
  std::string text = formatted("%s: %zu jobs on %s (%d GPUs)\n%s simulated\n\n",
                               shortened(answer.name, 40).c_str(), answer.jobs.size(),
                               shortened(answer.cluster, 60).c_str(), answer.cluster_gpus,
                               to_short_text(answer.simulated).c_str());
  text += "job                  GPUs step alone   together slowdown  nodes\n";
  for (const NeighbourTimes& job : answer.jobs) text += row_of(job);
  if (answer.links.empty()) return text + "\nno two jobs share a link\n";
  text += formatted("\n%zu links carry several jobs\n", answer.links.size());
  text += "link                                GB/s busy %  shared %  who\n";
  for (std::size_t i = 0; i < std::min(links, answer.links.size()); ++i)
    text += row_of(answer.links[i], answer);
  return text;
}

std::string json_text(const NeighbourAnswer& answer, const std::string& version) {
  Json jobs = Json::array(), links = Json::array();
  for (const NeighbourTimes& job : answer.jobs) jobs.push_back(json_of(job));
  for (const NeighbourLink& link : answer.links) links.push_back(json_of(link, answer));
  return Json{{"schema", "tessera.neighbours/1"},
              {"tessera_version", version},
              {"name", answer.name},
              {"cluster", answer.cluster},
              {"gpus", answer.cluster_gpus},
              {"simulated_s", answer.simulated.value()},
              {"jobs", std::move(jobs)},
              {"links", std::move(links)}}
             .dump(2) +
         "\n";
}

}  // namespace tessera
