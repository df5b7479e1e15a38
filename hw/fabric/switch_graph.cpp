#include "hw/fabric/switch_graph.h"

#include <deque>

namespace tessera {

int SwitchGraph::add_place(const std::string& name, int port) {
  places_.push_back({name, port, {}});
  links_in_.emplace_back();
  return static_cast<int>(places_.size()) - 1;
}

int SwitchGraph::add_cable(int a, int b, const Link& link) {
  const int forth = add_link(a, b, link);
  add_link(b, a, link);
  return forth;
}

int SwitchGraph::add_link(int from, int to, Link link) {
  const int index = static_cast<int>(links_.size());
  link.technology = LinkTechnology::fabric;
  link.name = "fabric/" + places_[static_cast<std::size_t>(from)].name + "->" +
              places_[static_cast<std::size_t>(to)].name;
  const int count = ++parallel_[{from, to}];
  if (count > 1) link.name += "#" + std::to_string(count);
  places_[static_cast<std::size_t>(from)].links_out.push_back(index);
  links_in_[static_cast<std::size_t>(to)].push_back(index);
  links_.push_back(std::move(link));
  ends_.push_back({from, to});
  missing_.push_back(false);
  return index;
}

void SwitchGraph::remove(int link) {
  missing_[static_cast<std::size_t>(link)] = true;
  any_missing_ = true;
}

std::vector<int> SwitchGraph::distances_to(int to) const {
  return hops(to, true);
}

std::vector<int> SwitchGraph::distances_from(int from) const {
  return hops(from, false);
}

/// Breadth first, against the direction of the links where `backwards`.
std::vector<int> SwitchGraph::hops(int start, bool backwards) const {
  std::vector<int> distance(places_.size(), kUnreachable);
  std::deque<int> reached = {start};
  distance[static_cast<std::size_t>(start)] = 0;
  while (!reached.empty()) {
    const auto here = static_cast<std::size_t>(reached.front());
    reached.pop_front();
    const bool passes = static_cast<int>(here) == start || places_[here].port < 0;
    if (!passes) continue;
    for (const int link : backwards ? links_in_[here] : places_[here].links_out) {
      const LinkEnds& ends = ends_[static_cast<std::size_t>(link)];
      const int next = backwards ? ends.from : ends.to;
      if (is_missing(link) || distance[static_cast<std::size_t>(next)] != kUnreachable) continue;
      distance[static_cast<std::size_t>(next)] = distance[here] + 1;
      reached.push_back(next);
    }
  }
  return distance;
}

int SwitchGraph::next_link(int from, const std::vector<int>& distance, std::uint64_t hash) const {
  const int here = distance[static_cast<std::size_t>(from)];
  const auto leads_on = [&](int link) {
    const int to = ends_[static_cast<std::size_t>(link)].to;
    const bool through_nic = places_[static_cast<std::size_t>(to)].port >= 0 && here > 1;
    return !is_missing(link) && !through_nic && distance[static_cast<std::size_t>(to)] == here - 1;
  };
  const std::vector<int>& links = places_[static_cast<std::size_t>(from)].links_out;
  std::uint64_t choices = 0;
  for (const int link : links) choices += leads_on(link) ? 1 : 0;
  std::uint64_t left = hash % choices;
  for (const int link : links) {
    if (leads_on(link) && left-- == 0) return link;
  }
  return NodeLinks::kNoLink;
}

std::vector<int> SwitchGraph::shortest_way(int from, int to, std::uint64_t hash) const {
  const std::vector<int> distance = distances_to(to);
  std::vector<int> way;
  if (distance[static_cast<std::size_t>(from)] == kUnreachable) return way;
  while (from != to) {
    hash = mixed(hash);
    way.push_back(next_link(from, distance, hash));
    from = ends_[static_cast<std::size_t>(way.back())].to;
  }
  return way;
}

std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace tessera
