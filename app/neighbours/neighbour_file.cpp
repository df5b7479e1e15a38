#include "app/neighbours/neighbour_file.h"

#include <cstddef>
#include <map>
#include <utility>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/files/yaml_tree.h"
#include "sim/config/keyed_file.h"
#include "sim/config/load.h"
#include "sim/scenario/perturbation.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Kind = YamlNode::Kind;

const std::vector<std::string> kFileKeys = {"name", "cluster", "set", "jobs"};
const std::vector<std::string> kJobKeys = {"name",  "scenario", "first_node",
                                           "nodes", "start",    "set"};

constexpr std::size_t kMostJobs = 1000;

bool is_file(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

/// "[0, 1, 2]" for ranks on whole nodes, in order.
std::string placement_text(const std::vector<int>& nodes, int gpus_per_node, int ranks) {
  std::string text = "[";
  for (int rank = 0; rank < ranks; ++rank) {
    const int gpu = nodes[static_cast<std::size_t>(rank / gpus_per_node)] * gpus_per_node +
                    rank % gpus_per_node;
    text += (rank == 0 ? "" : ", ") + std::to_string(gpu);
  }
  return text + "]";
}

class NeighbourReader : KeyedFileReader {
 public:
  explicit NeighbourReader(const Catalog& catalog) : catalog_(catalog) {}

  PlacedJobs read(const fs::path& file) {
    const YamlNode root = read_yaml_file(file);
    placed_.name = file.stem().string();
    if (root.kind != Kind::mapping) {
      add(root.mark, "is no file of jobs", "write cluster: and jobs:, see docs/howto");
      problems_.throw_if_any();
    }
    check_keys(root, kFileKeys);
    if (const YamlNode* name = value(root, "name")) placed_.name = name->text;
    read_cluster(root);
    const YamlEntry* jobs = root.find("jobs");
    if (jobs == nullptr || jobs->value.kind != Kind::sequence || jobs->value.items.empty()) {
      add(jobs == nullptr ? root.mark : jobs->value.mark, "has no list of jobs",
          "write jobs: [{scenario: ID, first_node: 0}]");
    } else if (jobs->value.items.size() > kMostJobs) {
      add(jobs->value.mark, "has more than a thousand jobs", "simulate fewer");
    }
    problems_.throw_if_any();
    for (const YamlNode& item : jobs->value.items) read_job(item);
    problems_.throw_if_any();
    return std::move(placed_);
  }

 private:
  std::vector<std::string> settings(const YamlNode& node) {
    std::vector<std::string> settings;
    const YamlEntry* entry = node.find("set");
    if (entry == nullptr) return settings;
    for (const YamlNode& line : entry->value.items) {
      if (line.kind == Kind::scalar) settings.push_back(line.text);
    }
    if (entry->value.kind != Kind::sequence || settings.size() != entry->value.items.size())
      add(entry->value.mark, "set is no list of settings", "write set: [path=value]");
    return settings;
  }

  /// An id, or a file beside this one.
  std::string id_or_file(const YamlNode& value) const {
    if (!is_file(value.text)) return value.text;
    const fs::path beside = value.mark.origin->directory / value.text;
    return fs::exists(beside) ? fs::absolute(beside).string() : value.text;
  }

  void read_cluster(const YamlNode& root) {
    for (std::string& line : settings(root)) of_all_.push_back(std::move(line));
    const YamlNode* cluster = value(root, "cluster");
    if (cluster == nullptr) {
      if (root.find("cluster") == nullptr)
        add(root.mark, "has no cluster", "name it: cluster: ID or FILE");
      return;
    }
    cluster_ = id_or_file(*cluster);
    try {
      load_cluster(cluster_, catalog_);
    } catch (const InputError& error) {
      add(cluster->mark,
          "cluster " + shown_value(cluster->text) + ": " + error.problems().front().what,
          error.problems().front().hint);
    }
  }

  void read_job(const YamlNode& item) {
    if (item.kind != Kind::mapping)
      return add(item.mark, "is no job", "write {scenario: ID, first_node: 0}");
    check_keys(item, kJobKeys);
    const YamlNode* scenario = value(item, "scenario");
    if (scenario == nullptr)
      return add(item.mark, "has no scenario", "name one: scenario: ID or FILE");
    std::vector<std::string> overrides = {"cluster=" + cluster_};
    overrides.insert(overrides.end(), of_all_.begin(), of_all_.end());
    for (std::string& line : settings(item)) {
      if (line.starts_with("cluster"))
        add(item.mark, "sets " + shown_value(line) + " for one of several jobs on a cluster",
            "set it for all of them, in the file's own list");
      overrides.push_back(std::move(line));
    }
    try {
      place(item, id_or_file(*scenario), std::move(overrides));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems())
        add(scenario->mark, "scenario " + shown_value(scenario->text) + ": " + problem.what,
            problem.hint);
    }
  }

  void place(const YamlNode& item, const std::string& file, std::vector<std::string> overrides) {
    const Scenario unplaced = load_scenario(file, overrides, catalog_);
    if (!unplaced.step.placement.empty())
      return add(item.mark, "has a placement of its own in its scenario",
                 "remove parallelism.placement, and say nodes here");
    if (unplaced.collectives.fidelity == NetworkFidelity::analytic)
      return add(item.mark, "has collectives.fidelity analytic, which knows no links",
                 "use flow or chunk");
    const ClusterSpec& cluster = unplaced.cluster;
    const int ranks = unplaced.step.layout.world_size();
    PlacedJob job;
    job.name = name_of_job(item, unplaced);
    job.nodes = nodes_of(item, cluster, ranks);
    job.start = start_of(item);
    if (job.nodes.empty()) return;
    overrides.push_back("parallelism.placement=" +
                        placement_text(job.nodes, cluster.node.gpu_count, ranks));
    job.scenario = load_scenario(file, overrides, catalog_);
    placed_.cluster = job.scenario.cluster;
    placed_.jobs.push_back(std::move(job));
  }

  std::string name_of_job(const YamlNode& item, const Scenario& scenario) {
    const YamlNode* given = value(item, "name");
    std::string name = given != nullptr ? given->text : scenario.name;
    const int count = ++names_[name];
    if (given != nullptr && count > 1)
      add(given->mark, name + " is the name of another job", "give each its own name:");
    return count > 1 ? name + " " + std::to_string(count) : name;
  }

  Seconds start_of(const YamlNode& item) {
    const YamlNode* start = value(item, "start");
    if (start == nullptr) return Seconds(0);
    try {
      return parse_seconds(start->text);
    } catch (const InputError& error) {
      add(start->mark, "start = " + error.problems().front().what, error.problems().front().hint);
      return Seconds(0);
    }
  }

  /// The nodes that are given, or as many as the job needs from the first one on.
  std::vector<int> nodes_of(const YamlNode& item, const ClusterSpec& cluster, int ranks) {
    const int needed = (ranks + cluster.node.gpu_count - 1) / cluster.node.gpu_count;
    const YamlNode* first = value(item, "first_node");
    const YamlNode* list = value(item, "nodes");
    if ((first == nullptr) == (list == nullptr)) {
      add(item.mark, first == nullptr ? "says no nodes" : "says both first_node and nodes",
          "write first_node: 0, or nodes: 0-3, 8");
      return {};
    }
    std::vector<int> nodes;
    try {
      nodes = parse_ranks(first != nullptr ? first->text : list->text);
    } catch (const InputError&) {
      add(item.mark, "has nodes that are no list", "write numbers and ranges, such as 0-3, 8");
      return {};
    }
    if (first != nullptr) {
      const int begin = nodes.front();
      nodes.clear();
      for (int i = 0; i < needed; ++i) nodes.push_back(begin + i);
    }
    return check_nodes(item, std::move(nodes), needed, cluster);
  }

  std::vector<int> check_nodes(const YamlNode& item, std::vector<int> nodes, int needed,
                               const ClusterSpec& cluster) {
    if (static_cast<int>(nodes.size()) != needed) {
      add(item.mark,
          "has " + std::to_string(nodes.size()) + " nodes, but its ranks fill " +
              std::to_string(needed),
          "name as many");
      return {};
    }
    for (const int node : nodes) {
      if (node >= cluster.node_count) {
        add(item.mark,
            "is on node " + std::to_string(node) + ", but " + cluster.id + " has " +
                std::to_string(cluster.node_count),
            "name nodes 0 to " + std::to_string(cluster.node_count - 1) +
                ", or set cluster.node_count");
        return {};
      }
      const auto [taken, is_free] = taken_.emplace(node, item.mark.line);
      if (is_free) continue;
      add(item.mark,
          "is on node " + std::to_string(node) + ", as the job in line " +
              std::to_string(taken->second),
          "give each job nodes of its own");
      return {};
    }
    return nodes;
  }

  const Catalog& catalog_;
  PlacedJobs placed_;
  std::string cluster_;
  std::vector<std::string> of_all_;  ///< settings of all jobs
  std::map<std::string, int> names_;
  std::map<int, int> taken_;  ///< by node: line of the job
};

}  // namespace

PlacedJobs read_neighbours(const fs::path& file, const Catalog& catalog) {
  return NeighbourReader(catalog).read(file);
}

}  // namespace tessera
