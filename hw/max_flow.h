#pragma once

#include <cstddef>
#include <vector>

namespace tessera {

/// The largest flow between two places of a graph with capacities (Dinic's algorithm).
class MaxFlow {
 public:
  explicit MaxFlow(int places) : out_(static_cast<std::size_t>(places)) {}

  void add_edge(int from, int to, double capacity);
  /// Once per object.
  double between(int source, int sink);

 private:
  struct Edge {
    int to = 0;
    double capacity = 0;
  };

  bool find_levels(int source, int sink);
  double push_one_way(int source, int sink);

  std::vector<Edge> edges_;  ///< an edge and the way back over it follow each other
  std::vector<std::vector<int>> out_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;  ///< first edge of each place that may still lead on
};

}  // namespace tessera
