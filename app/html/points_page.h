#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tessera {

/// A figure or word of every point.
struct PointColumn {
  std::string name;
  int better = 0;     ///< -1: less is better, 1: more is, 0: neither
  bool input = true;  ///< where `better` is 0: it was chosen, and did not come out of a simulation
};

/// Points to compare: what a sweep or a search found.
struct PointsReport {
  std::string title;
  std::vector<std::pair<std::string, nlohmann::ordered_json>> summary;
  std::vector<PointColumn> columns;
  std::vector<std::string> labels;                        ///< of the points
  std::vector<std::vector<nlohmann::ordered_json>> rows;  ///< numbers, texts or null, by column
  std::string note;
  std::string fits;  ///< the column that says "fits" or otherwise; empty: all fit
};

/// The points as an HTML page: the best beside the next best, a heat map of two axes, two figures
/// against each other with the Pareto front of what fits for each global batch, parallel
/// coordinates, a table.
std::string points_page(const PointsReport& report, const std::string& tessera_version);

}  // namespace tessera
