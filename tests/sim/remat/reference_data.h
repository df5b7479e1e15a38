#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/remat/io/instance.h"
#include "tests/hw/units/measurements.h"

namespace tessera::remat::test {

inline std::filesystem::path reference_folder() {
  return measurements_folder() / "remat";
}

/// A problem of golden_small.json with its optima; null = infeasible.
struct Golden {
  Graph graph;
  ByteCount memory = 0;
  nlohmann::json fields;

  std::optional<Nanoseconds> optimum(const std::string& name) const {
    const nlohmann::json& value = fields.at(name);
    if (value.is_null()) return std::nullopt;
    return value.get<Nanoseconds>();
  }
};

inline std::vector<Golden> golden_problems() {
  const std::filesystem::path file = reference_folder() / "instances/golden_small.json";
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(file));
  std::vector<Golden> problems;
  for (const nlohmann::json& entry : json.at("instances")) {
    std::vector<OpSpec> ops(entry.at("dur").size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      ops[i].time = entry.at("dur")[i];
      ops[i].workspace = entry.at("work")[i];
      ops[i].out_bytes = {entry.at("size")[i].get<ByteCount>()};
      ops[i].inputs = entry.at("deps")[i].get<std::vector<TensorId>>();
    }
    // A chain has as many layers forward as backward, and the loss between them.
    const bool chain = entry.at("kind") == "chain";
    const OpId backward = chain ? static_cast<OpId>(ops.size() + 1) / 2 : -1;
    problems.push_back(
        {Graph("golden", ops, entry.at("keep").get<std::vector<TensorId>>(), 0, backward),
         entry.at("M"), entry});
  }
  return problems;
}

/// An instance whose optimum, or best known cost, at a budget was published.
struct KnownCost {
  const char* file;
  double gibibytes;
  Nanoseconds cost;
};

inline const std::vector<KnownCost>& monet_costs() {
  constexpr Nanoseconds kUnit = 10'000;  // 1/100 ms
  static const std::vector<KnownCost> costs{
      {"monet_vgg16_176", 10, 250600 * kUnit}, {"monet_vgg16_176", 9, 251383 * kUnit},
      {"monet_vgg16_176", 8, 255828 * kUnit},  {"monet_unet_11", 10, 192809 * kUnit},
      {"monet_unet_11", 9, 193700 * kUnit},    {"monet_unet_11", 8, 194811 * kUnit},
      {"monet_unet_11", 7, 196567 * kUnit},    {"monet_unet_11", 6, 199613 * kUnit},
      {"monet_unet_11", 5, 209265 * kUnit}};
  return costs;
}

inline Graph monet_graph(const std::string& name) {
  return read_instance(reference_folder() / "instances" / (name + ".json")).graph;
}

inline ByteCount gibibytes(double count) {
  return static_cast<ByteCount>(count * (std::int64_t{1} << 30));
}

/// The better of h_DTR_eq and MSPS by log and budget ratio: total compute over base compute.
inline std::map<std::pair<std::string, std::string>, double> dtr_curves() {
  std::map<std::pair<std::string, std::string>, double> best;
  std::ifstream stream(reference_folder() / "dtr_simulator_curves.csv");
  std::string line;
  while (std::getline(stream, line)) {
    std::vector<std::string> fields;
    std::istringstream row(line);
    for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
    if (fields.size() < 6 || fields[4] != "ok") continue;
    if (fields[1] != "h_DTR_eq" && fields[1] != "MSPS") continue;
    const double ratio = std::stod(fields[5]);
    const auto [entry, fresh] = best.emplace(std::make_pair(fields[0], fields[2]), ratio);
    if (!fresh && ratio < entry->second) entry->second = ratio;
  }
  return best;
}

}  // namespace tessera::remat::test
