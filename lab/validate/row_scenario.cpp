#include "lab/validate/row_scenario.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "sim/config/scenario_source.h"

namespace tessera {
namespace {

std::string pairs_text(const std::vector<GpuPairLink>& pairs) {
  std::string text;
  for (const GpuPairLink& pair : pairs)
    text += (text.empty() ? "" : ", ") + std::string("{first: ") + std::to_string(pair.first) +
            ", second: " + std::to_string(pair.second) + ", links: " + std::to_string(pair.links) +
            "}";
  return "[" + text + "]";
}

[[noreturn]] void refuse(const InputError& error, std::span<const std::string> own,
                         const std::string& where) {
  std::vector<Problem> problems;
  for (const Problem& problem : error.problems()) {
    const bool of_row = std::ranges::any_of(own, [&](const std::string& setting) {
      return problem.where.find(setting) != std::string::npos;
    });
    problems.push_back(
        {where, of_row ? problem.where + ": " + problem.what : problem.what, problem.hint});
  }
  throw InputError(std::move(problems));
}

}  // namespace

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string exact_text(double number) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return {digits, end};
}

std::vector<std::string> settings_of_node(const NodeSpec& node, const std::string& gpu) {
  std::vector<std::string> settings{
      "cluster.id=" + quoted(node.id),
      "cluster.node.id=" + quoted(node.id),
      "cluster.node.gpu=" + quoted(gpu),
      "cluster.node.gpu_count=" + std::to_string(node.gpu_count),
      "cluster.node.pcie_efficiency=" + exact_text(node.pcie_efficiency),
      "cluster.node.pcie_latency=" + to_text(node.pcie_latency)};
  const auto set = [&](const char* field, const std::string& value) {
    settings.push_back("cluster.node." + std::string(field) + "=" + value);
  };
  if (node.staged_bandwidth.value() > 0) set("staged_bandwidth", to_text(node.staged_bandwidth));
  if (node.interconnect == GpuInterconnect::none) return settings;
  const bool direct = node.interconnect == GpuInterconnect::direct;
  set("interconnect", direct ? "direct" : "nvswitch");
  if (direct) set("pairs", pairs_text(node.pairs));
  set("nvlink_bandwidth_per_link", to_text(node.nvlink_bandwidth_per_link));
  set("nvlink_efficiency", exact_text(node.nvlink_efficiency));
  set("nvlink_latency", to_text(node.nvlink_latency));
  return settings;
}

Scenario scenario_of_row(std::span<const std::string> settings, std::span<const std::string> own,
                         const std::string& where, const Catalog& catalog) {
  try {
    return scenario_of(settings, where, catalog);
  } catch (const InputError& error) {
    refuse(error, own, where);
  }
}

}  // namespace tessera
