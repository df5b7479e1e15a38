#pragma once

#include <span>
#include <vector>

#include "hw/topology/topology.h"

namespace tessera {

using PathId = Id<struct PathTag>;  ///< a set of links that one flow occupies together

/// The links of a cluster and the paths over them that flows take. A link that a path names k times
/// carries k times the flow's bytes.
class LinkPaths {
 public:
  /// Rate of a path's limit until it is set: faster than any link.
  static constexpr BytesPerSecond kNoLimit{1e18};

  /// `links` have to outlive this. Flows over the paths of `has_limit` (empty: none) may be held to
  /// a rate besides, each by itself.
  LinkPaths(std::span<const Link> links, const std::vector<std::vector<LinkId>>& paths,
            const std::vector<bool>& has_limit = {});

  std::span<const Link> links() const { return all_links_; }
  std::size_t path_count() const { return links_.size(); }
  BytesPerSecond bandwidth(LinkId link) const {
    return bandwidths_[static_cast<std::size_t>(link.index())];
  }
  std::span<const LinkId> links_on(PathId path) const {
    return links_[static_cast<std::size_t>(path.index())];
  }
  /// Of a flow with nobody else on its links.
  BytesPerSecond path_rate(PathId path) const {
    return rates_[static_cast<std::size_t>(path.index())];
  }
  bool has_limit(PathId path) const { return has_limit_[static_cast<std::size_t>(path.index())]; }

 private:
  std::span<const Link> all_links_;
  std::vector<BytesPerSecond> bandwidths_;  ///< by link
  std::vector<std::vector<LinkId>> links_;  ///< by path
  std::vector<BytesPerSecond> rates_;       ///< by path
  std::vector<bool> has_limit_;             ///< by path
};

}  // namespace tessera
