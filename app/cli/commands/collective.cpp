// What a collective takes, alone: tessera collective.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <spdlog/spdlog.h>

#include "app/cli/commands.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/collectives/collective_names.h"
#include "sim/collectives/measured_fabric.h"
#include "sim/config/load.h"
#include "sim/config/scenario_source.h"
#include "sim/report/collective_report.h"

namespace tessera {
namespace {

struct CollectiveOptions {
  std::string cluster;
  std::string op;
  std::string bytes;
  std::string to;
  int factor = 2;
  int nodes = 0;  ///< 0: as many as the cluster has
  std::string ranks;
  std::string algorithm;
  std::string protocol;
  std::string measured;
  std::string constants;
  bool no_switch_reduction = false;
  bool copy_engines = false;
  std::string format;
};

Bytes size_of(const std::string& option, const std::string& text) {
  // nccl-tests writes bytes without a unit
  const bool bare = text.find_first_not_of("0123456789") == std::string::npos;
  try {
    const Bytes bytes = parse_bytes(bare ? text + " B" : text);
    constexpr Bytes kMost(std::int64_t{1} << 50);
    if (bytes >= 1_B && bytes <= kMost) return bytes;
  } catch (const InputError&) {
  }
  throw InputError({option, "\"" + text + "\"", "write a size as 1 GiB, 64MB or 1048576"});
}

template <class Value>
void choose(const std::string& option, const std::string& name, const std::optional<Value>& known,
            std::optional<Value>& choice) {
  if (name.empty()) return;
  choice = known;
  if (!known) throw InputError({option, "\"" + name + "\"", "see tessera collective --help"});
}

CollectiveCall call_of(const CollectiveOptions& options) {
  CollectiveCall call;
  const auto kind = collective_kind_of(options.op);
  if (!kind)
    throw InputError({"--op", "\"" + options.op + "\"",
                      "write all_reduce, all_gather, reduce_scatter, broadcast, alltoall or "
                      "sendrecv"});
  call.kind = *kind;
  call.bytes = size_of("--bytes", options.bytes);
  choose("--algo", options.algorithm, collective_algorithm_of(options.algorithm), call.algorithm);
  choose("--proto", options.protocol, collective_protocol_of(options.protocol), call.protocol);
  call.reduces_in_switch = !options.no_switch_reduction;
  call.copy_engines = options.copy_engines;
  return call;
}

/// As described where it has nodes enough, else grown to as many as are asked for.
ClusterSpec cluster_of(const CollectiveOptions& options, const Catalog& catalog) {
  ClusterSpec cluster = load_cluster(options.cluster, catalog);
  if (options.nodes <= cluster.node_count) return cluster;
  const std::vector<std::string> settings{"cluster.node_count=" + std::to_string(options.nodes)};
  return cluster_with(options.cluster, settings, catalog);
}

std::vector<int> ranks_of(const CollectiveOptions& options, const Topology& topology) {
  const std::int64_t taken = std::int64_t{options.nodes} * topology.cluster().node.gpu_count;
  const int gpus = options.nodes > 0 ? static_cast<int>(taken) : topology.gpu_count();
  std::vector<int> ranks(static_cast<std::size_t>(gpus));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (options.ranks.empty()) return ranks;
  ranks = parse_ranks(options.ranks, topology.gpu_count());
  const int last = std::ranges::max(ranks);
  if (last < gpus) return ranks;
  throw InputError(
      {"--ranks",
       "GPU " + std::to_string(last) + " is not on --nodes " + std::to_string(options.nodes),
       "name GPUs 0 to " + std::to_string(gpus - 1) + ", or leave --nodes out"});
}

void run_collective(const CollectiveOptions& options) {
  const Catalog catalog = shipped_catalog();
  const ClusterSpec cluster = cluster_of(options, catalog);
  const MeasuredFabric fabric = measured_fabric(cluster, CollectiveTuning());
  if (const std::string note = note_on_measured_fabric(fabric); !note.empty())
    spdlog::info("{}", note);
  const Topology topology(fabric.cluster);
  const std::vector<int> ranks = ranks_of(options, topology);
  if (ranks.size() < 2)
    throw InputError({"--ranks", "one GPU", "a collective needs two GPUs or more"});
  CollectiveCall call = call_of(options);
  std::vector<GroupCalibration> groups;
  if (!options.measured.empty()) groups = load_collectives(options.measured, catalog).groups;
  const std::vector<GroupCalibration> slow = calibrations_of(fabric, CollectiveTuning());
  groups.insert(groups.end(), slow.begin(), slow.end());
  const CollectiveTuning tuning(
      options.constants == "nccl" ? nccl_constants() : CollectiveConstants(), groups);
  const Bytes last = options.to.empty() ? call.bytes : size_of("--to", options.to);
  std::vector<CollectiveReport> reports;
  for (; call.bytes <= last; call.bytes *= options.factor)
    reports.push_back(report_collective(topology, call, ranks, tuning));
  if (reports.empty())
    throw InputError({"--to", "\"" + options.to + "\"", "take a size that is not below --bytes"});
  print(options.format == "json" ? collective_report_json(reports)
                                 : for_people(collective_report_text(reports)));
}

}  // namespace

void add_collective_command(CLI::App& app) {
  auto options = std::make_shared<CollectiveOptions>();
  CLI::App* command = app.add_subcommand("collective", "Time a collective alone on a cluster");
  command->add_option("--cluster", options->cluster, "id of tessera list clusters, or a file")
      ->type_name(kClusterId)
      ->required();
  command
      ->add_option("--op", options->op,
                   "all_reduce, all_gather, reduce_scatter, broadcast, alltoall or sendrecv (from "
                   "the first of the ranks to the second)")
      ->required();
  command->add_option("--bytes", options->bytes, "size as of nccl-tests, e.g. 1GiB")->required();
  command->add_option("--to", options->to, "a sweep: up to this size");
  command->add_option("--factor", options->factor, "a sweep: from size to size, at least 2")
      ->check(CLI::Range(2, 1024));
  command
      ->add_option("--nodes", options->nodes,
                   "of the cluster, the first ones; more than it has: a larger one of its kind")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--ranks", options->ranks, "GPUs, as 0-3,8; all of the nodes otherwise");
  command->add_option(
      "--algo", options->algorithm,
      "ring, tree, nvls, nvls_tree, collnet_direct, collnet_chain, pat, pairwise or "
      "hierarchical instead of the tuner's choice");
  command->add_option("--proto", options->protocol, "ll, ll128 or simple, likewise");
  command->add_option("--measured", options->measured,
                      "measured collectives (YAML of tessera calibrate nccl, or an id of them)");
  command->add_option("--constants", options->constants, "of the model, or NCCL's own")
      ->check(CLI::IsMember({"shipped", "nccl"}));
  command->add_flag("--no-switch-reduction", options->no_switch_reduction,
                    "data that NVLS does not reduce, as int8");
  command->add_flag("--copy-engines", options->copy_engines,
                    "inside a node, copy engines move what is not reduced (NCCL_CTA_POLICY)");
  add_format_option(*command, options->format, {"table", "json"});
  command->callback([options] { run_collective(*options); });
}

}  // namespace tessera
