#include "hw/max_flow.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace tessera {
namespace {

constexpr double kNothing = 1e-3;  // bytes per second, against rounding

}  // namespace

void MaxFlow::add_edge(int from, int to, double capacity) {
  out_[static_cast<std::size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  out_[static_cast<std::size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MaxFlow::find_levels(int source, int sink) {
  level_.assign(out_.size(), -1);
  level_[static_cast<std::size_t>(source)] = 0;
  std::deque<int> reached = {source};
  while (!reached.empty()) {
    const auto here = static_cast<std::size_t>(reached.front());
    reached.pop_front();
    for (const int index : out_[here]) {
      const Edge& edge = edges_[static_cast<std::size_t>(index)];
      int& level = level_[static_cast<std::size_t>(edge.to)];
      if (edge.capacity <= kNothing || level >= 0) continue;
      level = level_[here] + 1;
      reached.push_back(edge.to);
    }
  }
  return level_[static_cast<std::size_t>(sink)] >= 0;
}

/// Walks forward along the levels, backing out of dead ends, and fills the way that it finds.
double MaxFlow::push_one_way(int source, int sink) {
  std::vector<int> way;
  int here = source;
  while (here != sink) {
    const auto place = static_cast<std::size_t>(here);
    if (next_[place] == out_[place].size()) {
      if (way.empty()) return 0;
      const int last = way.back();
      way.pop_back();
      here = edges_[static_cast<std::size_t>(last ^ 1)].to;
      ++next_[static_cast<std::size_t>(here)];
      continue;
    }
    const int index = out_[place][next_[place]];
    const Edge& edge = edges_[static_cast<std::size_t>(index)];
    const bool leads_on =
        edge.capacity > kNothing && level_[static_cast<std::size_t>(edge.to)] == level_[place] + 1;
    if (!leads_on) {
      ++next_[place];
      continue;
    }
    way.push_back(index);
    here = edge.to;
  }
  double flow = std::numeric_limits<double>::infinity();
  for (const int i : way) flow = std::min(flow, edges_[static_cast<std::size_t>(i)].capacity);
  for (const int i : way) {
    edges_[static_cast<std::size_t>(i)].capacity -= flow;
    edges_[static_cast<std::size_t>(i ^ 1)].capacity += flow;
  }
  return flow;
}

double MaxFlow::between(int source, int sink) {
  double total = 0;
  while (find_levels(source, sink)) {
    next_.assign(out_.size(), 0);
    while (const double flow = push_one_way(source, sink)) total += flow;
  }
  return total;
}

}  // namespace tessera
