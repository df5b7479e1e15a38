#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hw/link.h"
#include "hw/node_links.h"

namespace tessera {

/// Switches of a fabric, the links between them, and where the NICs are plugged in. Places are
/// numbered: switches, and in `graph` fabrics the NICs themselves (`port` >= 0).
class SwitchGraph {
 public:
  struct Place {
    std::string name;
    int port = -1;  ///< NIC (node * NICs per node + NIC) that this place is; switches: -1
    std::vector<int> links_out;
  };

  int add_place(const std::string& name, int port = -1);
  /// Both directions of a cable; the position of the one from `a` to `b`, the other follows it.
  int add_cable(int a, int b, const Link& link);
  /// Names it "fabric/a->b", further ones between the same places "fabric/a->b#2" and so on.
  int add_link(int from, int to, Link link);

  const std::vector<Place>& places() const { return places_; }
  const std::vector<Link>& links() const { return links_; }
  const std::vector<LinkEnds>& ends() const { return ends_; }

  /// Takes a link out of all ways; its number stays.
  void remove(int link);
  bool is_missing(int link) const { return missing_[static_cast<std::size_t>(link)]; }
  bool any_missing() const { return any_missing_; }

  /// Links on a way with the fewest hops from one place to another, none of them missing; a NIC
  /// only begins or ends a way. Of several such ways the hash picks one. Nothing where there is no
  /// way.
  std::vector<int> shortest_way(int from, int to, std::uint64_t hash) const;
  /// Hops from every place to `to`; kUnreachable where there is no way.
  std::vector<int> distances_to(int to) const;
  std::vector<int> distances_from(int from) const;  ///< and to every place
  /// One of the next links on such ways, given the distances.
  int next_link(int from, const std::vector<int>& distance, std::uint64_t hash) const;

  static constexpr int kUnreachable = -1;

 private:
  std::vector<int> hops(int start, bool backwards) const;

  std::vector<Place> places_;
  std::vector<Link> links_;
  std::vector<LinkEnds> ends_;
  std::vector<bool> missing_;
  std::vector<std::vector<int>> links_in_;
  bool any_missing_ = false;
  std::map<std::pair<int, int>, int> parallel_;  ///< links per ordered pair of places
};

/// Spreads the bits of a number (splitmix64): the hash behind equal-cost routing.
std::uint64_t mixed(std::uint64_t value);

}  // namespace tessera
