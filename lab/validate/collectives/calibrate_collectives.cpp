#include "lab/validate/collectives/calibrate_collectives.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "hw/units/formatted.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "lab/validate/collectives/collective_cluster.h"
#include "lab/validate/device_name.h"
#include "sim/collectives/calibration_fit.h"
#include "sim/collectives/collective_names.h"

namespace tessera {
namespace {

using GroupKey =
    std::tuple<CollectiveKind, int, int, bool>;  // kind, ranks, nodes, reduces in switch
using TimedGroups = std::map<GroupKey, std::vector<TimedCollective>>;

GroupKey group_key_of(const CollectivePlan& plan) {
  return {plan.call.kind, plan.shape.ranks, plan.shape.nodes, plan.call.reduces_in_switch};
}

bool reduces_in_switch(const std::string& type) {
  return type.find("int8") == std::string::npos && type.find("uint8") == std::string::npos;
}

/// Takes the launch out of the measurements, then fits.
GroupCalibration fit(std::vector<TimedCollective> timed, const CollectiveFitOptions& options) {
  const CollectiveConstants constants;
  const Seconds launch = options.launch.value_or(launch_floor(timed, constants));
  constexpr double kLeastPart = 0.2;  // of a measurement, that stays
  for (TimedCollective& one : timed)
    one.measured = std::max(one.measured - launch, one.measured * kLeastPart);
  GroupCalibration group = fit_group(timed, constants, options.octaves);
  group.launch = launch;
  return group;
}

CollectiveSettings fit_all(const TimedGroups& groups, const CollectiveFitOptions& options) {
  CollectiveSettings settings;
  for (const auto& [key, timed] : groups) settings.groups.push_back(fit(timed, options));
  return settings;
}

/// The first `ranks / nodes` GPUs of every node.
std::vector<int> ranks_on(const NcclLog& log, int ranks, int nodes, const ClusterSpec& cluster) {
  const bool fits = nodes >= 1 && ranks >= 2 && ranks % nodes == 0 && nodes <= cluster.node_count &&
                    ranks / nodes <= cluster.node.gpu_count;
  if (!fits)
    throw InputError({log.file,
                      std::to_string(ranks) + " GPUs in " + std::to_string(nodes) +
                          " nodes, but the cluster has " + std::to_string(cluster.node_count) +
                          " nodes of " + std::to_string(cluster.node.gpu_count),
                      "name the cluster that was measured, or --ranks and --nodes"});
  std::vector<int> list;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < ranks / nodes; ++gpu)
      list.push_back(node * cluster.node.gpu_count + gpu);
  }
  return list;
}

/// The devices that a log lists are those of the cluster, as many on every node.
void check_devices(const NcclLog& log, const ClusterSpec& cluster) {
  if (!log.even)
    throw InputError({log.file, "lists more GPUs on one node than on another",
                      "measure groups with as many GPUs on every node"});
  const std::string& gpu = cluster.node.gpu.id;
  for (const std::string& name : log.gpus) {
    if (can_be_gpu(name, gpu)) continue;
    throw InputError({log.file, "was measured on " + name + ", but GPUs of the cluster are " + gpu,
                      "name the cluster that was measured with --cluster"});
  }
}

int first_given(int a, int b, int c) {
  return a > 0 ? a : b > 0 ? b : c;
}

}  // namespace

CollectiveSettings calibrate_on_logs(const std::vector<NcclLog>& logs, const ClusterSpec& cluster,
                                     const CollectiveFitOptions& options) {
  const Topology topology(cluster);
  TimedGroups groups;
  std::string source;
  for (const NcclLog& log : logs) {
    const auto kind = log.collective ? log.collective : options.collective;
    if (!kind)
      throw InputError({log.file, "does not say which collective it is", "add --op all_reduce"});
    const int ranks = first_given(log.ranks, options.ranks, cluster.gpu_count());
    const int nodes = first_given(log.nodes, options.nodes, cluster.node_count);
    check_devices(log, cluster);
    const std::vector<int> members = ranks_on(log, ranks, nodes, cluster);
    for (const NcclTime& row : log.times) {
      const CollectiveCall call{
          .kind = *kind, .bytes = row.bytes, .reduces_in_switch = reduces_in_switch(row.type)};
      CollectivePlan plan = plan_collective(topology, call, members);
      const GroupKey key = group_key_of(plan);
      groups[key].push_back({std::move(plan), row.time});
    }
    source += (source.empty() ? "" : ", ") + std::filesystem::path(log.file).filename().string();
  }
  CollectiveSettings settings = fit_all(groups, options);
  settings.source = source;
  return settings;
}

CollectiveSettings calibrate_on_runs(const std::vector<CollectiveRun>& runs, const Catalog& catalog,
                                     const CollectiveFitOptions& options) {
  TimedGroups groups;
  RunTopologies topologies(catalog);
  for (const CollectiveRun& run : runs) {
    const Topology& topology = topologies.of(run);
    const CollectiveCall call{.kind = run.collective,
                              .bytes = run.bytes,
                              .reduces_in_switch = reduces_in_switch(run.dtype)};
    CollectivePlan plan = plan_collective(topology, call, ranks_of_run(run, topology.cluster()));
    const GroupKey key = group_key_of(plan);
    groups[key].push_back({std::move(plan), run.measured});
  }
  return fit_all(groups, options);
}

std::string collective_fit_table(const CollectiveSettings& settings) {
  std::string text = text_line("%-14s %5s %5s %-14s %-8s %5s %8s %8s %8s %10s %10s", "collective",
                               "ranks", "nodes", "algorithm", "protocol", "rows", "latency",
                               "transfer", "fill", "residual,%", "launch, us");
  for (const GroupCalibration& group : settings.groups) {
    for (const ProtocolCalibration& way : group.protocols) {
      text += text_line("%-14s %5d %5d %-14s %-8s %5d %8.2f %8.2f %8.2f %10.1f %10.1f",
                        std::string(name_of(group.collective)).c_str(), group.ranks, group.nodes,
                        std::string(name_of(way.algorithm)).c_str(),
                        std::string(name_of(way.protocol)).c_str(), way.rows, way.latency_factor,
                        way.transfer_factor, way.fill_factor, way.residual_pct,
                        group.launch.value() * 1e6);
    }
  }
  return text +
         "latency, transfer, fill: measured over predicted; residual: mean absolute error of the "
         "factors on these\nrows, before the corrections by size; launch: taken out of the "
         "measurements\n";
}

std::string collective_fit_json(const CollectiveSettings& settings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const GroupCalibration& group : settings.groups) {
    for (const ProtocolCalibration& way : group.protocols) {
      json.push_back({{"collective", name_of(group.collective)},
                      {"ranks", group.ranks},
                      {"nodes", group.nodes},
                      {"algorithm", name_of(way.algorithm)},
                      {"protocol", name_of(way.protocol)},
                      {"rows", way.rows},
                      {"latency_factor", way.latency_factor},
                      {"transfer_factor", way.transfer_factor},
                      {"fill_factor", way.fill_factor},
                      {"residual_pct", way.residual_pct},
                      {"launch_us", group.launch.value() * 1e6}});
    }
  }
  return nlohmann::ordered_json{{"fits", json}}.dump(2) + "\n";
}

}  // namespace tessera
