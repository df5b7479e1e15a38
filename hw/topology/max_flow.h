#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

/// The largest flow between two places of a graph with capacities, in whole units.
class MaxFlow {
 public:
  explicit MaxFlow(int places) : places_(places) {}

  void add_edge(int from, int to, std::int64_t capacity) { edges_.push_back({from, to, capacity}); }
  std::int64_t between(int source, int sink) const;

 private:
  struct Edge {
    int from;
    int to;
    std::int64_t capacity;
  };

  int places_;
  std::vector<Edge> edges_;
};

}  // namespace tessera
