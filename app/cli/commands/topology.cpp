// tessera topology show | check: looks at a cluster or node without simulating.
#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/html/topology_page.h"
#include "app/shell/home.h"
#include "app/shell/output.h"
#include "hw/topology/topology_check.h"
#include "hw/topology/topology_metrics.h"
#include "hw/units/input_error.h"
#include "hw/units/replace_file.h"
#include "sim/config/files/yaml_tree.h"
#include "sim/config/load.h"
#include "sim/formats/output_file.h"
#include "sim/report/drawings/topology_svg.h"
#include "sim/report/text/topology_text.h"

namespace tessera {
namespace {

ClusterSpec alone(const NodeSpec& node) {
  ClusterSpec cluster;
  cluster.id = node.id;
  cluster.node = node;
  return cluster;
}

/// A node's file has GPUs, a cluster's has nodes.
bool describes_a_node(const std::string& id_or_file, const Catalog& catalog) {
  if (catalog.has(CatalogKind::clusters, id_or_file)) return false;
  if (catalog.has(CatalogKind::nodes, id_or_file)) return true;
  const bool is_file = id_or_file.find_first_of("/.") != std::string::npos;
  if (!is_file) return false;
  const YamlNode tree = read_yaml_file(id_or_file);
  return tree.find("gpu_count") != nullptr && tree.find("node") == nullptr;
}

ClusterSpec load_described(const std::string& id_or_file) {
  const Catalog catalog = shipped_catalog();
  if (describes_a_node(id_or_file, catalog)) return alone(load_node(id_or_file, catalog));
  return load_cluster(id_or_file, catalog);
}

struct TopologyShowOptions {
  std::string file;
  std::string svg;
  std::string report_file;
  bool every_link = false;
};

void show_topology(const TopologyShowOptions& options) {
  const Topology topology(load_described(options.file));
  const TopologyMetrics metrics = metrics_of(topology);
  print(for_people(topology_text(topology, metrics, options.every_link)));
  if (!options.svg.empty()) replace_file(options.svg, topology_svg(topology));
  if (!options.report_file.empty())
    write_output_file(options.report_file, topology_page(topology, metrics, TESSERA_VERSION));
}

std::vector<Problem> doubts_about_file(const std::string& file) {
  const Catalog catalog = shipped_catalog();
  const Topology topology(load_described(file));
  std::vector<Problem> doubts = doubts_about(topology);
  const auto add = [&](std::vector<Problem> more) {
    doubts.insert(doubts.end(), more.begin(), more.end());
  };
  const NodeSpec& node = topology.cluster().node;
  if (catalog.has(CatalogKind::gpus, node.gpu.id)) {
    add(differences_from_catalog(node.gpu, load_gpu(node.gpu.id, catalog)));
  }
  if (catalog.has(CatalogKind::nodes, node.id)) {
    add(differences_from_catalog(node, load_node(node.id, catalog)));
  }
  for (Problem& problem : doubts)
    problem.where = problem.where.empty() ? file : file + ": " + problem.where;
  return doubts;
}

void check_topologies(const std::vector<std::string>& files) {
  std::vector<Problem> problems;
  for (const std::string& file : files) {
    std::vector<Problem> of_file;
    try {
      of_file = doubts_about_file(file);
    } catch (const InputError& error) {
      of_file = error.problems();
    }
    if (of_file.empty()) print(file + ": ok\n");
    problems.insert(problems.end(), of_file.begin(), of_file.end());
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

void add_show(CLI::App& topology) {
  auto options = std::make_shared<TopologyShowOptions>();
  CLI::App* command = topology.add_subcommand(
      "show", "Bisection, injection, diameter, oversubscription, links of a cluster or node");
  command
      ->add_option("FILE", options->file,
                   "cluster or node: an id of tessera list clusters or nodes, or a file")
      ->type_name(kClusterId)
      ->required();
  command->add_option("--svg", options->svg, "draw it into this file");
  command->add_option("--report", options->report_file,
                      "write a self-contained HTML page: drawing, links promised and usable");
  command->add_flag("--links", options->every_link, "list every link by the name faults use");
  command->callback([options] { show_topology(*options); });
}

void add_check(CLI::App& topology) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* command = topology.add_subcommand(
      "check", "Find what cannot be reached, asymmetric links, bandwidths unlike the catalog's");
  command
      ->add_option("FILE", *files,
                   "clusters or nodes: ids of tessera list clusters or nodes, or files")
      ->type_name(kClusterId)
      ->required();
  command->callback([files] { check_topologies(*files); });
}

}  // namespace

void add_topology_command(CLI::App& app) {
  CLI::App* topology = app.add_subcommand("topology", "Look at the network of a cluster");
  topology->require_subcommand(1);
  add_show(*topology);
  add_check(*topology);
}

}  // namespace tessera
