#include "hw/topology/max_flow.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

namespace tessera {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;

struct Place {
  boost::default_color_type color = boost::white_color;
  Traits::edge_descriptor predecessor;
  std::int64_t distance = 0;
};
struct Way {
  std::int64_t capacity = 0;
  std::int64_t residual = 0;
  Traits::edge_descriptor back;
};
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Place, Way>;

}  // namespace

std::int64_t MaxFlow::between(int source, int sink) const {
  Graph graph(static_cast<std::size_t>(places_));
  for (const Edge& edge : edges_) {
    const auto from = static_cast<std::size_t>(edge.from);
    const auto to = static_cast<std::size_t>(edge.to);
    const auto there = boost::add_edge(from, to, Way{.capacity = edge.capacity}, graph).first;
    const auto back = boost::add_edge(to, from, Way{}, graph).first;
    graph[there].back = back;
    graph[back].back = there;
  }
  return boost::boykov_kolmogorov_max_flow(
      graph, boost::get(&Way::capacity, graph), boost::get(&Way::residual, graph),
      boost::get(&Way::back, graph), boost::get(&Place::predecessor, graph),
      boost::get(&Place::color, graph), boost::get(&Place::distance, graph),
      boost::get(boost::vertex_index, graph), static_cast<std::size_t>(source),
      static_cast<std::size_t>(sink));
}

}  // namespace tessera
